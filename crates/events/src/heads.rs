//! In-process wake-ups: an append tells who waits for the tenant, without a statement.

use bellwether_storage::{DatabaseNo, Sequence, TenantId, TenantNo};

/// Told after each commit of this process. A hint: it may repeat or come late, and discovery finds what it misses.
pub trait HeadListener: Send + Sync {
    /// The tenant's head is now at least `head`. Must return at once: no I/O, no waiting.
    fn head_moved(&self, database: DatabaseNo, tenant: TenantNo, id: &TenantId, head: Sequence);
}
