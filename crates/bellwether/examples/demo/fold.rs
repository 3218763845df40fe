//! The right answers: a plain fold over the input that does not touch Bellwether.

use std::collections::{BTreeMap, HashMap};

use crate::history::{AuthorActivity, Day, FileHeat, FileStats, HOTTEST_MAX, TenantTotals};
use crate::input::{BadRow, Input};
use crate::progress::Progress;
use crate::row::Row;
use crate::tenant::{digest, digest_on, tenant_id};

/// What the input says, tenant by tenant.
pub(crate) struct Expectation {
    pub(crate) events: u64,
    pub(crate) bad_rows: u64,
    /// Digest of all good rows and the depth: the same for the same work.
    pub(crate) fingerprint: u64,
    /// By display name.
    pub(crate) tenants: BTreeMap<String, Tenant>,
}

/// What the input says of one tenant.
#[derive(Default)]
pub(crate) struct Tenant {
    pub(crate) events: u64,
    pub(crate) files: BTreeMap<String, FileStats>,
    pub(crate) authors: BTreeMap<String, AuthorActivity>,
    pub(crate) days: BTreeMap<String, Day>,
}

/// Reads the whole input once.
pub(crate) fn fold(input: &Input, depth: usize, progress: &Progress) -> Result<Expectation, String> {
    let mut expectation = Expectation {
        events: 0,
        bad_rows: 0,
        fingerprint: digest([depth.to_string().as_bytes()]),
        tenants: BTreeMap::new(),
    };
    let mut bad_rows = 0;
    input.read(
        |_, row| {
            expectation.add(&row, depth);
            progress.at(expectation.events, String::new);
            Ok(())
        },
        |bad| report(&bad, &mut bad_rows),
    )?;
    expectation.bad_rows = bad_rows;
    refuse_shared_ids(&expectation)?;
    Ok(expectation)
}

/// Says which row is bad and why.
pub(crate) fn report(bad: &BadRow, seen: &mut u64) {
    *seen += 1;
    eprintln!("bad row: line {}: {}", bad.line, bad.reason);
}

impl Expectation {
    fn add(&mut self, row: &Row, depth: usize) {
        self.events += 1;
        for part in [
            row.commit.as_str(),
            &row.unix_time.to_string(),
            &row.author,
            &format!("{:?}", row.lines),
            &row.path,
        ] {
            self.fingerprint = digest_on(self.fingerprint, part.as_bytes());
        }
        let name = row.tenant(depth);
        if !self.tenants.contains_key(name) {
            self.tenants.insert(name.to_owned(), Tenant::default());
        }
        self.tenants.get_mut(name).expect("just inserted").add(row);
    }
}

impl Tenant {
    fn add(&mut self, row: &Row) {
        let (added, removed) = row.lines.unwrap_or_default();
        self.events += 1;

        let file = entry(&mut self.files, &row.path);
        if file.changes == 0 {
            file.first_unix_time = row.unix_time;
        }
        file.changes += 1;
        file.binary_changes += u64::from(row.lines.is_none());
        file.added += added;
        file.removed += removed;
        file.last_unix_time = row.unix_time;
        file.last_author.clone_from(&row.author);

        let author = entry(&mut self.authors, &row.author);
        author.changes += 1;
        author.added += added;
        author.removed += removed;

        let day = entry(&mut self.days, &row.day());
        day.changes += 1;
        day.added += added;
        day.removed += removed;
    }

    /// The first stage's document of a file.
    pub(crate) fn heat(file: &FileStats) -> FileHeat {
        FileHeat { changes: file.changes, added: file.added, removed: file.removed }
    }

    /// The second stage's document: totals and the hottest files, counted from all files at once.
    pub(crate) fn totals(&self) -> TenantTotals {
        let mut hottest: Vec<(String, u64)> =
            self.files.iter().map(|(path, file)| (path.clone(), file.changes)).collect();
        hottest.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        hottest.truncate(HOTTEST_MAX);
        TenantTotals {
            files: self.files.len() as u64,
            events: self.events,
            added: self.files.values().map(|file| file.added).sum(),
            removed: self.files.values().map(|file| file.removed).sum(),
            hottest,
        }
    }
}

fn entry<'a, V: Default>(map: &'a mut BTreeMap<String, V>, key: &str) -> &'a mut V {
    if !map.contains_key(key) {
        map.insert(key.to_owned(), V::default());
    }
    map.get_mut(key).expect("just inserted")
}

/// Two display names with one id would be one tenant.
fn refuse_shared_ids(expectation: &Expectation) -> Result<(), String> {
    let mut names = HashMap::new();
    for name in expectation.tenants.keys() {
        if let Some(other) = names.insert(tenant_id(name), name) {
            return Err(format!(
                "tenants {other:?} and {name:?} get the same id; use another --tenant-depth"
            ));
        }
    }
    Ok(())
}
