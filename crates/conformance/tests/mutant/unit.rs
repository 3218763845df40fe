//! The unit of work of a store with a fault.

use async_trait::async_trait;
use bellwether_memory::Memory;
use bellwether_storage::{
    DeadLetter, Document, DocumentKey, DocumentWrite, ErrorKind, PageStart, Projections, Result, Row,
    Sequence, Statement, UnitOfWork, ViewNo,
};

use super::fault::Fault;
use super::log::unavailable;

/// A unit of work with a fault.
pub(crate) struct MutantUnit {
    pub(crate) below: Box<dyn UnitOfWork>,
    pub(crate) start: PageStart,
    pub(crate) fault: Fault,
    pub(crate) memory: Memory,
}

#[async_trait]
impl UnitOfWork for MutantUnit {
    async fn load(&mut self, view: ViewNo, keys: &[DocumentKey]) -> Result<Vec<Document>> {
        self.below.load(view, keys).await
    }

    async fn write(&mut self, view: ViewNo, mut writes: Vec<DocumentWrite>) -> Result<()> {
        match self.fault {
            Fault::CommitsProgressWithoutDocuments => return Ok(()),
            Fault::ForgetsToDelete => writes.retain(|write| write.body.is_some()),
            _ => {}
        }
        self.below.write(view, writes).await
    }

    async fn execute(&mut self, statement: &Statement) -> Result<u64> {
        self.below.execute(statement).await
    }

    async fn query(&mut self, statement: &Statement) -> Result<Vec<Row>> {
        self.below.query(statement).await
    }

    async fn finish(self: Box<Self>, to: Sequence, dead_letters: &[DeadLetter]) -> Result<()> {
        let kept = match (self.fault, dead_letters) {
            (Fault::DropsADeadLetter, [kept @ .., _]) => kept,
            (_, all) => all,
        };
        if self.fault == Fault::CommitsInTwoSteps {
            self.below.finish(self.start.from, &[]).await?;
            tokio::task::yield_now().await;
            return self.memory.begin(&self.start).await?.finish(to, kept).await;
        }
        match self.below.finish(to, kept).await {
            Err(error) if error.kind() == ErrorKind::Unknown && self.fault == Fault::TakesUnknownForDone => {
                Ok(())
            }
            Err(error)
                if error.kind() == ErrorKind::Unknown && self.fault == Fault::TakesUnknownForUnavailable =>
            {
                Err(unavailable())
            }
            answered => answered,
        }
    }

    async fn roll_back(self: Box<Self>) {
        if self.fault == Fault::CommitsOnRollBack {
            drop(self.below.finish(self.start.from, &[]).await);
        } else {
            self.below.roll_back().await;
        }
    }
}
