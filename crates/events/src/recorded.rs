//! An event as it was recorded.

use std::collections::BTreeMap;

use bellwether_storage::{EventId, Sequence, StreamId, TenantId, Timestamp, Version};

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
