//! The projection port: registering, fencing, progress, pages, documents.

use async_trait::async_trait;

use crate::{
    DeadLetter, Document, DocumentKey, DocumentSet, FenceOutcome, FenceRequest, Owner, PageStart, Progress,
    ProgressKey, ProjectionName, ProjectionNo, Result, Row, Statement, TenantNo, UnitOfWork, ViewName,
    ViewNo,
};

/// What a projection needs of a database.
///
/// # Rules every adapter keeps (`protocols.md` §2)
///
/// * The progress row is the first lock of a page's transaction; sequence, generation and owner are compared for equality.
/// * Documents, progress and dead letters commit together or not at all.
/// * Only page transactions write a view's table.
#[async_trait]
pub trait Projections: Send + Sync {
    /// Number of a projection, registered on first use. Safe to race and to repeat.
    ///
    /// # Errors
    ///
    /// `Unavailable` when the database cannot be reached; repeat.
    async fn ensure_projection(&self, name: &ProjectionName) -> Result<ProjectionNo>;

    /// Number of the table of a view's version, created on first use. Safe to race and to repeat.
    ///
    /// # Errors
    ///
    /// `Unavailable` when the database cannot be reached; repeat.
    async fn ensure_view(&self, name: &ViewName, version: u32) -> Result<ViewNo>;

    /// Positions this owner on several progress rows at once: one outcome per request, in order. Keys are distinct.
    ///
    /// An open page of the previous owner is waited for, a bounded time; one that belongs to a dead or stuck incarnation is
    /// ended by the adapter where the database allows it (`protocols.md` §2.2).
    ///
    /// # Errors
    ///
    /// `Unavailable` when the rows could not be locked in time or the database cannot be reached: nothing is positioned,
    /// repeat.
    async fn fence(&self, owner: Owner, requests: &[FenceRequest]) -> Result<Vec<FenceOutcome>>;

    /// Progress rows by key, `None` where there is none yet, in order. A hint: only the fence positions.
    ///
    /// # Errors
    ///
    /// `Unavailable` when the database cannot be reached; repeat.
    async fn progress(&self, keys: &[ProgressKey]) -> Result<Vec<Option<Progress>>>;

    /// Begins a page's transaction: locks the progress row and compares.
    ///
    /// # Errors
    ///
    /// `Fenced` when sequence, generation or owner differ: stop, and position anew. `Unavailable` when the row could not be
    /// locked in time or the database cannot be reached: nothing happened.
    async fn begin(&self, start: &PageStart) -> Result<Box<dyn UnitOfWork>>;

    /// Reads documents outside a page. Missing ones are left out; order is free. At most 10,000 keys.
    ///
    /// # Errors
    ///
    /// `Unavailable` when the database cannot be reached; repeat.
    async fn load(&self, set: DocumentSet, keys: &[DocumentKey]) -> Result<Vec<Document>>;

    /// Up to `limit` documents whose key is after `after`, in ascending byte order of the key.
    ///
    /// # Errors
    ///
    /// `Unavailable` when the database cannot be reached; repeat.
    async fn list(&self, set: DocumentSet, after: Option<&DocumentKey>, limit: u32) -> Result<Vec<Document>>;

    /// Up to `limit` dead letters of a tenant, in ascending order of (projection, version, build, sequence, member).
    ///
    /// # Errors
    ///
    /// `Unavailable` when the database cannot be reached; repeat.
    async fn dead_letters(&self, tenant: TenantNo, limit: u32) -> Result<Vec<DeadLetter>>;

    /// Runs the user's own set-up statements (tables of a SQL projection) in one transaction. Write them so that they can be
    /// repeated (`CREATE TABLE IF NOT EXISTS`).
    ///
    /// # Errors
    ///
    /// `Rejected` when the database refuses one: nothing of it stays. `Unsupported` where there is no SQL.
    async fn set_up(&self, statements: &[Statement]) -> Result<()>;

    /// Runs a read-only query of the user's own outside a page; at most 10,000 rows.
    ///
    /// # Errors
    ///
    /// `Rejected` when the database refuses it; `Unsupported` where there is no SQL.
    async fn query(&self, statement: &Statement) -> Result<Vec<Row>>;
}
