//! One connection, borrowed from its pool.
//!
//! A link knows whether its connection is in a state that somebody else may use: between statements, outside a transaction.
//! Dropping a link in any other state (a cancelled future, an error in the middle, an open transaction) closes the
//! connection, and the server rolls back. So cancelling never leaves anything behind, and never costs more than a reconnect.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bellwether_storage::{Error, ServerIdentity};
use futures_util::TryStreamExt;
use sqlx::postgres::{PgArguments, PgConnection, PgRow, PgSeverity};
use sqlx::{AssertSqlSafe, Connection, Either, Executor, SqlSafeStr};
use tokio::sync::OwnedSemaphorePermit;

use crate::error;
use crate::perform::pool::{Idle, Pool};

/// A silent server is given up so long after its own timeout should have answered.
const GRACE: Duration = Duration::from_secs(5);

/// Buffers are given back when a statement or an answer was larger than this.
const BUFFER_BYTES_KEPT_MAX: usize = 64 * 1024;

pub(crate) struct Link {
    /// `None` only while dropping.
    connection: Option<PgConnection>,
    identity: Arc<ServerIdentity>,
    backend: i32,
    pool: Arc<Pool>,
    in_transaction: bool,
    /// A statement was sent and its answer has not been read to the end.
    unsettled: bool,
    _permit: OwnedSemaphorePermit,
}

impl Link {
    pub(crate) fn new(idle: Idle, pool: Arc<Pool>, permit: OwnedSemaphorePermit) -> Self {
        Self {
            connection: Some(idle.connection),
            identity: idle.identity,
            backend: idle.backend,
            pool,
            in_transaction: false,
            unsettled: false,
            _permit: permit,
        }
    }

    /// The server this connection was made to. A connection never outlives the server's process, so what was read when it
    /// was made holds for every answer through it.
    pub(crate) fn identity(&self) -> &ServerIdentity {
        &self.identity
    }

    /// Number of the server's process behind this connection.
    pub(crate) fn backend(&self) -> i32 {
        self.backend
    }

    /// Sends one prepared statement; all its rows.
    pub(crate) async fn rows(
        &mut self,
        text: impl SqlSafeStr,
        values: PgArguments,
    ) -> Result<Vec<PgRow>, sqlx::Error> {
        let query = sqlx::query_with(text, values);
        self.send(async |connection| query.fetch_all(connection).await).await
    }

    /// Sends one prepared statement; at most `rows_max` rows, or `None` when there are more. After `None` the link is of no
    /// further use.
    pub(crate) async fn rows_up_to(
        &mut self,
        text: impl SqlSafeStr,
        values: PgArguments,
        rows_max: usize,
    ) -> Result<Option<Vec<PgRow>>, sqlx::Error> {
        let query = sqlx::query_with(text, values);
        let rows = self
            .send(async |connection| {
                let mut answer = query.fetch(connection);
                let mut rows = Vec::new();
                while let Some(row) = answer.try_next().await? {
                    if rows.len() == rows_max {
                        return Ok(None);
                    }
                    rows.push(row);
                }
                Ok(Some(rows))
            })
            .await?;
        self.unsettled = rows.is_none();
        Ok(rows)
    }

    /// Sends one prepared statement; the number of rows it changed.
    pub(crate) async fn execute(
        &mut self,
        text: impl SqlSafeStr,
        values: PgArguments,
    ) -> Result<u64, sqlx::Error> {
        let query = sqlx::query_with(text, values);
        let done = self.send(async |connection| query.execute(connection).await).await?;
        Ok(done.rows_affected())
    }

    /// Sends text of our own, possibly several statements, in one message.
    pub(crate) async fn raw(&mut self, text: impl SqlSafeStr) -> Result<(), sqlx::Error> {
        let text = text.into_sql_str();
        self.send(async |connection| {
            let mut answer = connection.fetch_many(sqlx::raw_sql(text));
            while let Some(part) = answer.try_next().await? {
                if let Either::Right(_row) = part {
                    continue;
                }
            }
            Ok(())
        })
        .await
    }

