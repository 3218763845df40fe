//! The event log port: batches under expected heads, pages of one snapshot.

use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bellwether_storage::{
    AppendBatch, AppendOutcome, AppendReceipt, Error, EventLog, HeadLock, Page, PageQuery, Result, Sequence,
    ServerIdentity, StoredEvent, StreamId, StreamPage, StreamQuery, StreamVersions, TenantAppend, TenantNo,
};
use tokio::sync::OwnedMutexGuard;

use crate::Memory;
use crate::faults::Commit;
use crate::handle::Inner;
use crate::lock::MemoryHeadLock;
use crate::state::Tenant;

/// Events looked at for one page, so that a page of a rare type does not hold the database for long.
const EVENTS_LOOKED_AT_MAX: usize = 65_536;

#[async_trait]
impl EventLog for Memory {
    async fn append(&self, batch: &AppendBatch) -> Result<AppendReceipt> {
        self.call().await?;
        let ascending = batch.tenants.is_sorted_by(|a, b| a.tenant < b.tenant);
        if !ascending {
            return Err(Error::rejected("a batch whose tenants are not in ascending order")
                .fix("sort and merge its entries"));
        }
        let mut inner = self.shared.lock();
        batch.check_identity(&inner.identity)?;
        let mut outcomes = Vec::with_capacity(batch.tenants.len());
        // Held until the batch is in, so that no locker comes between comparison and commit.
        let mut held = Vec::new();
        for entry in &batch.tenants {
            let (outcome, guard) = inner.compare(entry)?;
            outcomes.push(outcome);
            held.extend(guard);
        }
        let identity = inner.identity.clone();
        if outcomes.iter().all(Option::is_some) {
            return Ok(AppendReceipt { outcomes: outcomes.into_iter().flatten().collect(), identity });
        }
        let done = inner.commit(Commit::Append, |state| {
            for (entry, outcome) in batch.tenants.iter().zip(&mut outcomes) {
                if outcome.is_none() {
                    let at = state.append(entry.tenant, &entry.events, batch.now)?;
                    *outcome = Some(AppendOutcome::Done { at });
                }
            }
            Ok(outcomes)
        })?;
        Ok(AppendReceipt { outcomes: done.into_iter().flatten().collect(), identity })
    }

    async fn lock_head(&self, tenant: TenantNo, wait: Duration) -> Result<Box<dyn HeadLock>> {
        self.call().await?;
        let (lock, life) = {
            let mut inner = self.shared.lock();
            inner.state.tenant(tenant)?;
            (inner.head_lock(tenant), inner.life)
        };
        let Ok(guard) = tokio::time::timeout(wait, lock.lock_owned()).await else {
            return Err(Error::unavailable(format!(
                "the head of tenant {} was not free within {wait:?}",
                tenant.0
            ))
            .fix("try again"));
        };
        let locked = MemoryHeadLock::new(self.clone(), tenant, guard, life)?;
        Ok(Box::new(locked))
    }

    async fn stream_versions(&self, tenant: TenantNo, streams: &[StreamId]) -> Result<StreamVersions> {
        self.call().await?;
        let inner = self.shared.lock();
        Ok(versions(inner.state.tenant(tenant)?, streams, &inner.identity))
    }

    async fn read_page(&self, query: &PageQuery<'_>) -> Result<Page> {
        self.call().await?;
        let inner = self.shared.lock();
        page(inner.state.tenant(query.tenant)?, query, &inner.identity)
    }

    async fn read_stream(&self, query: &StreamQuery<'_>) -> Result<StreamPage> {
        self.call().await?;
        let inner = self.shared.lock();
        stream_page(inner.state.tenant(query.tenant)?, query, &inner.identity)
    }
}

impl Inner {
    /// Locks and compares one entry: no outcome yet means "append it", with the guard that keeps it so.
    ///
    /// Fails when a row of it would be refused, which refuses the whole batch.
    fn compare(
        &mut self,
        entry: &TenantAppend,
    ) -> Result<(Option<AppendOutcome>, Option<OwnedMutexGuard<()>>)> {
        if !self.state.tenants.contains_key(&entry.tenant) {
            return Ok((Some(AppendOutcome::NoTenant), None));
        }
        let Ok(guard) = self.head_lock(entry.tenant).try_lock_owned() else {
            return Ok((Some(AppendOutcome::Busy), None));
        };
        let tenant = self.state.tenant(entry.tenant)?;
        if !tenant.open {
            return Ok((Some(AppendOutcome::Closed), None));
        }
        if tenant.head != entry.expected_head || tenant.place != entry.place {
            return Ok((Some(AppendOutcome::Stale { head: tenant.head, place: tenant.place }), None));
        }
        tenant.check(&entry.events)?;
        self.refuse_poison(entry.events.iter().map(|event| &event.stream))?;
        Ok((None, Some(guard)))
    }

