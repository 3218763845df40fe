//! The unit of work of a page: everything a page writes, in one transaction.

use async_trait::async_trait;

use crate::{
    DeadLetter, Document, DocumentKey, DocumentWrite, Generation, Owner, ProgressKey, Result, Row, Sequence,
    Statement, ViewNo,
};

/// What a page's transaction must find before it may write.
#[derive(Debug, Clone, Copy)]
pub struct PageStart {
    /// The progress row.
    pub key: ProgressKey,
    /// The sequence it must hold.
    pub from: Sequence,
    /// The generation it must hold.
    pub generation: Generation,
    /// The owner it must hold.
    pub owner: Owner,
}

/// One page's transaction. Begun by [`Projections::begin`](crate::Projections::begin), which locks the progress row first and
/// compares sequence, generation and owner for equality.
///
/// Dropping it without [`finish`](UnitOfWork::finish) rolls back: nothing stays.
#[async_trait]
pub trait UnitOfWork: Send {
    /// Reads documents inside the transaction; sees this unit's own writes. Missing ones are left out; order is free.
    ///
    /// # Errors
    ///
    /// `Unavailable` when the database cannot be reached: the unit is gone, do the page again.
    async fn load(&mut self, view: ViewNo, keys: &[DocumentKey]) -> Result<Vec<Document>>;

    /// Writes a chunk of documents. A key appears at most once in a chunk; a later chunk may overwrite it.
    ///
    /// # Errors
    ///
    /// `Rejected` when the database refuses a row: the unit is gone, bisect. `Unavailable` as above.
    async fn write(&mut self, view: ViewNo, writes: Vec<DocumentWrite>) -> Result<()>;

    /// Runs a statement of the user's own; returns the number of rows it changed.
    ///
    /// # Errors
    ///
    /// `Rejected` when the database refuses it: the unit is gone. `Unsupported` where there is no SQL.
    async fn execute(&mut self, statement: &Statement) -> Result<u64>;

    /// Runs a query of the user's own; at most 10,000 rows.
    ///
    /// # Errors
    ///
    /// As [`execute`](UnitOfWork::execute); `Rejected` when there are more rows.
    async fn query(&mut self, statement: &Statement) -> Result<Vec<Row>>;

    /// Writes the dead letters, moves the progress to `to` and commits.
    ///
    /// `to` may be less than the page held (a page may be cut at any event) and is never less than the page's `from`.
    ///
    /// # Errors
    ///
    /// `Fenced` when the row is no longer ours, `Unavailable` when nothing happened, `Unknown` when the commit's answer was
    /// lost: fence again and start from the sequence found there, never repeat blindly.
    ///
    /// # Cancel safety
    ///
    /// Not cancel safe: a dropped future may or may not have committed.
    async fn finish(self: Box<Self>, to: Sequence, dead_letters: &[DeadLetter]) -> Result<()>;

    /// Rolls back and gives the connection back. Dropping does the same, later.
    async fn roll_back(self: Box<Self>);
}
