//! The event log port: batches under expected heads, pages of one snapshot.

use std::time::Duration;

use async_trait::async_trait;
use bellwether_storage::{
    AppendBatch, AppendOutcome, AppendReceipt, Error, EventLog, HeadLock, Page, PageQuery, Place, Result,
    Sequence, StreamId, StreamPage, StreamQuery, StreamState, StreamVersions, TenantNo, Timestamp, Version,
};
use sqlx::postgres::PgRow;

use crate::decide::page::{Asked, PageRow, SEQUENCES_LOOKED_AT_MAX, assemble, check_versions};
use crate::error::{maybe_happened, nothing_happened};
use crate::handle::Postgres;
use crate::lock::PostgresHeadLock;
use crate::perform::link::{CommitWatch, Link};
use crate::rows::{EventArrays, EventColumns, Found};
use crate::sql;
use crate::values::{Values, column, signed, unsigned};

/// How often a read follows a tenant that moves from place to place while it is read.
const PLACES_TRIED_MAX: u32 = 4;

#[async_trait]
impl EventLog for Postgres {
    async fn append(&self, batch: &AppendBatch) -> Result<AppendReceipt> {
        if !batch.tenants.is_sorted_by(|a, b| a.tenant < b.tenant) {
            return Err(Error::rejected("a batch whose tenants are not in ascending order")
                .fix("sort and merge its entries"));
        }
        if batch.tenants.iter().any(|entry| entry.events.is_empty()) {
            return Err(Error::rejected("a batch with an entry without events").fix("leave that entry out"));
        }
        let mut link = self.shared.pools.append.acquire_from(batch.identity.as_ref()).await?;
        batch.check_identity(link.identity())?;
        if batch.tenants.is_empty() {
            return Ok(AppendReceipt { outcomes: Vec::new(), identity: link.identity().clone() });
        }
        let mut arrays = EventArrays::default();
        let mut owners: Vec<i32> = Vec::new();
        for entry in &batch.tenants {
            arrays.extend(entry.expected_head, &entry.events)?;
            owners.resize(owners.len() + entry.events.len(), entry.tenant.0);
        }
        let of = |column: fn(&bellwether_storage::TenantAppend) -> i64| {
            batch.tenants.iter().map(column).collect::<Vec<_>>()
        };
        let tenants: Vec<i32> = batch.tenants.iter().map(|entry| entry.tenant.0).collect();
        let places: Vec<i32> = batch.tenants.iter().map(|entry| entry.place.0).collect();
        let values = Values::with_room(arrays.bytes() + owners.len() * 32)
            .add(tenants)?
            .add(of(|entry| entry.expected_head.as_i64()))?
            .add(places)?
            .add(of(|entry| entry.events.len() as i64))?
            .add(batch.now.map(Timestamp::as_micros))?
            .add(owners)?;
        let values = arrays.bind(values)?.done();
        let watch = CommitWatch::start(&link);
        let rows = link.rows(sql::APPEND_BATCH, values).await.map_err(maybe_happened)?;
        watch.check()?;
        link.shrink(arrays.bytes());
        if rows.len() != batch.tenants.len() {
            return Err(Error::corrupt(format!("{} answers to {} entries", rows.len(), batch.tenants.len()))
                .fix("check who else changes these tables"));
        }
        let outcomes = rows.iter().map(|row| self.outcome(row)).collect::<Result<_>>()?;
        Ok(AppendReceipt { outcomes, identity: link.identity().clone() })
    }

    async fn lock_head(&self, tenant: TenantNo, wait: Duration) -> Result<Box<dyn HeadLock>> {
        let link = self.shared.pools.lock.acquire().await?;
        let lock = PostgresHeadLock::take(link, self.clone(), tenant, wait).await?;
        Ok(Box::new(lock))
    }

    async fn stream_versions(&self, tenant: TenantNo, streams: &[StreamId]) -> Result<StreamVersions> {
        let mut link = self.shared.pools.read.acquire().await?;
        read_versions(self, &mut link, tenant, streams).await
    }

    async fn read_page(&self, query: &PageQuery<'_>) -> Result<Page> {
        let mut link = self.shared.pools.read.acquire().await?;
        let mut place = self.shared.place(query.tenant);
        for _ in 0..PLACES_TRIED_MAX {
            match page_at(&mut link, query, place).await? {
                Found::Here(page) => return Ok(page),
                Found::Elsewhere(found) => place = found,
            }
            self.shared.saw_place(query.tenant, place);
        }
        Err(restless(query.tenant))
    }

    async fn read_stream(&self, query: &StreamQuery<'_>) -> Result<StreamPage> {
        let mut link = self.shared.pools.read.acquire().await?;
        let mut place = self.shared.place(query.tenant);
        for _ in 0..PLACES_TRIED_MAX {
            match stream_page_at(&mut link, query, place).await? {
                Found::Here(page) => return Ok(page),
                Found::Elsewhere(found) => place = found,
            }
            self.shared.saw_place(query.tenant, place);
        }
        Err(restless(query.tenant))
    }
}

impl Postgres {
    /// What became of one entry.
    fn outcome(&self, row: &PgRow) -> Result<AppendOutcome> {
        let tenant = TenantNo(column(row, 0)?);
        let head: Option<i64> = column(row, 1)?;
        let Some(head) = head else {
            let here: bool = column(row, 5)?;
            return Ok(if here { AppendOutcome::Busy } else { AppendOutcome::NoTenant });
        };
        let place = Place(column(row, 3)?);
        self.shared.saw_place(tenant, place);
        let at: Option<i64> = column(row, 4)?;
        let open: bool = column(row, 2)?;
        Ok(match at {
            Some(at) => AppendOutcome::Done { at: Timestamp::from_micros(at) },
            None if !open => AppendOutcome::Closed,
            None => AppendOutcome::Stale { head: Sequence::from_i64(head)?, place },
        })
    }
}

