//! How to reach a database, and every limit of doing so with its reason.

use std::fmt;
use std::time::Duration;

use bellwether_storage::{Error, Result};

/// Configuration of one database. [`PostgresConfig::new`] has the defaults; change what you need.
///
/// A connection is made when it is needed and closed when it was not, so the limits cost nothing on an idle database.
#[derive(Clone)]
pub struct PostgresConfig {
    /// `postgres://user:password@host:port/database`. Never shown in messages or logs.
    pub url: String,
    /// Connections that append batches: one fills its batch while the other waits for the disk, and one for large appends, so
    /// that an import delays nobody. Default 3.
    pub append_connections: u32,
    /// Connections that hold the head of one tenant while they read and decide: two that work, and two that may wait for the
    /// heads of busy tenants, so that those delay nobody else. Default 4.
    pub lock_connections: u32,
    /// Connections with an open page: the pages in flight this database takes at most. Default 4.
    pub page_connections: u32,
    /// Connections that only read: pages, documents, discovery. Default 4.
    pub read_connections: u32,
    /// Connections that register names and position runners: rare and short. Default 1.
    pub control_connections: u32,
    /// How long a call waits for one of these connections before it fails with `Unavailable`. Default 10,000 ms.
    pub acquire_timeout_ms: u64,
    /// How long connecting may take. Default 5,000 ms.
    pub connect_timeout_ms: u64,
    /// A connection unused for so long is closed: 512 idle databases would keep a gigabyte on the server. Default 60,000 ms.
    pub idle_timeout_ms: u64,
    /// The server ends a statement that runs for so long: nothing here takes a tenth of it. A silent server is given up five
    /// seconds later. Default 30,000 ms.
    pub statement_timeout_ms: u64,
    /// How long a statement waits for a row lock: longer than any healthy page holds one. Default 2,000 ms.
    pub lock_timeout_ms: u64,
    /// The server ends a transaction whose client has gone quiet for so long, so that a stopped process cannot hold a head or
    /// a progress row. Default 10,000 ms.
    pub idle_in_transaction_timeout_ms: u64,
}

impl PostgresConfig {
    /// The defaults, for the database at this URL.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            append_connections: 3,
            lock_connections: 4,
            page_connections: 4,
            read_connections: 4,
            control_connections: 1,
            acquire_timeout_ms: 10_000,
            connect_timeout_ms: 5_000,
            idle_timeout_ms: 60_000,
            statement_timeout_ms: 30_000,
            lock_timeout_ms: 2_000,
            idle_in_transaction_timeout_ms: 10_000,
        }
    }

    /// Checks every limit.
    ///
    /// # Errors
    ///
    /// `Rejected`; the message names the field and the fix.
    pub fn validate(&self) -> Result<()> {
        let numbers = [
            ("append_connections", u64::from(self.append_connections)),
            ("lock_connections", u64::from(self.lock_connections)),
            ("page_connections", u64::from(self.page_connections)),
            ("read_connections", u64::from(self.read_connections)),
            ("control_connections", u64::from(self.control_connections)),
            ("acquire_timeout_ms", self.acquire_timeout_ms),
            ("connect_timeout_ms", self.connect_timeout_ms),
            ("idle_timeout_ms", self.idle_timeout_ms),
            ("statement_timeout_ms", self.statement_timeout_ms),
            ("lock_timeout_ms", self.lock_timeout_ms),
            ("idle_in_transaction_timeout_ms", self.idle_in_transaction_timeout_ms),
        ];
        for (field, number) in numbers {
            if number == 0 || number > i32::MAX as u64 {
                return Err(Error::rejected(format!("{field} is {number}"))
                    .fix(format!("set it between 1 and {}", i32::MAX)));
            }
        }
        if self.lock_timeout_ms >= self.statement_timeout_ms {
            return Err(Error::rejected(format!(
                "lock_timeout_ms ({}) is not below statement_timeout_ms ({})",
                self.lock_timeout_ms, self.statement_timeout_ms
            ))
            .fix("lower lock_timeout_ms, or raise statement_timeout_ms"));
        }
        Ok(())
    }

    pub(crate) fn statement_timeout(&self) -> Duration {
        Duration::from_millis(self.statement_timeout_ms)
    }
}

impl fmt::Debug for PostgresConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresConfig")
            .field("url", &"(not shown)")
            .field("append_connections", &self.append_connections)
            .field("lock_connections", &self.lock_connections)
            .field("page_connections", &self.page_connections)
            .field("read_connections", &self.read_connections)
            .field("control_connections", &self.control_connections)
            .field("acquire_timeout_ms", &self.acquire_timeout_ms)
            .field("connect_timeout_ms", &self.connect_timeout_ms)
            .field("idle_timeout_ms", &self.idle_timeout_ms)
            .field("statement_timeout_ms", &self.statement_timeout_ms)
            .field("lock_timeout_ms", &self.lock_timeout_ms)
            .field("idle_in_transaction_timeout_ms", &self.idle_in_transaction_timeout_ms)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use bellwether_storage::ErrorKind;

    use super::*;

    #[test]
    fn debug_never_shows_the_url() {
        let shown = format!("{:?}", PostgresConfig::new("postgres://joe:s3cret@db.example/shop"));
        assert!(!shown.contains("s3cret") && !shown.contains("joe"), "{shown}");
    }

    #[test]
    fn a_limit_of_zero_is_refused_by_name() {
        let mut config = PostgresConfig::new("postgres://localhost/shop");
        config.validate().unwrap();
        config.page_connections = 0;
        let refused = config.validate().unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Rejected);
        assert!(refused.to_string().contains("page_connections"), "{refused}");
    }

    #[test]
    fn waiting_for_a_lock_ends_before_the_statement_does() {
        let mut config = PostgresConfig::new("postgres://localhost/shop");
        config.lock_timeout_ms = config.statement_timeout_ms;
        assert_eq!(config.validate().unwrap_err().kind(), ErrorKind::Rejected);
    }
}
