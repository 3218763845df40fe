//! The projection port: registering, fencing, progress, documents.

use std::collections::BTreeMap;
use std::ops::Bound;

use async_trait::async_trait;
use bellwether_storage::{
    DeadLetter, Document, DocumentKey, DocumentSet, Error, FenceClaim, FenceOutcome, FenceRequest,
    Generation, Owner, PageStart, Progress, ProgressKey, ProjectionName, ProjectionNo, Projections, Result,
    Row, Sequence, Statement, TenantNo, UnitOfWork, ViewName, ViewNo,
};
use tokio::sync::OwnedMutexGuard;

use crate::Memory;
use crate::state::exhausted;
use crate::unit::MemoryUnit;

/// Keys of one read, as the port allows.
const KEYS_MAX: usize = 10_000;

#[async_trait]
impl Projections for Memory {
    async fn ensure_projection(&self, name: &ProjectionName) -> Result<ProjectionNo> {
        self.call().await?;
        let projections = &mut self.shared.lock().state.projections;
        let next = next_number(projections.len(), "projection")?;
        Ok(*projections.entry(name.clone()).or_insert(ProjectionNo(next)))
    }

    async fn ensure_view(&self, name: &ViewName, version: u32) -> Result<ViewNo> {
        self.call().await?;
        let views = &mut self.shared.lock().state.views;
        let next = next_number(views.len(), "view")?;
        Ok(*views.entry((name.clone(), version)).or_insert(ViewNo(next)))
    }

    async fn fence(&self, owner: Owner, requests: &[FenceRequest]) -> Result<Vec<FenceOutcome>> {
        self.call().await?;
        // In key order, whatever the order asked, so that two fences never wait for each other in a ring.
        let mut keys: Vec<ProgressKey> = requests.iter().map(|request| request.key).collect();
        keys.sort_unstable();
        if keys.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(Error::rejected("a fence that names a progress row twice").fix("name each row once"));
        }
        let life = self.shared.lock().life;
        let mut held = Vec::with_capacity(keys.len());
        for key in keys {
            held.push(self.lock_row(key).await?);
        }
        let mut inner = self.shared.lock();
        inner.same_life(life)?;
        let rows = &mut inner.state.progress;
        let decided = requests.iter().map(|request| claim(owner, request, rows.get(&request.key).copied()));
        let decided = decided.collect::<Result<Vec<_>>>()?;
        for (request, outcome) in requests.iter().zip(&decided) {
            let (FenceOutcome::Positioned(progress) | FenceOutcome::Refused(progress)) = outcome else {
                continue;
            };
            rows.insert(request.key, *progress);
        }
        Ok(decided)
    }

    async fn progress(&self, keys: &[ProgressKey]) -> Result<Vec<Option<Progress>>> {
        self.call().await?;
        let inner = self.shared.lock();
        Ok(keys.iter().map(|key| inner.state.progress.get(key).copied()).collect())
    }

    async fn begin(&self, start: &PageStart) -> Result<Box<dyn UnitOfWork>> {
        self.call().await?;
        let life = self.shared.lock().life;
        let guard = self.lock_row(start.key).await?;
        Ok(Box::new(MemoryUnit::new(self.clone(), *start, guard, life)?))
    }

    async fn load(&self, set: DocumentSet, keys: &[DocumentKey]) -> Result<Vec<Document>> {
        self.call().await?;
        if keys.len() > KEYS_MAX {
            return Err(Error::rejected(format!("{} keys in one read, at most {KEYS_MAX}", keys.len()))
                .fix("read in parts"));
        }
        let inner = self.shared.lock();
        let Some(documents) = inner.state.documents.get(&(set.view, set.tenant, set.build)) else {
            return Ok(Vec::new());
        };
        let found = keys.iter().filter_map(|key| documents.get_key_value(key));
        Ok(found.map(document).collect())
    }

    async fn list(&self, set: DocumentSet, after: Option<&DocumentKey>, limit: u32) -> Result<Vec<Document>> {
        self.call().await?;
        let inner = self.shared.lock();
        let Some(documents) = inner.state.documents.get(&(set.view, set.tenant, set.build)) else {
            return Ok(Vec::new());
        };
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        Ok(documents
            .range::<DocumentKey, _>((from, Bound::Unbounded))
            .take(limit as usize)
            .map(document)
            .collect())
    }

    async fn dead_letters(&self, tenant: TenantNo, limit: u32) -> Result<Vec<DeadLetter>> {
        self.call().await?;
        let inner = self.shared.lock();
        let of_tenant = inner.state.dead_letters.iter().filter(|(key, _)| key.0 == tenant);
        Ok(of_tenant.take(limit as usize).map(|(_, letter)| letter.clone()).collect())
    }

    async fn set_up(&self, _statements: &[Statement]) -> Result<()> {
        self.call().await?;
        Err(no_sql())
    }

    async fn query(&self, _statement: &Statement) -> Result<Vec<Row>> {
        self.call().await?;
        Err(no_sql())
    }
}

impl Memory {
    async fn lock_row(&self, key: ProgressKey) -> Result<OwnedMutexGuard<()>> {
        let lock = self.shared.lock().row_lock(key);
        let wait = self.row_wait();
        tokio::time::timeout(wait, lock.lock_owned()).await.map_err(|_| {
            Error::unavailable(format!(
                "the progress row of tenant {} was not free within {wait:?}",
                key.tenant.0
            ))
            .fix("try again")
        })
    }
}

/// Decides one claim on a row. A row that is not there counts as one at zero that nobody owns.
fn claim(owner: Owner, request: &FenceRequest, stored: Option<Progress>) -> Result<FenceOutcome> {
    let stored =
        stored.unwrap_or(Progress { sequence: Sequence::ZERO, generation: Generation(0), owner: None });
    let generation = match request.claim {
        FenceClaim::Granted(generation) if (generation, Some(owner)) >= (stored.generation, stored.owner) => {
            Some(generation)
        }
        FenceClaim::TakeOver { seen } if seen.is_none_or(|seen| seen == stored) => {
            Some(Generation(stored.generation.0.checked_add(1).ok_or_else(|| exhausted("generation"))?))
        }
        _ => None,
    };
    Ok(match generation {
        Some(generation) => {
            FenceOutcome::Positioned(Progress { sequence: stored.sequence, generation, owner: Some(owner) })
        }
        None => FenceOutcome::Refused(stored),
    })
}

fn next_number(taken: usize, what: &str) -> Result<i32> {
    taken.checked_add(1).and_then(|next| i32::try_from(next).ok()).ok_or_else(|| exhausted(what))
}

fn document((key, body): (&DocumentKey, &bytes::Bytes)) -> Document {
    Document { key: key.clone(), body: body.clone() }
}

/// The answer to every statement.
pub(crate) fn no_sql() -> Error {
    Error::unsupported("the in-memory store speaks no SQL")
        .fix("use a View here, or open a SQLite or PostgreSQL store for SQL projections")
}

/// Documents of one set, as the state keeps them.
pub(crate) type Documents = BTreeMap<DocumentKey, bytes::Bytes>;
