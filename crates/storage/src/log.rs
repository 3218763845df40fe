//! The event log port.

use std::time::Duration;

use async_trait::async_trait;

use crate::{
    AppendBatch, AppendReceipt, HeadLock, Page, PageQuery, Result, StreamId, StreamPage, StreamQuery,
    StreamVersions, TenantNo,
};

/// Appending to and reading from the logs of a database's tenants.
///
/// # Rules every adapter keeps (`protocols.md` §1)
///
/// * The head row is the first and only lock of an append; numbers are contiguous at commit and in commit order.
/// * [`append`](EventLog::append) never waits for a head: a locked one is `Busy`, and the others go in.
/// * It reads nothing but the rows it locks; it appends a tenant's entry only if head, place and `open` are as expected.
/// * A batch commits as a whole or (on an error) not at all.
#[async_trait]
pub trait EventLog: Send + Sync {
    /// Appends a batch: one commit, an outcome per tenant.
    ///
    /// # Errors
    ///
    /// `Rejected` when the database refuses a row: nothing of the batch happened, split it until the culprit is alone.
    /// `Conflict` on a deadlock or serialization failure: nothing happened, send it again. `Unavailable`: nothing was sent.
    /// `Unknown`: the answer was lost; send **the same batch with the same expected heads** again: `Done` means the original
    /// never happened, `Stale` means look for the own event ids after the expected head.
    ///
    /// # Cancel safety
    ///
    /// Not cancel safe: a dropped future may or may not have appended. Run it in a task that is awaited.
    async fn append(&self, batch: &AppendBatch) -> Result<AppendReceipt>;

    /// Locks the head of one tenant, waiting at most `wait`.
    ///
    /// # Errors
    ///
    /// `Unavailable` when the lock was not free in time or the database cannot be reached; `Rejected` when there is no such
    /// tenant here.
    async fn lock_head(&self, tenant: TenantNo, wait: Duration) -> Result<Box<dyn HeadLock>>;

    /// States of these streams and the head they belong to, from one snapshot, without a lock.
    ///
    /// # Errors
    ///
    /// `Unavailable` when the database cannot be reached; `Rejected` when there is no such tenant here.
    async fn stream_versions(&self, tenant: TenantNo, streams: &[StreamId]) -> Result<StreamVersions>;

    /// Reads a page of a tenant's events: head and events of one snapshot, in one statement.
    ///
    /// # Errors
    ///
    /// `Corrupt` on a hole or a row that cannot be read; `Unavailable` when the database cannot be reached; `Rejected` when
    /// there is no such tenant here.
    async fn read_page(&self, query: &PageQuery<'_>) -> Result<Page>;

    /// Reads a page of one stream, with the tenant's head in the same snapshot.
    ///
    /// # Errors
    ///
    /// As [`read_page`](EventLog::read_page).
    async fn read_stream(&self, query: &StreamQuery<'_>) -> Result<StreamPage>;
}
