//! Who is told that a head has moved.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use bellwether_storage::{DatabaseNo, Sequence, TenantId, TenantNo};

use crate::HeadListener;

/// Listeners of a store.
#[derive(Default)]
pub(crate) struct Listeners(RwLock<Vec<Arc<dyn HeadListener>>>);

impl Listeners {
    pub(crate) fn add(&self, listener: Arc<dyn HeadListener>) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).push(listener);
    }

    pub(crate) fn tell(&self, database: DatabaseNo, tenant: TenantNo, id: &TenantId, head: Sequence) {
        for listener in self.0.read().unwrap_or_else(PoisonError::into_inner).iter() {
            listener.head_moved(database, tenant, id, head);
        }
    }
}

impl fmt::Debug for Listeners {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.0.read().unwrap_or_else(PoisonError::into_inner).len();
        write!(f, "Listeners({count})")
    }
}