    /// Refuses streams that a fault made poison.
    pub(crate) fn refuse_poison<'a>(&self, mut streams: impl Iterator<Item = &'a StreamId>) -> Result<()> {
        match streams.find(|stream| self.injected.refuses_stream(stream)) {
            Some(stream) => {
                Err(Error::rejected(format!("a row of stream {:?} is refused (injected)", stream.as_str()))
                    .fix("leave it out"))
            }
            None => Ok(()),
        }
    }
}

/// States of streams in this snapshot.
pub(crate) fn versions(tenant: &Tenant, streams: &[StreamId], identity: &ServerIdentity) -> StreamVersions {
    StreamVersions {
        head: tenant.head,
        place: tenant.place,
        streams: streams.iter().map(|stream| tenant.stream(stream)).collect(),
        identity: identity.clone(),
    }
}

fn page(tenant: &Tenant, query: &PageQuery<'_>, identity: &ServerIdentity) -> Result<Page> {
    let last = query.up_to.map_or(tenant.head, |up_to| up_to.min(tenant.head));
    let mut page = Page {
        head: tenant.head,
        through: query.after,
        events: Vec::new(),
        too_large: None,
        identity: identity.clone(),
    };
    let mut bytes = 0u64;
    if query.after >= last {
        return Ok(page);
    }
    let range = (Bound::Excluded(query.after), Bound::Included(last));
    let mut looked_at = tenant.events.range(range).take(EVENTS_LOOKED_AT_MAX);
    while page.through < last {
        let Some((&sequence, event)) = looked_at.next() else {
            // Either the look is over, or the log ends before its head.
            return if page.through > query.after && tenant.events.contains_key(&page.through.next()) {
                Ok(page)
            } else {
                Err(hole(tenant, page.through.next()))
            };
        };
        if sequence != page.through.next() {
            return Err(hole(tenant, page.through.next()));
        }
        if wanted(query, event) {
            let size = event.size() as u64;
            let sum = bytes.saturating_add(size);
            if page.events.len() as u64 >= u64::from(query.events_max.max(1)) {
                break;
            }
            if sum > query.bytes_max {
                page.too_large = page.events.is_empty().then_some((sequence, size));
                break;
            }
            bytes = sum;
            page.events.push(StoredEvent::clone(event));
        }
        page.through = sequence;
    }
    Ok(page)
}

fn wanted(query: &PageQuery<'_>, event: &Arc<StoredEvent>) -> bool {
    query.types.is_none_or(|types| types.contains(&event.event_type))
}

fn stream_page(tenant: &Tenant, query: &StreamQuery<'_>, identity: &ServerIdentity) -> Result<StreamPage> {
    let mut page = StreamPage {
        head: tenant.head,
        place: tenant.place,
        version: tenant.stream(query.stream).version,
        events: Vec::new(),
        identity: identity.clone(),
    };
    let mut bytes = 0u64;
    let mut expected = query.after;
    for (version, event) in tenant.stream_after(query.stream, query.after) {
        if page.events.len() as u64 >= u64::from(query.events_max.max(1)) {
            break;
        }
        expected = expected.next();
        let Some(event) = event.filter(|_| version == expected) else {
            return Err(Error::corrupt(format!(
                "version {expected} of stream {:?} is missing",
                query.stream.as_str()
            ))
            .fix("restore the tenant from a backup"));
        };
        bytes = bytes.saturating_add(event.size() as u64);
        if bytes > query.bytes_max && !page.events.is_empty() {
            break;
        }
        page.events.push(StoredEvent::clone(event));
    }
    Ok(page)
}

fn hole(tenant: &Tenant, sequence: Sequence) -> Error {
    Error::corrupt(format!(
        "event {sequence} of tenant {} is missing below its head {}",
        tenant.id, tenant.head
    ))
    .fix("restore the tenant from a backup")
}
