//! Every stored document against the plain fold, in both directions.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

use bellwether::daemon::Readable;
use bellwether::prelude::*;
use bellwether::storage::{ErrorKind, Row, Statement};
use serde::Serialize;

use crate::Failure;
use crate::args::StoreKind;
use crate::claim::is_claim;
use crate::fold::{Expectation, Tenant as Expected};
use crate::history::{AuthorActivity, Day, FileHeat, FileStats, TOTALS_KEY, TenantTotals};
use crate::progress::Progress;
use crate::tenant::tenant_id;

/// Documents read at once.
const LIST_PAGE: u32 = 500;
/// Differences that are kept to be shown.
const DIFFERENCES_SHOWN: usize = 10;

/// What the stored documents say.
#[derive(Default)]
pub(crate) struct Findings {
    /// By display name.
    pub(crate) tenants: BTreeMap<String, Figures>,
    pub(crate) documents: u64,
    pub(crate) differences: Vec<String>,
    pub(crate) differences_total: u64,
}

/// One tenant's line of the report, from stored documents.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Figures {
    pub(crate) events: u64,
    pub(crate) head: u64,
    pub(crate) files: u64,
    pub(crate) authors: u64,
    pub(crate) added: u64,
    pub(crate) removed: u64,
}

impl Findings {
    fn differ(&mut self, difference: impl FnOnce() -> String) {
        self.differences_total += 1;
        if self.differences.len() < DIFFERENCES_SHOWN {
            self.differences.push(difference());
        }
    }

    /// Compares what is stored with what is right, key by key.
    fn compare<V: PartialEq + Debug>(
        &mut self,
        place: &str,
        stored: BTreeMap<String, V>,
        mut right: BTreeMap<String, V>,
    ) {
        self.documents += stored.len() as u64;
        for (key, found) in stored {
            match right.remove(&key) {
                Some(expected) if expected == found => {}
                Some(expected) => {
                    self.differ(|| format!("{place} {key:?}: expected {expected:?}, found {found:?}"))
                }
                None => self.differ(|| format!("{place} {key:?}: expected nothing, found {found:?}")),
            }
        }
        for (key, expected) in right {
            self.differ(|| format!("{place} {key:?}: expected {expected:?}, found nothing"));
        }
    }
}

/// Reads everything back and compares it.
pub(crate) async fn verify(
    store: &Store,
    kind: StoreKind,
    expectation: &Expectation,
    progress: &Progress,
) -> Result<Findings, Failure> {
    let mut findings = Findings::default();
    let ids: BTreeMap<TenantId, &String> =
        expectation.tenants.keys().map(|name| (tenant_id(name), name)).collect();
    for id in store.tenants().await? {
        if !ids.contains_key(&id) && !is_claim(&id) {
            findings.differ(|| format!("tenant {id}: expected no such tenant"));
        }
    }
    for (id, name) in ids {
        let figures =
            verify_tenant(store, kind, &id, name, &expectation.tenants[name], &mut findings).await?;
        findings.tenants.insert(name.clone(), figures);
        progress.at(findings.documents, || "documents".into());
    }
    if kind != StoreKind::Memory {
        strange_rows(store, expectation, &mut findings).await?;
    }
    Ok(findings)
}

/// Rows of the calendar that belong to no tenant of the history: no tenant's reading has seen them.
async fn strange_rows(
    store: &Store,
    expectation: &Expectation,
    findings: &mut Findings,
) -> Result<(), Failure> {
    let known: BTreeSet<String> =
        expectation.tenants.keys().map(|name| tenant_id(name).to_string()).collect();
    let mut after = String::new();
    for database in store.databases() {
        loop {
            let statement = Statement::new(
                "SELECT DISTINCT tenant FROM demo_calendar WHERE tenant > $1 ORDER BY tenant LIMIT 1000",
            );
            let rows = database.query(&statement.bind(after.as_str())).await?;
            let Some(last) = rows.last() else { break };
            after = last.text(0)?.to_owned();
            for row in &rows {
                let tenant = row.text(0)?;
                if !known.contains(tenant) {
                    findings
                        .differ(|| format!("tenant {tenant}, calendar: expected no such tenant, found rows"));
                }
            }
        }
    }
    Ok(())
}

async fn verify_tenant(
    store: &Store,
    kind: StoreKind,
    id: &TenantId,
    name: &str,
    expected: &Expected,
    findings: &mut Findings,
) -> Result<Figures, Failure> {
    let tenant = store.tenant(id)?;
    let head = tenant.head().await?.get();
    if head != expected.events {
        findings.differ(|| format!("tenant {name:?}: expected {} events, found {head}", expected.events));
    }

    let files = documents::<FileStats, _>(&tenant, findings).await?;
    let heat = documents::<FileHeat, _>(&tenant, findings).await?;
    let authors = documents::<AuthorActivity, _>(&tenant, findings).await?;
    let totals = documents::<TenantTotals, _>(&tenant, findings).await?;
    let days = match kind {
        StoreKind::Memory => documents::<Day, _>(&tenant, findings).await?,
        StoreKind::Sqlite | StoreKind::Postgres => calendar(store, id, findings).await?,
    };
    let total = totals.get(TOTALS_KEY).cloned().unwrap_or_default();
    let (added, removed) = lines(&files);
    let figures = Figures {
        events: total.events,
        head,
        files: files.len() as u64,
        authors: authors.len() as u64,
        added,
        removed,
    };

    let place = |view: &str| format!("tenant {name:?} ({id}), {view}");
    let right_heat = expected.files.iter().map(|(path, file)| (path.clone(), Expected::heat(file))).collect();
    let right_totals = BTreeMap::from([(TOTALS_KEY.to_owned(), expected.totals())]);
    findings.compare(&place("file-stats"), files, expected.files.clone());
    findings.compare(&place("file-heat"), heat, right_heat);
    findings.compare(&place("author-activity"), authors, expected.authors.clone());
    findings.compare(&place("tenant-totals"), totals, right_totals);
    findings.compare(&place("calendar"), days, expected.days.clone());
    Ok(figures)
}

