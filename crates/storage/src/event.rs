//! Events as bytes: what goes into a database and what comes back.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use uuid::Uuid;

use crate::stream::check_name;
use crate::{EVENT_TYPE_BYTES_MAX, Result, Sequence, StreamId, Timestamp, Version};

/// Identity of an event, made by the client (UUID v7). Tells whose append won when an outcome is unknown; never an ordering.
pub type EventId = Uuid;

/// Stable name of an event's type: 1 to 128 bytes of UTF-8 without control characters, compared byte for byte.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventType(Arc<str>);

impl EventType {
    /// Checks and wraps a type's name.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Rejected`](crate::ErrorKind::Rejected) when the name is empty, too long or holds a control character.
    pub fn new(name: impl AsRef<str>) -> Result<Self> {
        let name = name.as_ref();
        check_name("event type", name, EVENT_TYPE_BYTES_MAX)?;
        Ok(Self(name.into()))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for EventType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// How a body is encoded. Stored as a number beside each event, so that a log may mix encodings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Encoding {
    /// MessagePack with named fields.
    #[default]
    MessagePack,
    /// JSON text.
    Json,
}

impl Encoding {
    /// The stored number.
    pub const fn number(self) -> i16 {
        match self {
            Self::MessagePack => 0,
            Self::Json => 1,
        }
    }

    /// From the stored number.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Corrupt`](crate::ErrorKind::Corrupt) when no such encoding exists: written by a newer version.
    pub fn from_number(number: i16) -> Result<Self> {
        match number {
            0 => Ok(Self::MessagePack),
            1 => Ok(Self::Json),
            _ => Err(crate::Error::corrupt(format!("unknown encoding {number}"))
                .fix("upgrade this program: a newer one wrote this event")),
        }
    }
}

/// An event to append. Its sequence is `expected head + 1 + index` within its [`TenantAppend`](crate::TenantAppend).
#[derive(Debug, Clone, PartialEq)]
pub struct NewEvent {
    /// The stream it belongs to.
    pub stream: StreamId,
    /// Its number in that stream, decided by the caller under the head comparison.
    pub version: Version,
    /// Made by the client; unique.
    pub id: EventId,
    /// Name of its type.
    pub event_type: EventType,
    /// How `body` is encoded.
    pub encoding: Encoding,
    /// The encoded content; at most [`EVENT_BYTES_MAX`](crate::EVENT_BYTES_MAX).
    pub body: Bytes,
    /// Encoded headers, empty for none; at most [`HEADERS_BYTES_MAX`](crate::HEADERS_BYTES_MAX).
    pub headers: Bytes,
}

impl NewEvent {
    /// What this event counts against byte limits and budgets: body, headers, names and a fixed part.
    pub fn size(&self) -> usize {
        event_size(self.stream.as_str(), self.event_type.as_str(), self.body.len(), self.headers.len())
    }
}

/// An event read back.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredEvent {
    /// Position in the tenant.
    pub sequence: Sequence,
    /// The stream it belongs to.
    pub stream: StreamId,
    /// Position in the stream.
    pub version: Version,
    /// Made by the client that appended it.
    pub id: EventId,
    /// Name of its type.
    pub event_type: EventType,
    /// How `body` is encoded.
    pub encoding: Encoding,
    /// The encoded content.
    pub body: Bytes,
    /// Encoded headers, empty for none.
    pub headers: Bytes,
    /// When it was appended, by the database's clock; never runs backwards along the sequence.
    pub at: Timestamp,
}

impl StoredEvent {
    /// What this event counts against byte limits and budgets; equals [`NewEvent::size`] of the appended event.
    pub fn size(&self) -> usize {
        event_size(self.stream.as_str(), self.event_type.as_str(), self.body.len(), self.headers.len())
    }
}

/// Fixed part: ids, numbers, time and the structs around them.
const EVENT_OVERHEAD_BYTES: usize = 96;

fn event_size(stream: &str, event_type: &str, body: usize, headers: usize) -> usize {
    EVENT_OVERHEAD_BYTES + stream.len() + event_type.len() + body + headers
}
