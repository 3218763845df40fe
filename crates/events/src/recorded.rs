//! An event as it was recorded.

use std::collections::BTreeMap;

use bellwether_storage::{
    Encoding, EventId, Result, Sequence, StoredEvent, StreamId, TenantId, Timestamp, Version,
};

use crate::error::from_codec;
use crate::{Event, decode};

/// What travels beside an event: correlation, causation, user.
pub type Headers = BTreeMap<String, String>;

/// An event with where and when it was recorded.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded<E> {
    /// The tenant it belongs to.
    pub tenant: TenantId,
    /// The stream it belongs to.
    pub stream: StreamId,
    /// Position in the tenant.
    pub sequence: Sequence,
    /// Position in the stream.
    pub version: Version,
    /// Its identity.
    pub id: EventId,
    /// When it was appended, by the database's clock; never runs backwards along the sequence.
    pub at: Timestamp,
    /// What travelled beside it.
    pub headers: Headers,
    /// The event itself.
    pub event: E,
}

impl<E: Event> Recorded<E> {
    /// Decodes a stored event of a tenant.
    ///
    /// # Errors
    ///
    /// `Corrupt` when body or headers cannot be decoded, `Unsupported` when `E` does not know the type.
    pub fn from_stored(tenant: &TenantId, stored: StoredEvent) -> Result<Self> {
        let headers = match stored.headers.is_empty() {
            true => Headers::new(),
            false => decode("headers", Encoding::MessagePack, &stored.headers).map_err(from_codec)?,
        };
        Ok(Self {
            event: E::decode(stored.event_type.as_str(), stored.encoding, &stored.body)
                .map_err(from_codec)?,
            tenant: tenant.clone(),
            stream: stored.stream,
            sequence: stored.sequence,
            version: stored.version,
            id: stored.id,
            at: stored.at,
            headers,
        })
    }
}