/// States of streams and their head, in one snapshot.
pub(crate) async fn read_versions(
    database: &Postgres,
    link: &mut Link,
    tenant: TenantNo,
    streams: &[StreamId],
) -> Result<StreamVersions> {
    let names: Vec<&str> = streams.iter().map(StreamId::as_str).collect();
    for _ in 0..PLACES_TRIED_MAX {
        let asked = database.shared.place(tenant);
        let values = Values::default().add(tenant.0)?.add(asked.0)?.add(names.as_slice())?.done();
        let rows = link.rows(sql::STREAMS_VERSIONS, values).await.map_err(nothing_happened)?;
        let first = rows.first().ok_or_else(|| no_tenant(tenant))?;
        let place = Place(column(first, 1)?);
        if place != asked {
            database.shared.saw_place(tenant, place);
            continue;
        }
        let head = Sequence::from_i64(column(first, 0)?)?;
        let states = rows.iter().take(streams.len()).map(|row| {
            Ok(StreamState { version: Version::from_i64(column(row, 4)?)?, archived: column(row, 5)? })
        });
        let streams = states.collect::<Result<_>>()?;
        return Ok(StreamVersions { head, place, streams, identity: link.identity().clone() });
    }
    Err(restless(tenant))
}

async fn page_at(link: &mut Link, query: &PageQuery<'_>, place: Place) -> Result<Found<Page>> {
    let after = query.after.get();
    let up_to = query.up_to.map_or(u64::MAX, Sequence::get);
    let look_to = up_to.min(after.saturating_add(SEQUENCES_LOOKED_AT_MAX)).min(Sequence::MAX.get());
    let events_max = u64::from(query.events_max.max(1));
    let types: Option<Vec<&str>> = query.types.map(|types| types.iter().map(|t| t.as_str()).collect());
    let values = Values::default()
        .add(query.tenant.0)?
        .add(place.0)?
        .add(query.after.as_i64())?
        .add(signed(look_to, "sequence")?)?
        .add(types)?
        .add(signed(events_max, "events_max")?)?
        .add(i64::try_from(query.bytes_max).unwrap_or(i64::MAX))?
        .done();
    let rows = link.rows(sql::EVENTS_PAGE, values).await.map_err(nothing_happened)?;
    let first = rows.first().ok_or_else(|| no_tenant(query.tenant))?;
    let head = Sequence::from_i64(column(first, 0)?)?;
    let found = Place(column(first, 1)?);
    if found != place {
        return Ok(Found::Elsewhere(found));
    }
    let asked = Asked { after, look_to, head: head.get(), events_max, bytes_max: query.bytes_max };
    let mut bytes = 0;
    let mut read = Vec::with_capacity(rows.len());
    for row in rows {
        let row = page_row(&row)?;
        bytes += row.iter().map(|row| row.size as usize).sum::<usize>();
        read.extend(row);
    }
    link.shrink(bytes);
    let page = assemble(&asked, read)?;
    Ok(Found::Here(Page {
        head,
        through: page.through,
        events: page.events,
        too_large: page.too_large,
        identity: link.identity().clone(),
    }))
}

/// A row of the page statement; none where it only carries the head.
fn page_row(row: &PgRow) -> Result<Option<PageRow>> {
    let sequence: Option<i64> = column(row, 2)?;
    if sequence.is_none() {
        return Ok(None);
    }
    let fits: bool = column(row, 5)?;
    let size: i32 = column(row, 6)?;
    let columns = EventColumns { sequence: 2, rest: 7 };
    Ok(Some(PageRow {
        sequence: unsigned(row, 2)?,
        nth: unsigned(row, 3)?,
        wanted: column(row, 4)?,
        size: u64::try_from(size).unwrap_or(0),
        event: if fits { Some(columns.read(row)?) } else { None },
    }))
}

async fn stream_page_at(link: &mut Link, query: &StreamQuery<'_>, place: Place) -> Result<Found<StreamPage>> {
    let values = Values::default()
        .add(query.tenant.0)?
        .add(place.0)?
        .add(query.stream.as_str())?
        .add(query.after.as_i64())?
        .add(i64::from(query.events_max.max(1)))?
        .add(i64::try_from(query.bytes_max).unwrap_or(i64::MAX))?
        .done();
    let rows = link.rows(sql::EVENTS_STREAM_PAGE, values).await.map_err(nothing_happened)?;
    let first = rows.first().ok_or_else(|| no_tenant(query.tenant))?;
    let found = Place(column(first, 1)?);
    if found != place {
        return Ok(Found::Elsewhere(found));
    }
    let head = Sequence::from_i64(column(first, 0)?)?;
    let version = Version::from_i64(column(first, 2)?)?;
    let columns = EventColumns { sequence: 3, rest: 4 };
    let mut events = Vec::with_capacity(rows.len());
    let mut bytes = 0;
    for row in rows {
        let sequence: Option<i64> = column(&row, 3)?;
        if sequence.is_some() {
            let event = columns.read(&row)?;
            bytes += event.size();
            events.push(event);
        }
    }
    link.shrink(bytes);
    check_versions(query.after, version, query.events_max, &events)?;
    Ok(Found::Here(StreamPage { head, place, version, events, identity: link.identity().clone() }))
}

/// There is no such tenant in this database.
pub(crate) fn no_tenant(tenant: TenantNo) -> Error {
    Error::rejected(format!("there is no tenant {} in this database", tenant.0))
        .fix("ask the directory again")
}

fn restless(tenant: TenantNo) -> Error {
    Error::unavailable(format!("tenant {} moved {PLACES_TRIED_MAX} times while it was read", tenant.0))
        .fix("try again")
}
