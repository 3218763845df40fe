//! The event log of a store with a fault.

use std::time::Duration;

use async_trait::async_trait;
use bellwether_storage::{
    AppendBatch, AppendOutcome, AppendReceipt, Database, Error, ErrorKind, EventLog, HeadLock, Page,
    PageQuery, Result, Sequence, StreamId, StreamPage, StreamQuery, StreamVersions, TenantNo, Timestamp,
};

use super::database::Mutant;
use super::fault::Fault;
use super::lock::MutantLock;

/// What a lost answer is taken for.
pub(crate) fn unavailable() -> Error {
    Error::unavailable("the connection broke")
}

#[async_trait]
impl EventLog for Mutant {
    async fn append(&self, batch: &AppendBatch) -> Result<AppendReceipt> {
        let answered = match self.fault {
            Fault::AppendsUnderAStaleHead => self.append_anyway(batch).await,
            Fault::BelievesAnyServer => {
                self.below.append(&AppendBatch { identity: None, ..batch.clone() }).await
            }
            Fault::CommitsHalfABatch => self.append_one_by_one(batch).await,
            _ => self.below.append(batch).await,
        };
        match answered {
            Err(error) if error.kind() == ErrorKind::Unknown && self.is(Fault::TakesUnknownForDone) => {
                let done = AppendOutcome::Done { at: Timestamp::default() };
                let identity = self.below.identity().await?;
                Ok(AppendReceipt { outcomes: vec![done; batch.tenants.len()], identity })
            }
            Err(error)
                if error.kind() == ErrorKind::Unknown && self.is(Fault::TakesUnknownForUnavailable) =>
            {
                Err(unavailable())
            }
            answered => answered,
        }
    }

    async fn lock_head(&self, tenant: TenantNo, wait: Duration) -> Result<Box<dyn HeadLock>> {
        let below = self.below.lock_head(tenant, wait).await?;
        Ok(Box::new(MutantLock { below: Some(below), tenant, fault: self.fault, memory: self.below.clone() }))
    }

    async fn stream_versions(&self, tenant: TenantNo, streams: &[StreamId]) -> Result<StreamVersions> {
        let mut found = self.below.stream_versions(tenant, streams).await?;
        if self.is(Fault::FoldsCase) {
            let folded: Vec<_> =
                streams.iter().filter_map(|name| StreamId::new(name.as_str().to_lowercase()).ok()).collect();
            let folded = self.below.stream_versions(tenant, &folded).await?.streams;
            for (found, folded) in found.streams.iter_mut().zip(folded) {
                found.version = found.version.max(folded.version);
            }
        }
        if self.is(Fault::KeepsNumbersIn32Bits) {
            found.head = Sequence::new(found.head.get() & u64::from(u32::MAX));
        }
        Ok(found)
    }

    async fn read_page(&self, query: &PageQuery<'_>) -> Result<Page> {
        let mut query = query.clone();
        match self.fault {
            Fault::MixesEventsOfTenants => query.tenant = TenantNo(1),
            Fault::ReadsPastItsBound => query.up_to = None,
            _ => {}
        }
        let mut page = match self.below.read_page(&query).await {
            Err(error) if error.kind() == ErrorKind::Corrupt && self.is(Fault::SkipsAHole) => {
                let mut beyond = query.clone();
                loop {
                    beyond.after = beyond.after.next();
                    if let Ok(page) = self.below.read_page(&beyond).await {
                        break page;
                    }
                }
            }
            answered => answered?,
        };
        match self.fault {
            Fault::ReadsPastTheHead if page.through >= page.head => {
                page.through = page.through.max(page.head.next())
            }
            Fault::SkipsALargeEvent => {
                if let Some((sequence, _)) = page.too_large.take() {
                    page.through = sequence;
                }
            }
            Fault::ReusesANumber => {
                if let [.., before, last] = &mut page.events[..] {
                    last.sequence = before.sequence;
                }
            }
            Fault::ReadsTheHeadEarlier => {
                let mut seen = self.seen.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                std::mem::swap(&mut *seen, &mut page.head);
            }
            _ => {}
        }
        Ok(page)
    }

    async fn read_stream(&self, query: &StreamQuery<'_>) -> Result<StreamPage> {
        self.below.read_stream(query).await
    }
}

impl Mutant {
    /// Sends a stale entry again under the head that was found.
    async fn append_anyway(&self, batch: &AppendBatch) -> Result<AppendReceipt> {
        let mut receipt = self.below.append(batch).await?;
        for (entry, outcome) in batch.tenants.iter().zip(&mut receipt.outcomes) {
            if let AppendOutcome::Stale { head, place } = *outcome {
                let mut repaired = entry.clone();
                (repaired.expected_head, repaired.place) = (head, place);
                let again =
                    AppendBatch { tenants: vec![repaired], now: batch.now, identity: batch.identity.clone() };
                *outcome = self.below.append(&again).await?.outcomes.remove(0);
            }
        }
        Ok(receipt)
    }

    async fn append_one_by_one(&self, batch: &AppendBatch) -> Result<AppendReceipt> {
        let mut outcomes = Vec::new();
        for entry in &batch.tenants {
            let one = AppendBatch {
                tenants: vec![entry.clone()],
                now: batch.now,
                identity: batch.identity.clone(),
            };
            outcomes.extend(self.below.append(&one).await?.outcomes);
        }
        Ok(AppendReceipt { outcomes, identity: self.below.identity().await? })
    }
}
