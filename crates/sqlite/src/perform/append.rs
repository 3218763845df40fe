//! Appending a batch: compare, insert, advance, in one transaction.

use std::sync::Arc;

use bellwether_storage::{
    AppendBatch, AppendOutcome, AppendReceipt, NewEvent, Place, Result, Sequence, TenantAppend, TenantNo,
    Timestamp,
};
use sqlx::sqlite::SqliteRow;

use super::file::{File, clock};
use super::gate::{Gate, NotBegun};
use super::link::{Link, column};
use crate::decide::admission;
use crate::decide::turns::Turn;
use crate::{error, sql};

/// A head as found under the write lock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Head {
    pub(crate) head: Sequence,
    pub(crate) open: bool,
    pub(crate) place: Place,
    pub(crate) at: Timestamp,
    /// The change number of the commit that moves it next.
    pub(crate) next_moved: i64,
}

impl Head {
    /// From the columns of `append/batch.sql` and `heads/lock.sql`; `None` where there is no such tenant.
    pub(crate) fn from_row(row: &SqliteRow) -> Result<Option<Self>> {
        let Some(head) = column::<Option<i64>>(row, 0)? else { return Ok(None) };
        Ok(Some(Self {
            head: Sequence::from_i64(head)?,
            open: column(row, 1)?,
            place: Place(column(row, 2)?),
            at: Timestamp::from_micros(column(row, 3)?),
            next_moved: column(row, 4)?,
        }))
    }
}

/// See [`EventLog::append`](bellwether_storage::EventLog::append).
pub(crate) async fn append(file: &File, gate: &Arc<Gate>, batch: &AppendBatch) -> Result<AppendReceipt> {
    admission::check_batch(batch)?;
    let identity = file.identity();
    batch.check_identity(&identity)?;
    let busy = || vec![AppendOutcome::Busy; batch.tenants.len()];
    let mut transaction = match gate.begin(Turn::Short, file.config().busy_timeout).await {
        Ok(transaction) => transaction,
        // On this file one transaction holds every head.
        Err(NotBegun::Busy) => return Ok(AppendReceipt { outcomes: busy(), identity }),
        Err(NotBegun::Failed(error)) => return Err(error),
    };
    let outcomes = write_batch(transaction.link(), batch).await;
    let outcomes = match outcomes {
        Ok(outcomes) if outcomes.iter().any(|outcome| matches!(outcome, AppendOutcome::Done { .. })) => {
            transaction.end(Ok(outcomes)).await?
        }
        Ok(outcomes) => {
            transaction.roll_back().await;
            outcomes
        }
        Err(error) => return transaction.end(Err(error)).await,
    };
    Ok(AppendReceipt { outcomes, identity })
}

async fn write_batch(link: &mut Link, batch: &AppendBatch) -> Result<Vec<AppendOutcome>> {
    let numbers: Vec<i32> = batch.tenants.iter().map(|entry| entry.tenant.0).collect();
    let mut heads = Vec::with_capacity(numbers.len());
    link.each(sqlx::query(sql::APPEND_BATCH).bind(json(&numbers)), |row| {
        heads.push(Head::from_row(row)?);
        Ok(())
    })
    .await?;
    let now = batch.now.unwrap_or_else(clock);
    let mut outcomes = Vec::with_capacity(batch.tenants.len());
    let mut moves = Vec::new();
    let mut next_moved = 0;
    for (entry, head) in batch.tenants.iter().zip(heads) {
        let outcome = compare(entry, head.as_ref(), now);
        if let (AppendOutcome::Done { at }, Some(head)) = (&outcome, head) {
            insert_events(link, entry.tenant, head, &entry.events, *at).await?;
            moves.push((entry.tenant.0, entry.events.len()));
            next_moved = head.next_moved;
        }
        outcomes.push(outcome);
    }
    if !moves.is_empty() {
        advance(link, &moves, now, next_moved).await?;
    }
    Ok(outcomes)
}

/// What becomes of one tenant's entry.
fn compare(entry: &TenantAppend, head: Option<&Head>, now: Timestamp) -> AppendOutcome {
    match head {
        None => AppendOutcome::NoTenant,
        Some(head) if !head.open => AppendOutcome::Closed,
        Some(head) if head.head != entry.expected_head || head.place != entry.place => {
            AppendOutcome::Stale { head: head.head, place: head.place }
        }
        Some(head) => AppendOutcome::Done { at: head.at.max(now) },
    }
}

/// Inserts events after a head, in statements of several rows.
pub(crate) async fn insert_events(
    link: &mut Link,
    tenant: TenantNo,
    head: Head,
    events: &[NewEvent],
    at: Timestamp,
) -> Result<()> {
    admission::check_events(head.head, events)?;
    let mut after = head.head.as_i64();
    let mut rest = events;
    while !rest.is_empty() {
        let (rows, later) = rest.split_at(sql::rows_at_once(rest.iter().map(NewEvent::size)));
        let mut query = sqlx::query(sql::events_insert(rows.len()));
        for event in rows {
            after += 1;
            query = query
                .bind(head.place.0)
                .bind(tenant.0)
                .bind(after)
                .bind(event.stream.as_str())
                .bind(event.version.as_i64())
                .bind(event.id.as_bytes().as_slice())
                .bind(event.event_type.as_str())
                .bind(event.encoding.number())
                .bind(at.as_micros())
                .bind(event.size() as i64)
                .bind(event.headers.as_ref())
                .bind(event.body.as_ref());
        }
        link.execute(query).await.map_err(error::of)?;
        rest = later;
    }
    Ok(())
}

/// Moves heads by `(tenant, events)`.
pub(crate) async fn advance(
    link: &mut Link,
    moves: &[(i32, usize)],
    now: Timestamp,
    moved: i64,
) -> Result<()> {
    let query = sqlx::query(sql::HEADS_ADVANCE).bind(json(&moves)).bind(now.as_micros()).bind(moved);
    link.execute(query).await.map(drop).map_err(error::of)
}

/// A list as one value: names and numbers, never content.
pub(crate) fn json<T: serde::Serialize + ?Sized>(list: &T) -> String {
    serde_json::to_string(list).expect("numbers and text have a JSON form")
}
