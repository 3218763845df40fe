//! The head lock of a store with a fault.

use async_trait::async_trait;
use bellwether_memory::Memory;
use bellwether_storage::{
    AppendId, ErrorKind, HeadLock, HeadState, NewEvent, Result, StreamId, StreamVersions, TenantNo, Timestamp,
};
use uuid::Uuid;

use super::fault::Fault;
use super::log::unavailable;

/// A head lock with a fault.
pub(crate) struct MutantLock {
    /// Taken by the append.
    pub(crate) below: Option<Box<dyn HeadLock>>,
    pub(crate) tenant: TenantNo,
    pub(crate) fault: Fault,
    pub(crate) memory: Memory,
}

const HELD: &str = "a lock is held until its append";

#[async_trait]
impl HeadLock for MutantLock {
    fn state(&self) -> &HeadState {
        self.below.as_ref().expect(HELD).state()
    }

    async fn versions(&mut self, streams: &[StreamId]) -> Result<StreamVersions> {
        self.below.as_mut().expect(HELD).versions(streams).await
    }

    async fn append_ids(&mut self, ids: &[Uuid]) -> Result<Vec<AppendId>> {
        self.below.as_mut().expect(HELD).append_ids(ids).await
    }

    async fn append(
        mut self: Box<Self>,
        events: &[NewEvent],
        ids: &[AppendId],
        now: Option<Timestamp>,
    ) -> Result<Timestamp> {
        let ids = if self.fault == Fault::ForgetsAppendIds { &[] } else { ids };
        match self.below.take().expect(HELD).append(events, ids, now).await {
            Err(error)
                if error.kind() == ErrorKind::Unknown && self.fault == Fault::TakesUnknownForUnavailable =>
            {
                Err(unavailable())
            }
            answered => answered,
        }
    }
}

impl Drop for MutantLock {
    fn drop(&mut self) {
        if let Some(below) = &self.below
            && self.fault == Fault::LeavesAHole
        {
            let consumed = below.state().head.next();
            self.memory.faults().raise_head(self.tenant, consumed);
        }
    }
}
