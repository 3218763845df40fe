//! The small ports: tenants, discovery, and the database as a whole.

use std::ops::Bound;

use async_trait::async_trait;
use bellwether_storage::{
    Activity, Counters, Database, Discovery, DiscoveryCursor, Moved, MovedHead, PageStyle, Result,
    ServerIdentity, SqlDialect, TenantEntry, TenantId, TenantNo, Tenants,
};

use crate::Memory;
use crate::state::{State, Tenant};

#[async_trait]
impl Tenants for Memory {
    async fn ensure_tenant(&self, id: &TenantId) -> Result<TenantEntry> {
        self.call().await?;
        let state = &mut self.shared.lock().state;
        let number = match state.tenants_by_id.get(id) {
            Some(number) => *number,
            None => state.add_tenant(id)?,
        };
        state.tenant(number).map(|tenant| entry(number, tenant))
    }

    async fn find_tenant(&self, id: &TenantId) -> Result<Option<TenantEntry>> {
        self.call().await?;
        let state = &self.shared.lock().state;
        Ok(state.tenants_by_id.get(id).and_then(|number| Some(entry(*number, state.tenants.get(number)?))))
    }

    async fn list_tenants(&self, after: Option<TenantNo>, limit: u32) -> Result<Vec<TenantEntry>> {
        self.call().await?;
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let state = &self.shared.lock().state;
        let tenants = state.tenants.range((from, Bound::Unbounded));
        Ok(tenants.take(limit as usize).map(|(number, tenant)| entry(*number, tenant)).collect())
    }
}

#[async_trait]
impl Discovery for Memory {
    async fn moved_heads(&self, cursor: Option<&DiscoveryCursor>) -> Result<Moved> {
        self.call().await?;
        self.count_discovery();
        let inner = self.shared.lock();
        let after =
            cursor.filter(|cursor| cursor.identity == inner.identity).map_or(0, |cursor| cursor.position);
        Ok(Moved {
            heads: heads_after(&inner.state, after),
            cursor: DiscoveryCursor { identity: inner.identity.clone(), position: inner.state.moves },
        })
    }
}

/// Exact, because heads move and are read under one lock: whoever moved later has a larger number.
fn heads_after(state: &State, after: u64) -> Vec<MovedHead> {
    let moved = state.tenants.iter().filter(|(_, tenant)| tenant.moved > after);
    moved
        .map(|(number, tenant)| MovedHead { tenant: *number, id: tenant.id.clone(), head: tenant.head })
        .collect()
}

#[async_trait]
impl Database for Memory {
    fn name(&self) -> &str {
        &self.shared.name
    }

    fn dialect(&self) -> Option<SqlDialect> {
        None
    }

    fn page_style(&self) -> PageStyle {
        self.style()
    }

    fn pages_max(&self) -> Option<u32> {
        (self.style() == PageStyle::ComputeFirst).then_some(1)
    }

    async fn identity(&self) -> Result<ServerIdentity> {
        self.call().await?;
        Ok(self.shared.lock().identity.clone())
    }

    async fn activity(&self) -> Result<Option<Vec<Activity>>> {
        self.still_open()?;
        Ok(None)
    }

    fn counters(&self) -> Counters {
        self.counted()
    }

    async fn close(&self) {
        self.mark_closed();
    }
}

fn entry(number: TenantNo, tenant: &Tenant) -> TenantEntry {
    TenantEntry { id: tenant.id.clone(), number, place: tenant.place, open: tenant.open }
}
