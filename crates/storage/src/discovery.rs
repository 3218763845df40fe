//! Finding work: which heads moved, in one statement per database.

use async_trait::async_trait;

use crate::{Result, Sequence, ServerIdentity, TenantId, TenantNo};

/// Where the last discovery read stopped. Opaque; valid for one server identity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiscoveryCursor {
    /// The server the position belongs to. Another one starts from the beginning.
    pub identity: ServerIdentity,
    /// Position in the adapter's own terms (a transaction id, a data version).
    pub position: u64,
}

/// A tenant whose head may have moved since the last read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MovedHead {
    /// Number of the tenant in this database.
    pub tenant: TenantNo,
    /// Name of the tenant, so that one created meanwhile is known at once.
    pub id: TenantId,
    /// Its head.
    pub head: Sequence,
}

/// Answer of one discovery read.
#[derive(Debug, Clone)]
pub struct Moved {
    /// Heads that moved since the cursor; may repeat, never misses. A tenant just created comes with head zero.
    pub heads: Vec<MovedHead>,
    /// Pass this to the next read.
    pub cursor: DiscoveryCursor,
}

/// Finding work per database, not per agent.
#[async_trait]
pub trait Discovery: Send + Sync {
    /// Heads that moved since `cursor`; all heads for `None` or after a change of the server identity.
    ///
    /// Costs one statement, O(changes) on the wire. An append that commits after a later-numbered one is still found: the
    /// cursor follows the oldest transaction in flight, not the newest seen (`protocols.md` §6).
    ///
    /// # Errors
    ///
    /// `Unavailable` when the database cannot be reached: keep the cursor and try again.
    async fn moved_heads(&self, cursor: Option<&DiscoveryCursor>) -> Result<Moved>;
}