    /// Prepares a statement without running it.
    pub(crate) async fn prepare(&mut self, text: String) -> Result<(), sqlx::Error> {
        self.send(async |connection| {
            connection.prepare(AssertSqlSafe(text).into_sql_str()).await.map(|_statement| ())
        })
        .await
    }

    async fn send<T>(
        &mut self,
        work: impl AsyncFnOnce(&mut PgConnection) -> Result<T, sqlx::Error>,
    ) -> Result<T, sqlx::Error> {
        let Some(connection) = self.connection.as_mut() else {
            return Err(sqlx::Error::PoolClosed);
        };
        let limit = self.pool.statement_timeout() + GRACE;
        self.pool.counted().statement();
        self.unsettled = true;
        let answer = match tokio::time::timeout(limit, work(connection)).await {
            Ok(answer) => answer,
            Err(_elapsed) => {
                let silent = std::io::Error::new(
                    std::io::ErrorKind::TimedOut,
                    format!("no answer within {} s", limit.as_secs()),
                );
                return Err(sqlx::Error::Io(silent));
            }
        };
        self.unsettled = match &answer {
            Ok(_) => false,
            // After an error the server waits for the next statement, unless it ended the session.
            Err(error) => !is_answer(error),
        };
        answer
    }

    /// Begins a transaction; `then` is more text for the same message.
    pub(crate) async fn begin(&mut self, then: &str) -> Result<(), sqlx::Error> {
        self.in_transaction = true;
        self.raw(AssertSqlSafe(format!("BEGIN;{then}"))).await
    }

    /// Commits.
    pub(crate) async fn commit(&mut self) -> Result<(), Error> {
        let watch = CommitWatch::start(self);
        self.raw("COMMIT").await.map_err(error::maybe_happened)?;
        self.in_transaction = false;
        watch.check()
    }

    /// Rolls back, so that the connection can be used again. Where that fails, dropping the link closes it.
    pub(crate) async fn roll_back(&mut self) {
        if self.in_transaction && !self.unsettled && self.raw("ROLLBACK").await.is_ok() {
            self.in_transaction = false;
        }
    }

    /// Gives memory back after something large went through.
    pub(crate) fn shrink(&mut self, bytes: usize) {
        if bytes > BUFFER_BYTES_KEPT_MAX
            && let Some(connection) = self.connection.as_mut()
        {
            connection.shrink_buffers();
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        let Some(connection) = self.connection.take() else { return };
        if !self.unsettled && !self.in_transaction {
            self.pool.give_back(Idle {
                connection,
                identity: Arc::clone(&self.identity),
                backend: self.backend,
                since: Instant::now(),
            });
        }
    }
}

/// Whether the server answered with this error and goes on serving the connection.
fn is_answer(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Database(answer) => {
            let severity =
                answer.try_downcast_ref::<sqlx::postgres::PgDatabaseError>().map(|error| error.severity());
            !matches!(severity, Some(PgSeverity::Fatal | PgSeverity::Panic) | None)
        }
        // Refused before anything was sent.
        sqlx::Error::Encode(_) => true,
        _ => false,
    }
}

/// Notices a commit that may have stopped waiting for its standby.
///
/// When a timeout ends that wait, PostgreSQL commits all the same, and says so in a warning (01000) that the driver keeps to
/// itself. The only timeout of ours that can do it is the statement's; an answer that took at least as long is not trusted.
pub(crate) struct CommitWatch {
    since: Instant,
    limit: Duration,
}

impl CommitWatch {
    pub(crate) fn start(link: &Link) -> Self {
        Self { since: Instant::now(), limit: link.pool.statement_timeout() }
    }

    pub(crate) fn check(self) -> Result<(), Error> {
        if self.since.elapsed() < self.limit {
            return Ok(());
        }
        Err(Error::unknown(
            "a commit took as long as the statement timeout, so its wait for a standby may have been cut off",
        )
        .fix("look whether it happened; check the standbys, or raise statement_timeout_ms"))
    }
}