/// All documents of a view of a tenant. One that does not fit its type is a difference; those behind it are then missing.
async fn documents<V: Readable<K>, K>(
    tenant: &Tenant,
    findings: &mut Findings,
) -> Result<BTreeMap<String, V>, Failure> {
    let mut all = BTreeMap::new();
    let mut after: Option<String> = None;
    let mut limit = LIST_PAGE;
    loop {
        let page = match tenant.list::<V>(after.as_deref(), limit).await {
            Ok(page) => page,
            // Closing in on the one that cannot be read.
            Err(error) if error.kind() == ErrorKind::Corrupt && limit > 1 => {
                limit = 1;
                continue;
            }
            Err(error) if error.kind() == ErrorKind::Corrupt => {
                findings.differ(|| format!("tenant {}, {}: {error}", tenant.id(), V::NAME));
                return Ok(all);
            }
            Err(error) => return Err(error.into()),
        };
        let Some((last, _)) = page.last() else { return Ok(all) };
        after = Some(last.clone());
        all.extend(page);
    }
}

/// All rows of the calendar of a tenant. One that holds no day is a difference.
async fn calendar(
    store: &Store,
    id: &TenantId,
    findings: &mut Findings,
) -> Result<BTreeMap<String, Day>, Failure> {
    let location = store.directory().locate(id).await?;
    let database = &store.databases()[location.database.0 as usize];
    let mut all = BTreeMap::new();
    let mut after = String::new();
    loop {
        let statement = Statement::new(
            "SELECT day, changes, added, removed FROM demo_calendar WHERE tenant = $1 AND day > $2 ORDER BY day LIMIT 1000",
        );
        let rows = database.query(&statement.bind(id.as_str()).bind(after.as_str())).await?;
        let Some(last) = rows.last() else { return Ok(all) };
        for row in &rows {
            match calendar_day(row) {
                Ok((day, counts)) => {
                    all.insert(day, counts);
                }
                Err(reason) => findings.differ(|| format!("tenant {id}, calendar: {reason}")),
            }
        }
        // Days that are no text come last, and there is no going on behind them.
        let Ok(last) = last.text(0) else { return Ok(all) };
        after = last.to_owned();
    }
}

/// A row of the calendar: its day, and what was counted on it.
fn calendar_day(row: &Row) -> Result<(String, Day), String> {
    let day = row.text(0).map_err(|error| format!("the day of a row: {error}"))?;
    let number = |column: usize| {
        let number = row.int(column).map_err(|error| format!("{day:?}: {error}"))?;
        u64::try_from(number).map_err(|_| format!("{day:?}: {number} is no count"))
    };
    Ok((day.to_owned(), Day { changes: number(1)?, added: number(2)?, removed: number(3)? }))
}

/// Lines added and removed over all files; of absurd documents as many as a number holds.
fn lines(files: &BTreeMap<String, FileStats>) -> (u64, u64) {
    files.values().fold((0, 0), |(added, removed): (u64, u64), file| {
        (added.saturating_add(file.added), removed.saturating_add(file.removed))
    })
}

#[cfg(test)]
mod tests {
    use bellwether::storage::Value;

    use super::*;

    #[test]
    fn a_calendar_row_that_holds_no_numbers_is_named_by_its_day() {
        let row = |changes: Value| Row(vec!["2016-02-21".into(), changes, 3_i64.into(), 0_i64.into()]);
        let day = Day { changes: 2, added: 3, removed: 0 };
        assert_eq!(calendar_day(&row(2_i64.into())), Ok(("2016-02-21".to_owned(), day)));
        for altered in [Value::from("abc"), Value::from(1.5), Value::from(-1_i64), Value::Null] {
            let refused = calendar_day(&row(altered)).unwrap_err();
            assert!(refused.contains("2016-02-21"), "{refused}");
        }
        let refused = calendar_day(&Row(vec![Value::from(vec![0xff_u8])])).unwrap_err();
        assert!(refused.contains("day"), "{refused}");
    }

    #[test]
    fn figures_of_absurd_documents_stay_figures() {
        let file = FileStats { added: u64::MAX, removed: u64::MAX, ..FileStats::default() };
        let files = BTreeMap::from([("a".to_owned(), file.clone()), ("b".to_owned(), file)]);
        assert_eq!(lines(&files), (u64::MAX, u64::MAX));
    }
}
