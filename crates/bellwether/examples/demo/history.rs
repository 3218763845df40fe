//! The events of a history, and what the projections make of them.

use std::collections::BTreeMap;

use bellwether::prelude::*;
use bellwether::storage::{BoxError, SqlDialect, Statement};
use serde::{Deserialize, Serialize};

use crate::row::{Row, day};

/// One change of one file. The first event of a stream is `FileAdded` (or `BinaryChanged`, when git counts no lines).
#[derive(Debug, Clone, PartialEq, Event)]
pub(crate) enum FileEvent {
    FileAdded { commit: String, unix_time: i64, author: String, added: u64, removed: u64 },
    FileChanged { commit: String, unix_time: i64, author: String, added: u64, removed: u64 },
    BinaryChanged { commit: String, unix_time: i64, author: String },
}

/// What every projection takes from an event.
struct Facts<'a> {
    unix_time: i64,
    author: &'a str,
    added: u64,
    removed: u64,
    binary: bool,
}

impl FileEvent {
    /// The event of a row; `first` says whether it begins its stream.
    pub(crate) fn of(row: Row, first: bool) -> Self {
        let Row { commit, unix_time, author, lines, .. } = row;
        match lines {
            None => Self::BinaryChanged { commit, unix_time, author },
            Some((added, removed)) if first => Self::FileAdded { commit, unix_time, author, added, removed },
            Some((added, removed)) => Self::FileChanged { commit, unix_time, author, added, removed },
        }
    }

    fn facts(&self) -> Facts<'_> {
        match self {
            Self::FileAdded { unix_time, author, added, removed, .. }
            | Self::FileChanged { unix_time, author, added, removed, .. } => {
                Facts { unix_time: *unix_time, author, added: *added, removed: *removed, binary: false }
            }
            Self::BinaryChanged { unix_time, author, .. } => {
                Facts { unix_time: *unix_time, author, added: 0, removed: 0, binary: true }
            }
        }
    }
}

/// Statistics of one file; its key is the path.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileStats {
    pub(crate) changes: u64,
    pub(crate) binary_changes: u64,
    pub(crate) added: u64,
    pub(crate) removed: u64,
    pub(crate) first_unix_time: i64,
    pub(crate) last_unix_time: i64,
    pub(crate) last_author: String,
}

impl View for FileStats {
    const NAME: &'static str = "file-stats";
    type Event = FileEvent;

    fn apply(&mut self, recorded: &Recorded<FileEvent>) -> Change {
        let facts = recorded.event.facts();
        if self.changes == 0 {
            self.first_unix_time = facts.unix_time;
        }
        self.changes += 1;
        self.binary_changes += u64::from(facts.binary);
        self.added += facts.added;
        self.removed += facts.removed;
        self.last_unix_time = facts.unix_time;
        self.last_author = facts.author.to_owned();
        Change::Save
    }
}

/// What one author did in a tenant; its key is the author.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AuthorActivity {
    pub(crate) changes: u64,
    pub(crate) added: u64,
    pub(crate) removed: u64,
}

impl MultiView for AuthorActivity {
    const NAME: &'static str = "author-activity";
    type Event = FileEvent;

    fn keys(recorded: &Recorded<FileEvent>, keys: &mut Keys) {
        keys.push(recorded.event.facts().author);
    }

    fn apply(&mut self, _author: &str, recorded: &Recorded<FileEvent>) -> Change {
        let facts = recorded.event.facts();
        self.changes += 1;
        self.added += facts.added;
        self.removed += facts.removed;
        Change::Save
    }
}

/// First stage of the composite: what the totals need of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileHeat {
    pub(crate) changes: u64,
    pub(crate) added: u64,
    pub(crate) removed: u64,
}

impl View for FileHeat {
    const NAME: &'static str = "file-heat";
    type Event = FileEvent;

    fn apply(&mut self, recorded: &Recorded<FileEvent>) -> Change {
        let facts = recorded.event.facts();
        self.changes += 1;
        self.added += facts.added;
        self.removed += facts.removed;
        Change::Save
    }
}

