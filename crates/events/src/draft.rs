//! From typed events to what is sent: encoded, checked against every limit before anything is sent.

use std::collections::BTreeMap;

use bellwether_storage::{
    EVENT_BYTES_MAX, EVENTS_PER_APPEND_MAX, Encoding, Error, EventType, HEADERS_BYTES_MAX, NewEvent, Result,
    StreamId, Version,
};
use bytes::Bytes;
use uuid::Uuid;

use crate::decide::Part;
use crate::error::from_codec;
use crate::limits::APPEND_BYTES_MAX;
use crate::{Event, Expected, Headers, encode_within};

/// An append being put together.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    pub(crate) parts: Vec<Part>,
    pub(crate) events: Vec<NewEvent>,
    bytes: usize,
    types: BTreeMap<&'static str, EventType>,
}

impl Draft {
    /// Adds the events of one stream. Stops at the first limit that is passed, however many events would follow.
    pub(crate) fn add<E: Event>(
        &mut self,
        stream: &StreamId,
        encoding: Encoding,
        events: impl IntoIterator<Item = E>,
    ) -> Result<()> {
        for event in events {
            if self.events.len() == EVENTS_PER_APPEND_MAX {
                return Err(too_many());
            }
            let body = event.encode(encoding).map_err(from_codec)?;
            if body.len() > EVENT_BYTES_MAX {
                let message = format!(
                    "an event of type {} takes {} bytes, at most {EVENT_BYTES_MAX}",
                    event.type_name(),
                    body.len()
                );
                return Err(
                    Error::rejected(message).fix("keep large content elsewhere and its address in the event")
                );
            }
            let event = NewEvent {
                stream: stream.clone(),
                version: Version::ZERO,
                id: Uuid::now_v7(),
                event_type: self.event_type(event.type_name())?,
                encoding,
                body: body.into(),
                headers: Bytes::new(),
            };
            self.bytes += event.size();
            if self.bytes > APPEND_BYTES_MAX {
                return Err(too_large());
            }
            self.events.push(event);
        }
        if self.events.is_empty() {
            return Err(Error::rejected(format!("an append without events to stream {:?}", stream.as_str()))
                .fix("leave it out when there is nothing to append"));
        }
        self.parts.push(Part { stream: stream.clone(), expected: Expected::Any, count: self.events.len() });
        Ok(())
    }

    /// The same events with an expectation and headers.
    pub(crate) fn into_part(mut self, expected: Expected, headers: Bytes) -> Self {
        for part in &mut self.parts {
            part.expected = expected;
        }
        if !headers.is_empty() {
            self.bytes += headers.len() * self.events.len();
            for event in &mut self.events {
                event.headers = headers.clone();
            }
        }
        self
    }

    /// Takes another draft in, behind its own events.
    pub(crate) fn join(&mut self, other: Self) -> Result<()> {
        if self.events.len() + other.events.len() > EVENTS_PER_APPEND_MAX {
            return Err(too_many());
        }
        self.bytes += other.bytes;
        if self.bytes > APPEND_BYTES_MAX {
            return Err(too_large());
        }
        self.parts.extend(other.parts);
        self.events.extend(other.events);
        Ok(())
    }

    fn event_type(&mut self, name: &'static str) -> Result<EventType> {
        if let Some(known) = self.types.get(name) {
            return Ok(known.clone());
        }
        let checked = EventType::new(name)?;
        self.types.insert(name, checked.clone());
        Ok(checked)
    }

    /// Digest of the content: streams, types, encodings, bodies and headers, in order. What was expected is no part of it.
    pub(crate) fn digest(&self) -> [u8; 16] {
        let mut digest = Fnv::default();
        for event in &self.events {
            digest.field(event.stream.as_str().as_bytes());
            digest.field(event.event_type.as_str().as_bytes());
            digest.field(&event.encoding.number().to_be_bytes());
            digest.field(&event.body);
            digest.field(&event.headers);
        }
        digest.0.to_be_bytes()
    }
}

fn too_many() -> Error {
    Error::rejected(format!("more than {EVENTS_PER_APPEND_MAX} events in one append"))
        .fix("split it into several appends")
}

fn too_large() -> Error {
    Error::rejected(format!("more than {APPEND_BYTES_MAX} bytes in one append"))
        .fix("split it into several appends")
}

/// Encoded headers, empty for none. Checked before and after encoding, so that a huge map costs no huge buffer.
pub(crate) fn encode_headers(headers: &Headers) -> Result<Bytes> {
    if headers.is_empty() {
        return Ok(Bytes::new());
    }
    let raw: usize = headers.iter().map(|(name, value)| name.len() + value.len()).sum();
    let refuse = || {
        Error::rejected(format!("{raw} bytes of headers, at most {HEADERS_BYTES_MAX} once encoded"))
            .fix("headers are for correlation, causation and the user; content belongs into the event")
    };
    if raw > HEADERS_BYTES_MAX {
        return Err(refuse());
    }
    match encode_within("headers", Encoding::MessagePack, headers, HEADERS_BYTES_MAX) {
        Ok(bytes) => Ok(bytes.into()),
        Err(_) => Err(refuse()),
    }
}

/// FNV-1a over 128 bits: tells different contents apart by chance, not against an adversary; the id is the caller's own.
struct Fnv(u128);

impl Default for Fnv {
    fn default() -> Self {
        Self(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d)
    }
}

impl Fnv {
    /// Takes in a field with its length, so that neighbours never run together.
    fn field(&mut self, bytes: &[u8]) {
        for byte in (bytes.len() as u64).to_be_bytes().iter().chain(bytes) {
            self.0 = (self.0 ^ u128::from(*byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
        }
    }
}
