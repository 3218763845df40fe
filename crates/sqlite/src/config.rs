//! How a file is opened.

use std::path::PathBuf;
use std::time::Duration;

use bellwether_storage::{Error, Result};

/// Settings of one SQLite store. Start from [`SqliteConfig::new`] and change what you need.
#[derive(Debug, Clone)]
pub struct SqliteConfig {
    /// The file; created when it is not there. Its folder must exist.
    pub path: PathBuf,
    /// Connections that read, at most; 1 to 64. Each keeps a thread of its own and up to `reader_cache_bytes`.
    pub readers_max: u32,
    /// How long a caller waits for its turn to write, another process's transaction included, before it hears that the
    /// database is busy.
    pub busy_timeout: Duration,
    /// Page cache of the connection that writes. A transaction with more changes than this spills into the write-ahead log,
    /// so the memory of a large page stays at this figure.
    pub writer_cache_bytes: u64,
    /// Page cache of each connection that reads.
    pub reader_cache_bytes: u64,
}

impl SqliteConfig {
    /// Defaults for this file: 4 readers, 5 s, 4 MiB and 2 MiB of cache.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            readers_max: 4,
            busy_timeout: Duration::from_secs(5),
            writer_cache_bytes: 4 * 1024 * 1024,
            reader_cache_bytes: 2 * 1024 * 1024,
        }
    }

    /// Checks every field.
    ///
    /// # Errors
    ///
    /// `Rejected`, naming the field and the fix.
    pub fn validate(&self) -> Result<()> {
        let path = self.path.to_string_lossy();
        if path.is_empty() || path == ":memory:" {
            return Err(Error::rejected(format!("path is {path:?}, which is no file"))
                .fix("name a file; for a store in memory use bellwether-memory"));
        }
        if !(1..=64).contains(&self.readers_max) {
            return Err(Error::rejected(format!("readers_max is {}", self.readers_max)).fix("choose 1 to 64"));
        }
        if self.busy_timeout.is_zero() {
            return Err(Error::rejected("busy_timeout is zero").fix("choose at least some milliseconds"));
        }
        for (field, bytes) in
            [("writer_cache_bytes", self.writer_cache_bytes), ("reader_cache_bytes", self.reader_cache_bytes)]
        {
            if !(64 * 1024..=1 << 32).contains(&bytes) {
                return Err(Error::rejected(format!("{field} is {bytes}")).fix("choose 64 KiB to 4 GiB"));
            }
        }
        Ok(())
    }
}