/// How many files a tenant's list of the hottest holds.
pub(crate) const HOTTEST_MAX: usize = 20;

/// Key of the one document of totals a tenant has.
pub(crate) const TOTALS_KEY: &str = "totals";

/// Second stage of the composite: totals of the tenant, and its hottest files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TenantTotals {
    pub(crate) files: u64,
    pub(crate) events: u64,
    pub(crate) added: u64,
    pub(crate) removed: u64,
    /// Most changes first; the same number by path.
    pub(crate) hottest: Vec<(String, u64)>,
}

impl StageView for TenantTotals {
    const NAME: &'static str = "tenant-totals";
    type Source = FileHeat;
    type Input = (u64, u64, u64);

    fn input(file: &FileHeat) -> Self::Input {
        (file.changes, file.added, file.removed)
    }

    fn keys(_: &Changed<Self::Input>, keys: &mut Keys) {
        keys.push(TOTALS_KEY);
    }

    fn apply(&mut self, _key: &str, change: &Changed<Self::Input>) -> Change {
        let before = change.before.unwrap_or_default();
        let after = change.after.unwrap_or_default();
        self.files += u64::from(change.before.is_none());
        self.events += after.0 - before.0;
        self.added += after.1 - before.1;
        self.removed += after.2 - before.2;
        // Counts only grow, so a file outside the list can enter it only by a change of its own.
        self.hottest.retain(|(path, _)| *path != change.key);
        let at = self
            .hottest
            .partition_point(|(path, changes)| (after.0, path.as_str()) < (*changes, change.key.as_str()));
        self.hottest.insert(at, (change.key.clone(), after.0));
        self.hottest.truncate(HOTTEST_MAX);
        Change::Save
    }
}

/// Changes per day.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Day {
    pub(crate) changes: u64,
    pub(crate) added: u64,
    pub(crate) removed: u64,
}

/// Where there is no SQL, days are documents; their key is the day.
impl MultiView for Day {
    const NAME: &'static str = "calendar-days";
    type Event = FileEvent;

    fn keys(recorded: &Recorded<FileEvent>, keys: &mut Keys) {
        keys.push(day(recorded.event.facts().unix_time));
    }

    fn apply(&mut self, _day: &str, recorded: &Recorded<FileEvent>) -> Change {
        self.add(&recorded.event.facts());
        Change::Save
    }
}

impl Day {
    fn add(&mut self, facts: &Facts<'_>) {
        self.changes += 1;
        self.added += facts.added;
        self.removed += facts.removed;
    }
}

/// Where there is SQL, days are rows of a plain table.
pub(crate) struct Calendar;

impl SqlProjection for Calendar {
    const NAME: &'static str = "calendar";
    type Event = FileEvent;

    fn setup(&self, _: SqlDialect) -> Vec<Statement> {
        vec![Statement::new(
            "CREATE TABLE IF NOT EXISTS demo_calendar (
                 tenant TEXT NOT NULL, day TEXT NOT NULL,
                 changes BIGINT NOT NULL, added BIGINT NOT NULL, removed BIGINT NOT NULL,
                 PRIMARY KEY (tenant, day))",
        )]
    }

    async fn project(&self, page: Page<'_, FileEvent>, tx: &mut Tx<'_>) -> Result<(), BoxError> {
        let mut days: BTreeMap<String, Day> = BTreeMap::new();
        for recorded in page {
            let facts = recorded.event.facts();
            days.entry(day(facts.unix_time)).or_default().add(&facts);
        }
        for (name, day) in days {
            tx.execute(
                &Statement::new(
                    "INSERT INTO demo_calendar (tenant, day, changes, added, removed) VALUES ($1, $2, $3, $4, $5)
                     ON CONFLICT (tenant, day) DO UPDATE SET changes = demo_calendar.changes + excluded.changes,
                         added = demo_calendar.added + excluded.added, removed = demo_calendar.removed + excluded.removed",
                )
                .bind(page.tenant().as_str())
                .bind(name)
                .bind(day.changes as i64)
                .bind(day.added as i64)
                .bind(day.removed as i64),
            )
            .await?;
        }
        Ok(())
    }
}
