//! Reading: pages of a tenant, pages of a stream.

use crate::{EventType, Place, Sequence, ServerIdentity, StoredEvent, StreamId, TenantNo, Version};

/// Asks for a page of a tenant's events.
#[derive(Debug, Clone)]
pub struct PageQuery<'a> {
    /// The tenant.
    pub tenant: TenantNo,
    /// Read what comes after this.
    pub after: Sequence,
    /// Do not read past this (a gate, a mark); `None` reads up to the head.
    pub up_to: Option<Sequence>,
    /// Load only these types; `None` loads all. Events of other types are passed over but still checked for holes.
    pub types: Option<&'a [EventType]>,
    /// At most this many events come back; at least 1.
    pub events_max: u32,
    /// Stop before the event whose size would bring the sum of [`StoredEvent::size`] above this.
    pub bytes_max: u64,
}

/// A page: head and events of one snapshot.
#[derive(Debug, Clone)]
pub struct Page {
    /// The tenant's head in that snapshot.
    pub head: Sequence,
    /// Everything after the query's `after` and up to here was looked at: the progress after this page has been worked on.
    /// Equals `after` when nothing could be read.
    pub through: Sequence,
    /// The events, in order.
    pub events: Vec<StoredEvent>,
    /// Set when not even the first matching event fits `bytes_max`: its sequence and size. `events` is then empty. Ask again
    /// with that many bytes.
    pub too_large: Option<(Sequence, u64)>,
    /// The server that answered.
    pub identity: ServerIdentity,
}

/// Asks for a page of one stream.
#[derive(Debug, Clone)]
pub struct StreamQuery<'a> {
    /// The tenant.
    pub tenant: TenantNo,
    /// The stream.
    pub stream: &'a StreamId,
    /// Read what comes after this version.
    pub after: Version,
    /// At most this many events come back; at least 1.
    pub events_max: u32,
    /// Stop before the event that would bring the sum of sizes above this; the first event always comes.
    pub bytes_max: u64,
}

/// A page of one stream, with the tenant's head in the same snapshot.
///
/// Head and version together let a writer's cache be exact without a second read: if the head has not moved when the append
/// locks it, the stream has not moved either.
#[derive(Debug, Clone)]
pub struct StreamPage {
    /// The tenant's head in that snapshot.
    pub head: Sequence,
    /// Where the tenant's events lie.
    pub place: Place,
    /// The stream's last version in that snapshot; zero when it does not exist.
    pub version: Version,
    /// The events, in order.
    pub events: Vec<StoredEvent>,
    /// The server that answered.
    pub identity: ServerIdentity,
}

/// What an append must know of a stream.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StreamState {
    /// Its last version; zero when it does not exist.
    pub version: Version,
    /// An archived stream takes no more events.
    pub archived: bool,
}

/// States of streams and the head they belong to, from one snapshot.
#[derive(Debug, Clone)]
pub struct StreamVersions {
    /// The tenant's head in that snapshot.
    pub head: Sequence,
    /// Where the tenant's events lie.
    pub place: Place,
    /// One state per stream, in the order asked.
    pub streams: Vec<StreamState>,
    /// The server that answered.
    pub identity: ServerIdentity,
}
