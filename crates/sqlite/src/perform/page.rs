//! Reading the log: pages of a tenant, pages of a stream, versions of streams.

use bellwether_storage::{
    Encoding, Error, EventType, Page, PageQuery, Place, Result, Sequence, ServerIdentity, StoredEvent,
    StreamId, StreamPage, StreamQuery, StreamState, StreamVersions, TenantNo, Timestamp, Version,
};
use bytes::Bytes;
use sqlx::sqlite::SqliteRow;
use uuid::Uuid;

use super::append::json;
use super::head_lock::no_tenant;
use super::link::{Link, column};
use crate::sql;

/// Sequences one page looks at, at most, when it passes over types nobody asked for: some milliseconds of reading, so that a
/// page without a match still comes back soon and its progress is kept.
pub(crate) const SCAN_MAX: i64 = 20_000;

/// See [`EventLog::read_page`](bellwether_storage::EventLog::read_page).
pub(crate) async fn read_page(
    link: &mut Link,
    query: &PageQuery<'_>,
    identity: ServerIdentity,
) -> Result<Page> {
    let after = query.after.as_i64();
    let up_to = query.up_to.map_or(i64::MAX, Sequence::as_i64).min(after.saturating_add(SCAN_MAX));
    let types = query.types.map(|types| json(&types.iter().map(EventType::as_str).collect::<Vec<_>>()));
    let statement = sqlx::query(sql::EVENTS_PAGE)
        .bind(query.tenant.0)
        .bind(after)
        .bind(up_to)
        .bind(types)
        .bind(query.events_max.max(1))
        .bind(i64::try_from(query.bytes_max).unwrap_or(i64::MAX));

    let mut page: Option<Page> = None;
    let mut next: Option<(Sequence, u64)> = None;
    link.each(statement, |row| {
        let page = match &mut page {
            Some(page) => page,
            None => page.insert(first_row(row, query, identity.clone())?),
        };
        let Some(sequence) = column::<Option<i64>>(row, 3)? else { return Ok(()) };
        let sequence = Sequence::from_i64(sequence)?;
        let size: u64 = column(row, 4)?;
        if column(row, 5)? {
            page.events.push(stored_event(row, 6, sequence, Some(size))?);
        } else {
            next = Some((sequence, size));
        }
        Ok(())
    })
    .await?;
    let mut page = page.ok_or_else(|| no_tenant(query.tenant))?;
    // They come in order as it is; the statement only does not promise it.
    page.events.sort_by_key(|event| event.sequence);
    if page.events.is_empty() {
        page.too_large = next;
    }
    Ok(page)
}

/// The page before its events; checks the range for holes.
fn first_row(row: &SqliteRow, query: &PageQuery<'_>, identity: ServerIdentity) -> Result<Page> {
    let through = Sequence::from_i64(column(row, 1)?)?;
    let found: u64 = column(row, 2)?;
    let expected = through.get() - query.after.get();
    if found != expected {
        return Err(Error::corrupt(format!(
            "{found} events of tenant number {} between sequences {} and {through}, expected {expected}",
            query.tenant.0, query.after
        ))
        .fix("stop its projections and restore the missing events from a backup"));
    }
    let head = Sequence::from_i64(column(row, 0)?)?;
    Ok(Page { head, through, events: Vec::new(), too_large: None, identity })
}

/// See [`EventLog::read_stream`](bellwether_storage::EventLog::read_stream).
pub(crate) async fn read_stream(
    link: &mut Link,
    query: &StreamQuery<'_>,
    identity: ServerIdentity,
) -> Result<StreamPage> {
    let statement = sqlx::query(sql::EVENTS_STREAM_PAGE)
        .bind(query.tenant.0)
        .bind(query.stream.as_str())
        .bind(query.after.as_i64())
        .bind(query.events_max.max(1))
        .bind(i64::try_from(query.bytes_max).unwrap_or(i64::MAX));
    let mut page: Option<StreamPage> = None;
    link.each(statement, |row| {
        let page = match &mut page {
            Some(page) => page,
            None => page.insert(StreamPage {
                head: Sequence::from_i64(column(row, 0)?)?,
                place: Place(column(row, 1)?),
                version: Version::from_i64(column(row, 2)?)?,
                events: Vec::new(),
                identity: identity.clone(),
            }),
        };
        let Some(sequence) = column::<Option<i64>>(row, 3)? else { return Ok(()) };
        page.events.push(stored_event(row, 4, Sequence::from_i64(sequence)?, None)?);
        Ok(())
    })
    .await?;
    let mut page = page.ok_or_else(|| no_tenant(query.tenant))?;
    page.events.sort_by_key(|event| event.version);
    let mut expected = query.after;
    for event in &page.events {
        expected = expected.next();
        if event.version != expected {
            return Err(Error::corrupt(format!(
                "stream {:?} of tenant number {} goes on with version {}, expected {expected}",
                query.stream.as_str(),
                query.tenant.0,
                event.version
            ))
            .fix("restore the missing events from a backup"));
        }
    }
    Ok(page)
}

/// States of streams and the head they belong to; under the lock when the connection is in a transaction that writes.
pub(crate) async fn read_versions(
    link: &mut Link,
    tenant: TenantNo,
    streams: &[StreamId],
    identity: ServerIdentity,
) -> Result<StreamVersions> {
    let names: Vec<&str> = streams.iter().map(StreamId::as_str).collect();
    let statement = sqlx::query(sql::STREAMS_VERSIONS).bind(tenant.0).bind(json(&names));
    let mut versions: Option<StreamVersions> = None;
    link.each(statement, |row| {
        let versions = match &mut versions {
            Some(versions) => versions,
            None => versions.insert(StreamVersions {
                head: Sequence::from_i64(column(row, 0)?)?,
                place: Place(column(row, 1)?),
                streams: Vec::with_capacity(streams.len()),
                identity: identity.clone(),
            }),
        };
        if column(row, 2)? {
            let version = Version::from_i64(column(row, 3)?)?;
            versions.streams.push(StreamState { version, archived: column(row, 4)? });
        }
        Ok(())
    })
    .await?;
    versions.ok_or_else(|| no_tenant(tenant))
}

/// An event from eight columns starting at `at`.
fn stored_event(row: &SqliteRow, at: usize, sequence: Sequence, size: Option<u64>) -> Result<StoredEvent> {
    let unreadable = |what: &str, error: Error| {
        Error::corrupt(format!(
            "the {what} of the event at sequence {sequence} cannot be read: {}",
            error.message()
        ))
        .fix("check who else writes to this file")
        .source(error)
    };
    let event = StoredEvent {
        sequence,
        stream: StreamId::new(column::<&str>(row, at)?).map_err(|error| unreadable("stream", error))?,
        version: Version::from_i64(column(row, at + 1)?)?,
        id: Uuid::from_slice(column(row, at + 2)?)
            .map_err(|error| unreadable("id", Error::corrupt(error.to_string())))?,
        event_type: EventType::new(column::<&str>(row, at + 3)?)
            .map_err(|error| unreadable("type", error))?,
        encoding: Encoding::from_number(column(row, at + 4)?)?,
        at: Timestamp::from_micros(column(row, at + 5)?),
        headers: Bytes::from(column::<Vec<u8>>(row, at + 6)?),
        body: Bytes::from(column::<Vec<u8>>(row, at + 7)?),
    };
    match size {
        Some(size) if size != event.size() as u64 => Err(Error::corrupt(format!(
            "the event at sequence {sequence} has {} bytes, stored with it are {size}",
            event.size()
        ))
        .fix("check who else writes to this file")),
        _ => Ok(event),
    }
}
