//! What the writer wants done, and what it has to say.

use std::sync::Arc;
use std::time::Duration;

use bellwether_storage::{
    AppendBatch, AppendId, EventId, NewEvent, Sequence, ServerIdentity, StreamId, TenantId, TenantNo,
    Timestamp,
};
use uuid::Uuid;

use super::Reply;

/// Number of a flight; never used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct FlightNo(pub(crate) u64);

/// A task, to be begun after a delay. Its outcome must be reported under its number, whatever happens.
#[derive(Debug)]
pub(crate) struct Order {
    pub(crate) flight: FlightNo,
    pub(crate) delay: Duration,
    pub(crate) task: Task,
}

/// One thing to do against the database.
#[derive(Debug)]
pub(crate) enum Task {
    /// Append a batch; report with [`Writer::appended`](super::Writer::appended).
    Append(Arc<AppendBatch>),
    /// Lock a head: [`locked`](super::Writer::locked), [`looked`](super::Writer::looked), [`written`](super::Writer::written),
    /// as far as they say to go on; then let the lock go.
    Lock { tenant: TenantNo, wait: Duration },
    /// Read versions; report with [`Writer::read`](super::Writer::read).
    Read { tenant: TenantNo, streams: Vec<StreamId> },
    /// Read the one event after this sequence; report with [`Writer::found`](super::Writer::found).
    Find { tenant: TenantNo, after: Sequence },
    /// Ask which server answers; report with [`Writer::probed`](super::Writer::probed).
    Probe,
}

/// What to read under a lock. Nothing to read is no statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Look {
    pub(crate) streams: Vec<StreamId>,
    pub(crate) ids: Vec<Uuid>,
}

/// What to append under a lock.
#[derive(Debug)]
pub(crate) struct Write {
    pub(crate) events: Vec<NewEvent>,
    pub(crate) ids: Vec<AppendId>,
}

/// The event after a sequence, if there is one.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) event: Option<(EventId, Timestamp)>,
    pub(crate) identity: ServerIdentity,
}

/// What the writer has to say.
#[derive(Debug)]
pub(crate) enum News<T> {
    /// To the caller of an append.
    Reply(T, Reply),
    /// To whoever waits for the tenant.
    Head { tenant: TenantNo, id: TenantId, head: Sequence },
}
