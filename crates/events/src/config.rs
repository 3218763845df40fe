//! Numbers of a store, each with a default and a reason.

use bellwether_storage::{Encoding, Error, Result};

/// Configuration of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreConfig {
    /// How new events are encoded. Default: MessagePack; choose JSON to query bodies in the database. A log may mix both.
    pub encoding: Encoding,
    /// Bytes of appends of one tenant that wait for their commit; a caller beyond it waits. Default: 4 MiB. It bounds what a
    /// tenant whose head is held by somebody else takes away from others.
    pub tenant_queue_bytes: u32,
    /// Bytes of appends that wait for their commit, over all tenants of a database; a caller beyond it waits. Default: 64 MiB.
    pub queue_bytes: u32,
    /// Stream versions kept per database, so that an append need not read them. Default: 65,536, about 10 MB.
    pub versions_cached: usize,
    /// How often `execute` decides anew after a conflict. Default: 32.
    pub execute_tries: u32,
}

impl Default for StoreConfig {
    fn default() -> Self {
        Self {
            encoding: Encoding::MessagePack,
            tenant_queue_bytes: 4 * 1024 * 1024,
            queue_bytes: 64 * 1024 * 1024,
            versions_cached: 65_536,
            execute_tries: 32,
        }
    }
}

impl StoreConfig {
    /// Sets how new events are encoded.
    #[must_use]
    pub fn encoding(mut self, encoding: Encoding) -> Self {
        self.encoding = encoding;
        self
    }

    /// Refuses numbers that cannot work.
    ///
    /// # Errors
    ///
    /// `Rejected`, with the field and the fix.
    pub fn validate(&self) -> Result<()> {
        let refuse = |field: &str, fix: &str| Err(Error::rejected(format!("{field} does not fit")).fix(fix));
        if self.tenant_queue_bytes < 1024 {
            return refuse("tenant_queue_bytes", "use at least 1,024 bytes");
        }
        if self.queue_bytes < self.tenant_queue_bytes {
            return refuse("queue_bytes", "use at least tenant_queue_bytes, better many times as much");
        }
        if self.versions_cached == 0 {
            return refuse("versions_cached", "use at least 1");
        }
        if self.execute_tries == 0 {
            return refuse("execute_tries", "use at least 1");
        }
        Ok(())
    }
}
