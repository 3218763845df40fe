//! A held head: reads under the lock, appends, and is gone.

use async_trait::async_trait;
use bellwether_storage::{
    AppendId, Error, HeadLock, HeadState, NewEvent, Result, StreamId, StreamVersions, TenantNo, Timestamp,
};
use tokio::sync::OwnedMutexGuard;
use uuid::Uuid;

use crate::Memory;
use crate::faults::Commit;
use crate::log::versions;

/// The transaction that holds one head.
pub(crate) struct MemoryHeadLock {
    memory: Memory,
    tenant: TenantNo,
    state: HeadState,
    life: u64,
    _guard: OwnedMutexGuard<()>,
}

impl MemoryHeadLock {
    /// Looks at the head under its lock.
    pub(crate) fn new(
        memory: Memory,
        tenant: TenantNo,
        guard: OwnedMutexGuard<()>,
        life: u64,
    ) -> Result<Self> {
        let state = {
            let inner = memory.shared.lock();
            inner.same_life(life)?;
            let found = inner.state.tenant(tenant)?;
            HeadState {
                head: found.head,
                place: found.place,
                open: found.open,
                identity: inner.identity.clone(),
            }
        };
        Ok(Self { memory, tenant, state, life, _guard: guard })
    }
}

#[async_trait]
impl HeadLock for MemoryHeadLock {
    fn state(&self) -> &HeadState {
        &self.state
    }

    async fn versions(&mut self, streams: &[StreamId]) -> Result<StreamVersions> {
        self.memory.call().await?;
        let inner = self.memory.shared.lock();
        inner.same_life(self.life)?;
        Ok(versions(inner.state.tenant(self.tenant)?, streams, &inner.identity))
    }

    async fn append_ids(&mut self, ids: &[Uuid]) -> Result<Vec<AppendId>> {
        self.memory.call().await?;
        let inner = self.memory.shared.lock();
        inner.same_life(self.life)?;
        let tenant = inner.state.tenant(self.tenant)?;
        Ok(ids.iter().filter_map(|id| tenant.append_ids.get(id).cloned()).collect())
    }

    async fn append(
        self: Box<Self>,
        events: &[NewEvent],
        ids: &[AppendId],
        now: Option<Timestamp>,
    ) -> Result<Timestamp> {
        self.memory.call().await?;
        let mut inner = self.memory.shared.lock();
        inner.same_life(self.life)?;
        let tenant = inner.state.tenant(self.tenant)?;
        if !tenant.open {
            return Err(Error::rejected(format!("tenant {} is closed here", tenant.id))
                .fix("ask the directory where it lives"));
        }
        tenant.check(events)?;
        if let Some(taken) = ids.iter().find(|id| tenant.append_ids.contains_key(&id.id)) {
            return Err(Error::rejected(format!("append id {} is already recorded", taken.id))
                .fix("look append ids up under the lock first"));
        }
        inner.refuse_poison(events.iter().map(|event| &event.stream))?;
        inner.commit(Commit::LockedAppend, |state| {
            let at = state.append(self.tenant, events, now)?;
            let recorded = ids.iter().map(|id| (id.id, id.clone()));
            state.tenant_mut(self.tenant)?.append_ids.extend(recorded);
            Ok(at)
        })
    }
}
