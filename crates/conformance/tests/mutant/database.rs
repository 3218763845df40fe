//! A store that does what the one below does, but for its fault. Here: the small ports.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bellwether_memory::Memory;
use bellwether_storage::{
    Activity, Counters, Database, Discovery, DiscoveryCursor, Moved, PageStyle, Result, Sequence,
    ServerIdentity, SqlDialect, TenantEntry, TenantId, TenantNo, Tenants,
};

use super::fault::Fault;

/// A store with a fault.
pub(crate) struct Mutant {
    pub(crate) below: Memory,
    pub(crate) fault: Fault,
    /// The head that the last page saw, for the fault that reads it earlier.
    pub(crate) seen: Arc<Mutex<Sequence>>,
}

impl Mutant {
    pub(crate) fn new(below: Memory, fault: Fault) -> Self {
        Self { below, fault, seen: Arc::default() }
    }

    pub(crate) fn is(&self, fault: Fault) -> bool {
        self.fault == fault
    }
}

#[async_trait]
impl Tenants for Mutant {
    async fn ensure_tenant(&self, id: &TenantId) -> Result<TenantEntry> {
        self.below.ensure_tenant(id).await
    }

    async fn find_tenant(&self, id: &TenantId) -> Result<Option<TenantEntry>> {
        self.below.find_tenant(id).await
    }

    async fn list_tenants(&self, after: Option<TenantNo>, limit: u32) -> Result<Vec<TenantEntry>> {
        self.below.list_tenants(after, limit).await
    }
}

#[async_trait]
impl Discovery for Mutant {
    async fn moved_heads(&self, cursor: Option<&DiscoveryCursor>) -> Result<Moved> {
        let mut cursor = cursor.cloned();
        if self.is(Fault::BelievesAnyCursor)
            && let Some(cursor) = &mut cursor
        {
            cursor.identity = self.below.identity().await?;
        }
        let mut moved = self.below.moved_heads(cursor.as_ref()).await?;
        if self.is(Fault::MissesACommit) {
            moved.cursor.position += 1;
        }
        Ok(moved)
    }
}

#[async_trait]
impl Database for Mutant {
    fn name(&self) -> &str {
        self.below.name()
    }

    fn dialect(&self) -> Option<SqlDialect> {
        self.below.dialect()
    }

    fn page_style(&self) -> PageStyle {
        self.below.page_style()
    }

    fn pages_max(&self) -> Option<u32> {
        self.below.pages_max()
    }

    async fn identity(&self) -> Result<ServerIdentity> {
        self.below.identity().await
    }

    async fn activity(&self) -> Result<Option<Vec<Activity>>> {
        self.below.activity().await
    }

    fn counters(&self) -> Counters {
        self.below.counters()
    }

    async fn close(&self) {
        self.below.close().await;
    }
}
