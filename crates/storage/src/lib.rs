//! The vocabulary of Bellwether, and the ports a database must implement.
//!
//! Everything above this crate (events, daemon, tenants, agents) talks to databases through the small traits here; everything
//! below it (memory, SQLite, PostgreSQL, …) implements them and sits the exam of `bellwether-conformance`. No driver type
//! appears in any signature.
//!
//! # Example
//!
//! ```
//! use bellwether_storage::{ErrorKind, StreamId, TenantId};
//!
//! let tenant = TenantId::new("acme")?;
//! let stream = StreamId::new("account/a-1")?;
//! assert_eq!((tenant.as_str(), stream.as_str()), ("acme", "account/a-1"));
//!
//! let refused = TenantId::new("Acme'; --").unwrap_err();
//! assert_eq!(refused.kind(), ErrorKind::Rejected);
//! # Ok::<(), bellwether_storage::Error>(())
//! ```
//!
//! # Model
//!
//! A *database* holds many *tenants*. Each tenant has one *head*: the sequence of its last committed event. Appending locks the
//! head first and nothing else, so numbers are contiguous at commit and in commit order: a reader that has seen sequence `n`
//! has seen everything up to `n`, always. *Projections* keep a *progress* row per tenant; documents, progress and dead letters
//! of a page commit in one transaction through a [`UnitOfWork`].
//!
//! # Guarantees an adapter gives
//!
//! * Per tenant, sequences are 1, 2, 3 … without holes, in commit order ([`EventLog`]).
//! * An append compares the locked head with the caller's expectation; a stale expectation changes nothing.
//! * A page is read from one snapshot, head and events together; a hole is [`ErrorKind::Corrupt`], never skipped.
//! * A page transaction compares generation, owner and sequence before it writes; a stale one leaves nothing behind.
//! * Every fact a caller caches is bound to one [`ServerIdentity`].
//!
//! # Where to start reading
//!
//! [`Database`] is the sum of the ports; [`EventLog`] and [`Projections`] are the two that matter most.

mod error;
mod identity;
mod timestamp;

mod stream;
mod tenant;

mod event;
mod limits;

mod append;
mod log;
mod page;

mod discovery;
mod tenants;

mod document;
mod progress;
mod projections;
mod unit;

mod sql;

mod database;
mod directory;

pub use append::{AppendBatch, AppendId, AppendOutcome, AppendReceipt, HeadLock, HeadState, TenantAppend};
pub use database::{Activity, Counters, Database, PageStyle};
pub use directory::{DatabaseNo, Directory, Location};
pub use discovery::{Discovery, DiscoveryCursor, Moved, MovedHead};
pub use document::{DeadLetter, Document, DocumentKey, DocumentSet, DocumentWrite, ViewName, ViewNo};
pub use error::{BoxError, Error, ErrorKind, Result};
pub use event::{Encoding, EventId, EventType, NewEvent, StoredEvent};
pub use identity::ServerIdentity;
pub use limits::{
    APPENDS_PER_TENANT_AND_BATCH_BYTES_MAX, BATCH_BYTES_MAX, DOCUMENT_KEY_BYTES_MAX, EVENT_BYTES_MAX,
    EVENT_TYPE_BYTES_MAX, EVENTS_PER_APPEND_MAX, HEADERS_BYTES_MAX, STREAM_ID_BYTES_MAX, TENANT_ID_BYTES_MAX,
};
pub use log::EventLog;
pub use page::{Page, PageQuery, StreamPage, StreamQuery, StreamState, StreamVersions};
pub use progress::{
    Build, FenceClaim, FenceOutcome, FenceRequest, Generation, Owner, Progress, ProgressKey, ProjectionName,
    ProjectionNo,
};
pub use projections::Projections;
pub use sql::{Row, SqlDialect, Statement, Value};
pub use stream::{Sequence, StreamId, Version};
pub use tenant::{Place, TenantId, TenantNo};
pub use tenants::{TenantEntry, Tenants};
pub use timestamp::Timestamp;
pub use unit::{PageStart, UnitOfWork};
