//! Appending: one batch under expected heads, and the lock for what cannot be decided ahead.

use async_trait::async_trait;
use uuid::Uuid;

use crate::{
    Error, NewEvent, Place, Result, Sequence, ServerIdentity, StreamId, StreamVersions, TenantNo, Timestamp,
};

/// Appends of several tenants that share one commit.
#[derive(Debug, Clone, Default)]
pub struct AppendBatch {
    /// At most one entry per tenant, in ascending order of tenant number.
    pub tenants: Vec<TenantAppend>,
    /// The moment to record; `None` takes the database's clock. Times still never run backwards along the sequence.
    pub now: Option<Timestamp>,
    /// The server the expectations were read from; `None` when they come from elsewhere (a test). An adapter that talks to
    /// another one refuses the batch: after a failover that lost commits, an equal head may belong to another history.
    pub identity: Option<ServerIdentity>,
}

impl AppendBatch {
    /// Refuses the batch when its expectations come from another server than the one that would carry it out.
    ///
    /// # Errors
    ///
    /// `Unavailable`: nothing happened; drop every cached fact, read again, decide again.
    pub fn check_identity(&self, found: &ServerIdentity) -> Result<()> {
        match &self.identity {
            Some(expected) if expected != found => Err(Error::unavailable(format!(
                "the server is another one ({found}) than the batch was decided on ({expected})"
            ))
            .fix("drop what was cached, read again and decide again")),
            _ => Ok(()),
        }
    }
}

/// Events of one tenant, all decided against one head.
#[derive(Debug, Clone)]
pub struct TenantAppend {
    /// The tenant.
    pub tenant: TenantNo,
    /// The head the decision was made against. The adapter appends only if the locked head equals it.
    pub expected_head: Sequence,
    /// The place the tenant's events lie in, as last seen. Compared like the head.
    pub place: Place,
    /// The events, in order; the first gets `expected_head + 1`. Never empty.
    pub events: Vec<NewEvent>,
}

/// What became of one tenant's entry in a batch. All but `Done` left nothing behind.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum AppendOutcome {
    /// Appended; the head is now `expected_head` + number of events.
    Done {
        /// Recorded with the events.
        at: Timestamp,
    },
    /// The head is locked by somebody else. Put the tenant into the slow lane ([`EventLog::lock_head`](crate::EventLog::lock_head)).
    Busy,
    /// The head or the place is not the expected one: somebody else appended. Decide again on fresh versions.
    Stale {
        /// The head found.
        head: Sequence,
        /// The place found.
        place: Place,
    },
    /// The tenant is closed here (moved, moving or dropping). Ask the directory again.
    Closed,
    /// No such tenant in this database. Ask the directory again.
    NoTenant,
}

/// Answer of one batch: the outcome of each entry, in the order of the batch, and who answered.
#[derive(Debug, Clone)]
pub struct AppendReceipt {
    /// One outcome per entry, in order.
    pub outcomes: Vec<AppendOutcome>,
    /// The server that answered. A change since the caller's facts were read makes those facts void.
    pub identity: ServerIdentity,
}

/// A head as seen under its lock, or in one snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeadState {
    /// Sequence of the tenant's last committed event.
    pub head: Sequence,
    /// Where its events lie.
    pub place: Place,
    /// Whether the tenant accepts appends here.
    pub open: bool,
    /// The server that answered.
    pub identity: ServerIdentity,
}

/// An append id given by the caller, so that a retry hours later returns the first result.
///
/// Read and written under the head lock only (`protocols.md` §1.4).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppendId {
    /// Given by the caller.
    pub id: Uuid,
    /// Digest of the append's content: the same id with another content is refused by the caller of this port.
    pub digest: [u8; 16],
    /// Sequence of the first event of that append.
    pub first: Sequence,
    /// How many events it had.
    pub count: u32,
}

/// A transaction that holds the head of one tenant, for appends that must read before they decide: stale caches, unknown
/// streams, busy tenants, append ids, large appends.
///
/// Dropping it without [`HeadLock::append`] rolls back and leaves nothing behind.
#[async_trait]
pub trait HeadLock: Send {
    /// The head as locked.
    fn state(&self) -> &HeadState;

    /// Versions of these streams under the lock; a stream that does not exist has version zero. Same order as asked.
    ///
    /// # Errors
    ///
    /// `Unavailable` when the database cannot be reached: the lock is gone, start again.
    async fn versions(&mut self, streams: &[StreamId]) -> Result<StreamVersions>;

    /// Which of these append ids are already recorded for this tenant.
    ///
    /// # Errors
    ///
    /// `Unavailable` when the database cannot be reached: the lock is gone, start again.
    async fn append_ids(&mut self, ids: &[Uuid]) -> Result<Vec<AppendId>>;

    /// Appends the events after the locked head, records the ids and commits.
    ///
    /// # Errors
    ///
    /// `Rejected` when the database refuses a row (nothing happened; split to find the culprit), `Conflict` when a deadlock
    /// or a serialization failure rolled it back, `Unavailable` when nothing was sent, `Unknown` when the commit's answer was
    /// lost: lock the head again and look for the own event ids after the head seen here.
    async fn append(
        self: Box<Self>,
        events: &[NewEvent],
        ids: &[AppendId],
        now: Option<Timestamp>,
    ) -> Result<Timestamp>;
}
