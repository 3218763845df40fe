//! Back-pressure: how many bytes of appends may wait for their commit, per tenant and per database.

use std::sync::Arc;

use bellwether_storage::TenantId;
use dashmap::DashMap;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// One permit stands for this many bytes.
const UNIT_BYTES: u32 = 1024;

/// Room for appends of one database.
#[derive(Debug)]
pub(crate) struct Room {
    all: Arc<Semaphore>,
    all_units: u32,
    tenants: DashMap<TenantId, Arc<Semaphore>>,
    tenant_units: u32,
}

/// Room taken; dropping it gives it back.
#[derive(Debug)]
pub(crate) struct Taken {
    _all: Option<OwnedSemaphorePermit>,
    _tenant: Option<OwnedSemaphorePermit>,
}

impl Room {
    pub(crate) fn new(bytes: u32, tenant_bytes: u32) -> Self {
        let (all_units, tenant_units) = ((bytes / UNIT_BYTES).max(1), (tenant_bytes / UNIT_BYTES).max(1));
        Self {
            all: Arc::new(Semaphore::new(all_units as usize)),
            all_units,
            tenants: DashMap::new(),
            tenant_units,
        }
    }

    /// Waits for room, first come first served. What is larger than all there is waits until it is alone.
    ///
    /// # Cancel safety
    ///
    /// Safe: nothing is taken.
    pub(crate) async fn take(&self, tenant: &TenantId, bytes: usize) -> Taken {
        let units = u32::try_from(bytes.div_ceil(UNIT_BYTES as usize)).unwrap_or(u32::MAX).max(1);
        let own = match self.tenants.get(tenant) {
            Some(own) => Arc::clone(&own),
            None => {
                let entry = self.tenants.entry(tenant.clone());
                Arc::clone(&entry.or_insert_with(|| Arc::new(Semaphore::new(self.tenant_units as usize))))
            }
        };
        // The tenant's own room first: who waits for it takes nothing from others. Semaphores are never closed.
        let _tenant = own.acquire_many_owned(units.min(self.tenant_units)).await.ok();
        let _all = Arc::clone(&self.all).acquire_many_owned(units.min(self.all_units)).await.ok();
        Taken { _all, _tenant }
    }
}
