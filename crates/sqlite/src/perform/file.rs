//! The file behind a store: how to connect to it, which one it is, and what was done on it.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use bellwether_storage::{Error, Result, ServerIdentity, Timestamp};
use sqlx::ConnectOptions;
use sqlx::sqlite::{SqliteConnectOptions, SqliteSynchronous};

use super::link::Link;
use crate::{SqliteConfig, error, sql};

/// SQLite's own wait before it says "busy" to the writer. Short, because the gate repeats the question until the caller's own
/// deadline, and a connection's thread that sleeps cannot be told to stop.
const WRITER_BUSY_TIMEOUT: &str = "PRAGMA busy_timeout = 50";

/// Rows that a statement may be ahead of its reader: they are in memory twice.
const ROWS_AHEAD: usize = 8;

/// Different statements a connection keeps prepared: all of this crate's in all row counts, and many views.
const STATEMENTS_KEPT: usize = 256;

/// What the write-ahead log is cut down to after a checkpoint, so that one huge page does not keep its size on disk.
const LOG_KEPT_BYTES: u64 = 64 * 1024 * 1024;

/// What a connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// Looks at a file that may be anybody's; creates it when it is not there.
    Open,
    /// Writes; there is one.
    Write,
    /// Reads only.
    Read,
}

/// One open file.
#[derive(Debug)]
pub(crate) struct File {
    config: SqliteConfig,
    path: PathBuf,
    system: String,
    statements: AtomicU64,
    discovery_reads: AtomicU64,
}

impl File {
    /// A file of ours, by what `server` in it says. Empty for a file that is just being opened.
    pub(crate) fn new(config: SqliteConfig, system: String) -> Self {
        // A relative path must mean the same file after the process has changed its working directory.
        let path = std::path::absolute(&config.path).unwrap_or_else(|_| config.path.clone());
        Self { config, path, system, statements: AtomicU64::new(0), discovery_reads: AtomicU64::new(0) }
    }

    pub(crate) fn config(&self) -> &SqliteConfig {
        &self.config
    }

    /// Constant for one file.
    pub(crate) fn identity(&self) -> ServerIdentity {
        ServerIdentity { system: self.system.clone(), timeline: 0, started_at: Timestamp::default() }
    }

    pub(crate) fn count_statement(&self) {
        self.statements.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_discovery_read(&self) {
        self.discovery_reads.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn statements(&self) -> u64 {
        self.statements.load(Ordering::Relaxed)
    }

    pub(crate) fn discovery_reads(&self) -> u64 {
        self.discovery_reads.load(Ordering::Relaxed)
    }

    /// How to connect.
    pub(crate) fn options(&self, purpose: Use) -> SqliteConnectOptions {
        let cache_bytes = match purpose {
            Use::Write => self.config.writer_cache_bytes,
            Use::Open | Use::Read => self.config.reader_cache_bytes,
        };
        let options = SqliteConnectOptions::new()
            .filename(&self.path)
            .create_if_missing(purpose == Use::Open)
            .busy_timeout(self.config.busy_timeout)
            .statement_cache_capacity(STATEMENTS_KEPT)
            .row_buffer_size(ROWS_AHEAD)
            .thread_name(|number| format!("sqlite-{number}"))
            .disable_statement_logging();
        match purpose {
            // Sets nothing that would change a file before we know that it is ours.
            Use::Open => options,
            Use::Write | Use::Read => options
                .synchronous(SqliteSynchronous::Full)
                // Negative: in KiB.
                .pragma("cache_size", format!("-{}", cache_bytes / 1024))
                .pragma("journal_size_limit", LOG_KEPT_BYTES.to_string())
                .pragma("query_only", if purpose == Use::Read { "ON" } else { "OFF" }),
        }
    }

    /// Connects and makes sure that it is still the same file: one that was replaced under an open store holds other facts.
    pub(crate) async fn connect(self: &std::sync::Arc<Self>, purpose: Use) -> Result<Link> {
        let mut link = Link::connect(self, purpose).await.map_err(error::of)?;
        let system: String = link.one(sqlx::query(sql::SERVER_IDENTITY)).await?;
        if system != self.system {
            return Err(Error::corrupt(format!(
                "{} is another file than the one that was opened: {system}, not {}",
                self.path.display(),
                self.system
            ))
            .fix("close this store and open it again; never replace a file under an open store"));
        }
        if purpose == Use::Write {
            // Only now: connecting itself may have to wait for the recovery or the clean-up of another connection.
            link.execute(sqlx::query(WRITER_BUSY_TIMEOUT)).await.map_err(error::of)?;
        }
        Ok(link)
    }
}

/// The clock of the machine the file is on.
pub(crate) fn clock() -> Timestamp {
    let micros = match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(after) => i64::try_from(after.as_micros()).unwrap_or(i64::MAX),
        Err(before) => i64::try_from(before.duration().as_micros()).map_or(i64::MIN, |micros| -micros),
    };
    Timestamp::from_micros(micros)
}
