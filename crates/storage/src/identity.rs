//! Which server, in which life, told us something.

use std::fmt;

use crate::Timestamp;

/// One life of one database server: system, timeline, start.
///
/// A failover can lose the last commits, so every cached fact (head, stream version, progress, discovery cursor, lease
/// observation, directory entry) is valid for one identity only. Compare before use, drop on change
/// (`protocols.md` §4.4).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ServerIdentity {
    /// Identifier of the cluster of data files; constant for an embedded database.
    pub system: String,
    /// Timeline of the write-ahead log; rises with each promotion. Zero where there is none.
    pub timeline: u32,
    /// When this server process started. Zero for an embedded database.
    pub started_at: Timestamp,
}

impl fmt::Display for ServerIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}@{}", self.system, self.timeline, self.started_at.as_micros())
    }
}
