//! What goes into the writer, and what comes back to the caller.

use bellwether_storage::{
    AppendId, Error, NewEvent, Place, Sequence, ServerIdentity, StreamId, StreamState, Timestamp, Version,
};
use uuid::Uuid;

use crate::Expected;

/// Events that go in together or not at all, to one or several streams of one tenant.
#[derive(Debug)]
pub(crate) struct Append<T> {
    /// Comes back with the reply.
    pub(crate) token: T,
    /// One per stream and expectation, in the order of the events.
    pub(crate) parts: Vec<Part>,
    /// The events of all parts; their versions are decided later.
    pub(crate) events: Vec<NewEvent>,
    /// Sum of [`NewEvent::size`].
    pub(crate) bytes: usize,
    /// Given by the caller, so that a retry returns the first result.
    pub(crate) key: Option<AppendKey>,
    /// What the caller's own read of the first part's stream has shown.
    pub(crate) seen: Option<Seen>,
    /// Flights that failed without being refused.
    pub(super) strikes: u32,
    /// Refused on cached versions: to be tried once more under the lock before its caller is told.
    pub(super) doubted: bool,
    /// Reads of its tenant that had begun when it came.
    pub(super) reads_before: u32,
}

impl<T> Append<T> {
    pub(crate) fn new(token: T, parts: Vec<Part>, events: Vec<NewEvent>) -> Self {
        let bytes = events.iter().map(NewEvent::size).sum();
        Self {
            token,
            parts,
            events,
            bytes,
            key: None,
            seen: None,
            strikes: 0,
            doubted: false,
            reads_before: 0,
        }
    }
}

impl Append<()> {
    /// The same append with its caller's token.
    pub(crate) fn with_token<T>(self, token: T) -> Append<T> {
        Append {
            token,
            parts: self.parts,
            events: self.events,
            bytes: self.bytes,
            key: self.key,
            seen: self.seen,
            strikes: self.strikes,
            doubted: self.doubted,
            reads_before: self.reads_before,
        }
    }
}

/// The events of one stream in an append.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    pub(crate) stream: StreamId,
    pub(crate) expected: Expected,
    /// How many events.
    pub(crate) count: usize,
}

/// An append id with the digest of the content it stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AppendKey {
    pub(crate) id: Uuid,
    pub(crate) digest: [u8; 16],
}

/// A stream and the head it belongs to, as the caller's own read has shown them.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) stream: StreamId,
    pub(crate) state: StreamState,
    pub(crate) head: Sequence,
    pub(crate) place: Place,
    pub(crate) identity: ServerIdentity,
}

/// What became of an append.
#[derive(Debug)]
pub(crate) enum Reply {
    /// Appended: the first event has this sequence, and the streams of the parts have these versions now.
    Done { first: Sequence, versions: Vec<Version>, at: Timestamp },
    /// An append with the same id and content is there already.
    Repeated(AppendId),
    /// The stream of this part is not at the expected version. Nothing happened.
    Conflict { part: usize, actual: Version },
    /// The tenant takes no appends in this database (any more). Nothing happened; the content comes back.
    Moved { parts: Vec<Part>, events: Vec<NewEvent> },
    /// Refused or given up; the kind says whether anything may have happened.
    Failed(Error),
}
