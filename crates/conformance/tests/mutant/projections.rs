//! The projection port of a store with a fault.

use async_trait::async_trait;
use bellwether_storage::{
    Build, DeadLetter, Document, DocumentKey, DocumentSet, FenceClaim, FenceOutcome, FenceRequest, Owner,
    PageStart, Progress, ProgressKey, ProjectionName, ProjectionNo, Projections, Result, Row, Statement,
    TenantNo, UnitOfWork, ViewName, ViewNo,
};

use super::database::Mutant;
use super::fault::Fault;
use super::unit::MutantUnit;

#[async_trait]
impl Projections for Mutant {
    async fn ensure_projection(&self, name: &ProjectionName) -> Result<ProjectionNo> {
        self.below.ensure_projection(name).await
    }

    async fn ensure_view(&self, name: &ViewName, version: u32) -> Result<ViewNo> {
        self.below.ensure_view(name, version).await
    }

    async fn fence(&self, owner: Owner, requests: &[FenceRequest]) -> Result<Vec<FenceOutcome>> {
        let mut requests = requests.to_vec();
        if self.is(Fault::TakesOverUnseen) {
            for request in &mut requests {
                if let FenceClaim::TakeOver { seen } = &mut request.claim {
                    *seen = None;
                }
            }
        }
        self.below.fence(owner, &requests).await
    }

    async fn progress(&self, keys: &[ProgressKey]) -> Result<Vec<Option<Progress>>> {
        self.below.progress(keys).await
    }

    async fn begin(&self, start: &PageStart) -> Result<Box<dyn UnitOfWork>> {
        let mut start = *start;
        if let [Some(Progress { sequence, generation, owner: Some(owner) })] =
            self.below.progress(&[start.key]).await?[..]
        {
            match self.fault {
                Fault::AcceptsAStaleGeneration => start.generation = generation,
                Fault::AcceptsAnotherOwner => start.owner = owner,
                Fault::AcceptsAnyPosition => start.from = sequence,
                _ => {}
            }
        }
        let below = self.below.begin(&start).await?;
        Ok(Box::new(MutantUnit { below, start, fault: self.fault, memory: self.below.clone() }))
    }

    async fn load(&self, set: DocumentSet, keys: &[DocumentKey]) -> Result<Vec<Document>> {
        let mut found = self.below.load(self.mistaken(set), keys).await?;
        if self.is(Fault::FoldsNormalForms) && found.is_empty() {
            let composed: Vec<_> = keys
                .iter()
                .filter_map(|key| DocumentKey::new(key.as_str().replace("e\u{301}", "\u{e9}")).ok())
                .collect();
            found = self.below.load(set, &composed).await?;
        }
        Ok(found)
    }

    async fn list(&self, set: DocumentSet, after: Option<&DocumentKey>, limit: u32) -> Result<Vec<Document>> {
        self.below.list(self.mistaken(set), after, limit).await
    }

    async fn dead_letters(&self, tenant: TenantNo, limit: u32) -> Result<Vec<DeadLetter>> {
        self.below.dead_letters(tenant, limit).await
    }

    async fn set_up(&self, statements: &[Statement]) -> Result<()> {
        self.below.set_up(statements).await
    }

    async fn query(&self, statement: &Statement) -> Result<Vec<Row>> {
        self.below.query(statement).await
    }
}

impl Mutant {
    /// The documents that are read instead of those asked for.
    fn mistaken(&self, set: DocumentSet) -> DocumentSet {
        match self.fault {
            Fault::MixesDocumentsOfTenants => DocumentSet { tenant: TenantNo(1), ..set },
            Fault::MixesDocumentsOfBuilds => DocumentSet { build: Build::FIRST, ..set },
            _ => set,
        }
    }
}
