//! Histories made by chance from a seed, and chance itself.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

pub(crate) const HEADER: &str = "commit\tunix_time\tauthor\tadded\tremoved\tpath\n";

/// Numbers by chance, the same for the same seed (splitmix64).
pub(crate) struct Chance(u64);

impl Chance {
    /// From `BELLWETHER_SEED`, or from the clock; printed, so that a failure can be had again.
    pub(crate) fn announced(what: &str) -> Self {
        let now = std::time::UNIX_EPOCH.elapsed().unwrap_or_default().as_nanos() as u64;
        let seed = std::env::var("BELLWETHER_SEED").map_or(now, |seed| seed.parse().expect("a number"));
        println!("{what}: BELLWETHER_SEED={seed}");
        Self(seed)
    }

    pub(crate) fn seeded(seed: u64) -> Self {
        Self(seed)
    }

    /// A number from zero to below `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end.max(1)
    }
}

/// A history of `rows` rows, as uneven as life: few folders and authors have most of the changes, some files lie in no folder, and
/// some are binary.
pub(crate) fn history(seed: u64, rows: u64) -> String {
    let mut chance = Chance::seeded(seed);
    let mut text = HEADER.to_owned();
    let (mut row, mut time) = (0, 1_456_000_000);
    while row < rows {
        time += chance.below(90_000);
        let commit = format!("{:012x}", chance.below(1 << 48));
        let author = uneven(&mut chance, 40);
        for _ in 0..(1 + chance.below(30)).min(rows - row) {
            row += 1;
            let file = uneven(&mut chance, 200);
            let path = match chance.below(20) {
                0 => format!("file-{file}.md"),
                1 => format!("docs/file-{file}.md"),
                _ => format!("crates/crate {}/src/file-{file}.rs", uneven(&mut chance, 60)),
            };
            let (added, removed) = match chance.below(50) {
                0 => ("-".to_owned(), "-".to_owned()),
                _ => (chance.below(300).to_string(), chance.below(100).to_string()),
            };
            let _ = writeln!(text, "{commit}\t{time}\ta{author}\t{added}\t{removed}\t{path}");
        }
    }
    text
}

fn uneven(chance: &mut Chance, end: u64) -> u64 {
    let first = chance.below(end);
    chance.below(first + 1)
}

/// What a report must say of one tenant.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Figures {
    pub(crate) events: u64,
    pub(crate) files: BTreeSet<String>,
    pub(crate) authors: BTreeSet<String>,
    pub(crate) added: u64,
    pub(crate) removed: u64,
}

/// The figures of every tenant, counted here; tenants are the first `depth` folders.
pub(crate) fn figures(history: &str, depth: usize) -> BTreeMap<String, Figures> {
    let mut tenants: BTreeMap<String, Figures> = BTreeMap::new();
    for line in history.lines().skip(1) {
        let columns: Vec<&str> = line.split('\t').collect();
        let folders: Vec<&str> = columns[5].split('/').collect();
        let folders = &folders[..folders.len() - 1];
        let name = match folders {
            [] => "(root)".to_owned(),
            _ => folders[..depth.min(folders.len())].join("/"),
        };
        let tenant = tenants.entry(name).or_default();
        tenant.events += 1;
        tenant.files.insert(columns[5].to_owned());
        tenant.authors.insert(columns[2].to_owned());
        tenant.added += columns[3].parse::<u64>().unwrap_or(0);
        tenant.removed += columns[4].parse::<u64>().unwrap_or(0);
    }
    tenants
}

/// The report says of every tenant what the history says.
#[track_caller]
pub(crate) fn assert_agrees(report: &serde_json::Value, history: &str, depth: usize) {
    let right = figures(history, depth);
    let events: u64 = right.values().map(|tenant| tenant.events).sum();
    assert_eq!(report["events"], events);
    assert_eq!(report["tenants"].as_object().unwrap().len(), right.len());
    for (name, tenant) in right {
        let expected = serde_json::json!({
            "events": tenant.events,
            "head": tenant.events,
            "files": tenant.files.len(),
            "authors": tenant.authors.len(),
            "added": tenant.added,
            "removed": tenant.removed,
        });
        assert_eq!(report["tenants"][&name], expected, "tenant {name}");
    }
}
