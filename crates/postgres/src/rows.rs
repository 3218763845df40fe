//! Rows of events, read and written.

use bellwether_storage::{
    Encoding, Error, EventType, NewEvent, Place, Result, Sequence, StoredEvent, StreamId, Timestamp, Version,
};
use bytes::Bytes;
use sqlx::postgres::PgRow;
use uuid::Uuid;

use crate::error::corrupt;
use crate::values::{Values, column};

/// First column of each part of an event in a row.
pub(crate) struct EventColumns {
    pub(crate) sequence: usize,
    /// version, at, id, encoding, stream, type, headers, body follow each other from here.
    pub(crate) rest: usize,
}

impl EventColumns {
    pub(crate) fn read(&self, row: &PgRow) -> Result<StoredEvent> {
        let stream: &str = column(row, self.rest + 4)?;
        let event_type: &str = column(row, self.rest + 5)?;
        Ok(StoredEvent {
            sequence: Sequence::from_i64(column(row, self.sequence)?)?,
            version: Version::from_i64(column(row, self.rest)?)?,
            at: Timestamp::from_micros(column(row, self.rest + 1)?),
            id: column(row, self.rest + 2)?,
            encoding: Encoding::from_number(column(row, self.rest + 3)?)?,
            stream: StreamId::new(stream).map_err(|error| corrupt("stream id", error))?,
            event_type: EventType::new(event_type).map_err(|error| corrupt("event type", error))?,
            headers: Bytes::copy_from_slice(column(row, self.rest + 6)?),
            body: Bytes::copy_from_slice(column(row, self.rest + 7)?),
        })
    }
}

/// Columns of events, one array each, as statements take them.
#[derive(Default)]
pub(crate) struct EventArrays<'a> {
    sequences: Vec<i64>,
    streams: Vec<&'a str>,
    versions: Vec<i64>,
    ids: Vec<Uuid>,
    types: Vec<&'a str>,
    encodings: Vec<i16>,
    sizes: Vec<i32>,
    headers: Vec<&'a [u8]>,
    bodies: Vec<&'a [u8]>,
    bytes: usize,
}

impl<'a> EventArrays<'a> {
    /// Adds events that follow `after`.
    ///
    /// # Errors
    ///
    /// `Rejected` when a number or a size is larger than the database can hold.
    pub(crate) fn extend(&mut self, after: Sequence, events: &'a [NewEvent]) -> Result<()> {
        let count = events.len() as u64;
        if Sequence::MAX.get() - after.get() < count {
            return Err(Error::rejected(format!(
                "{count} events after sequence {after} exceed the last number"
            ))
            .fix("use another tenant"));
        }
        for (nth, event) in events.iter().enumerate() {
            self.sequences.push(after.plus(nth as u64 + 1).as_i64());
            self.streams.push(event.stream.as_str());
            self.versions.push(event.version.as_i64());
            self.ids.push(event.id);
            self.types.push(event.event_type.as_str());
            self.encodings.push(event.encoding.number());
            self.sizes.push(i32::try_from(event.size()).map_err(|_| too_large(event))?);
            self.headers.push(&event.headers);
            self.bodies.push(&event.body);
            self.bytes += event.size();
        }
        Ok(())
    }

    /// Bytes of all events added.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds the arrays to a statement: seq, stream, version, id, type, encoding, size, headers, body.
    pub(crate) fn bind(&self, values: Values) -> Result<Values> {
        values
            .add(self.sequences.as_slice())?
            .add(self.streams.as_slice())?
            .add(self.versions.as_slice())?
            .add(self.ids.as_slice())?
            .add(self.types.as_slice())?
            .add(self.encodings.as_slice())?
            .add(self.sizes.as_slice())?
            .add(self.headers.as_slice())?
            .add(self.bodies.as_slice())
    }
}

fn too_large(event: &NewEvent) -> Error {
    Error::rejected(format!("an event of {} bytes is too large", event.size()))
        .fix("put large content elsewhere and its address into the event")
}

/// A place that a statement found instead of the one it was sent with.
pub(crate) enum Found<T> {
    Here(T),
    Elsewhere(Place),
}
