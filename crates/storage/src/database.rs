//! One database: the sum of the ports.

use async_trait::async_trait;

use crate::{Discovery, EventLog, Projections, Result, ServerIdentity, SqlDialect, Tenants};

/// How a page's output must be written here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum PageStyle {
    /// Pages and appends run side by side: begin early, write chunks as they fill (PostgreSQL).
    Streaming,
    /// A page's transaction keeps every append waiting: compute first, then a short transaction; when the output exceeds a
    /// chunk, cut the page (SQLite, `protocols.md` §2.4).
    ComputeFirst,
}

/// Work done so far, for reports.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Statements sent, transaction control included.
    pub statements: u64,
    /// Of these, discovery reads.
    pub discovery_reads: u64,
}

/// How much a database of a server has changed, in units that only say "more than before".
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Activity {
    /// Name of the database on its server; equals [`Database::name`] of the one it belongs to.
    pub database: String,
    /// Grows with every change, possibly seconds late.
    pub changes: u64,
}

/// A database that holds tenants: what the layers above work with, as `Arc<dyn Database>`.
#[async_trait]
pub trait Database: EventLog + Discovery + Tenants + Projections {
    /// Name of the database on its server; for messages and for [`Activity`]. Holds no credentials.
    fn name(&self) -> &str;

    /// The SQL it speaks; `None` where there is none.
    fn dialect(&self) -> Option<SqlDialect>;

    /// How pages are written here.
    fn page_style(&self) -> PageStyle;

    /// Pages in flight this database stands at most; `None` leaves it to the configuration.
    fn pages_max(&self) -> Option<u32>;

    /// Which server, in which life, answers now.
    ///
    /// # Errors
    ///
    /// `Unavailable` when the database cannot be reached.
    async fn identity(&self) -> Result<ServerIdentity>;

    /// How much every database of this server has changed: one cheap read that spares polling the idle ones. `None` where
    /// there is no such thing.
    ///
    /// # Errors
    ///
    /// `Unavailable` when the database cannot be reached.
    async fn activity(&self) -> Result<Option<Vec<Activity>>>;

    /// Work done so far by this handle.
    fn counters(&self) -> Counters;

    /// Ends open connections in good order. Calls after it fail with `Unavailable`.
    async fn close(&self);
}
