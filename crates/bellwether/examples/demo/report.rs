//! What the run came to: a table for people, JSON for programs.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use comfy_table::{CellAlignment, Table, presets};
use serde::Serialize;

use crate::catch_up::PROJECTIONS;
use crate::verify::{Figures, Findings};

/// Tenants the table shows; JSON holds all.
const TENANTS_SHOWN: usize = 12;

/// The whole report.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) store: &'static str,
    pub(crate) events: u64,
    pub(crate) tenants: BTreeMap<String, Figures>,
    pub(crate) seconds: Seconds,
    pub(crate) peak_rss_bytes: u64,
    pub(crate) verified: bool,
}

#[derive(Debug, Default, Serialize)]
pub(crate) struct Seconds {
    pub(crate) import: f64,
    pub(crate) catch_up: f64,
}

/// What the table says beside the report.
#[derive(Debug, Default)]
pub(crate) struct Work {
    pub(crate) appended: u64,
    pub(crate) import: Duration,
    /// Over all projections.
    pub(crate) applied: u64,
    pub(crate) catch_up: Duration,
    pub(crate) statements: u64,
    pub(crate) budget_peak_bytes: u64,
}

impl Report {
    pub(crate) fn write_json(&self, file: &Path) -> Result<(), String> {
        let text = serde_json::to_string_pretty(self).map_err(|error| error.to_string())?;
        std::fs::write(file, text + "\n").map_err(|error| format!("cannot write {}: {error}", file.display()))
    }

    /// Prints tenants, work done and the verdict.
    pub(crate) fn print(&self, work: Option<&Work>, findings: &Findings) {
        println!("{}", self.tenants_table());
        if self.tenants.len() > TENANTS_SHOWN {
            println!("and {} more tenants", self.tenants.len() - TENANTS_SHOWN);
        }
        if let Some(work) = work {
            println!("{}", work_table(work, self.peak_rss_bytes));
        }
        for difference in &findings.differences {
            println!("difference: {difference}");
        }
        if self.verified {
            println!(
                "verified: {} events, {} tenants, {} documents equal a plain fold over the input",
                self.events,
                self.tenants.len(),
                findings.documents
            );
        } else {
            println!("NOT verified: {} differences", findings.differences_total);
        }
    }

    fn tenants_table(&self) -> Table {
        let mut rows: Vec<_> = self.tenants.iter().collect();
        rows.sort_by(|a, b| b.1.events.cmp(&a.1.events).then_with(|| a.0.cmp(b.0)));
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        table.set_header(["tenant", "events", "files", "authors", "added", "removed"]);
        for (name, figures) in rows.into_iter().take(TENANTS_SHOWN) {
            let numbers = [figures.events, figures.files, figures.authors, figures.added, figures.removed];
            table.add_row(std::iter::once(name.clone()).chain(numbers.iter().map(u64::to_string)));
        }
        align_numbers(&mut table);
        table
    }
}

fn work_table(work: &Work, peak_rss_bytes: u64) -> Table {
    let rate = |events: u64, took: Duration| match took.as_secs_f64() {
        seconds if seconds > 0.0 && events > 0 => format!("{:.0} events/s", events as f64 / seconds),
        _ => "nothing to do".to_owned(),
    };
    // Each event is appended once and then worked on by every projection.
    let events = work.appended.max(work.applied / PROJECTIONS);
    let mib = |bytes: u64| format!("{:.1} MiB", bytes as f64 / (1024.0 * 1024.0));
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.add_row([
        "import",
        &format!("{:.2} s", work.import.as_secs_f64()),
        &rate(work.appended, work.import),
    ]);
    table.add_row([
        "catch-up",
        &format!("{:.2} s", work.catch_up.as_secs_f64()),
        &rate(work.applied / PROJECTIONS, work.catch_up),
    ]);
    table.add_row(["", &work.applied.to_string(), "events over all projections"]);
    table.add_row(["budget", &mib(work.budget_peak_bytes), "at its peak"]);
    table.add_row(["memory", &mib(peak_rss_bytes), "at the process's peak"]);
    let per_event = if events == 0 {
        "no events".into()
    } else {
        format!("{:.3} an event", work.statements as f64 / events as f64)
    };
    table.add_row(["statements", &work.statements.to_string(), &per_event]);
    align_numbers(&mut table);
    table
}

fn align_numbers(table: &mut Table) {
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
}

/// Peak resident memory of this process, by the kernel; zero where it does not tell.
pub(crate) fn peak_rss_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap_or(0) * 1024
}
