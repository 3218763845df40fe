//! A page's unit of work: buffers its writes, and commits them with the progress or not at all.

use std::collections::HashMap;

use async_trait::async_trait;
use bellwether_storage::{
    DeadLetter, Document, DocumentKey, DocumentWrite, Error, PageStart, Progress, Result, Row, Sequence,
    Statement, Timestamp, UnitOfWork, ViewNo,
};
use bytes::Bytes;
use tokio::sync::OwnedMutexGuard;

use crate::Memory;
use crate::faults::Commit;
use crate::handle::Inner;
use crate::projections::{Documents, no_sql};
use crate::state::clock;

/// An open page. It holds its progress row until it is finished or dropped.
pub(crate) struct MemoryUnit {
    memory: Memory,
    start: PageStart,
    life: u64,
    /// Set once a write was refused: like a database's transaction, the unit is gone.
    broken: bool,
    writes: HashMap<(ViewNo, DocumentKey), Option<Bytes>>,
    _guard: OwnedMutexGuard<()>,
}

impl MemoryUnit {
    /// Compares the locked row with what the page expects.
    pub(crate) fn new(
        memory: Memory,
        start: PageStart,
        guard: OwnedMutexGuard<()>,
        life: u64,
    ) -> Result<Self> {
        let unit = Self { memory, start, life, broken: false, writes: HashMap::new(), _guard: guard };
        unit.compare(&unit.memory.shared.lock())?;
        Ok(unit)
    }

    fn compare(&self, inner: &Inner) -> Result<()> {
        inner.same_life(self.life)?;
        let wanted = Progress {
            sequence: self.start.from,
            generation: self.start.generation,
            owner: Some(self.start.owner),
        };
        match inner.state.progress.get(&self.start.key) {
            Some(found) if *found == wanted => Ok(()),
            Some(found) => Err(Error::fenced(format!(
                "the progress row holds sequence {} and generation {}, not sequence {} and generation {} of this owner",
                found.sequence, found.generation.0, wanted.sequence, wanted.generation.0
            ))
            .fix("position anew through the fence")),
            None => Err(Error::fenced("there is no such progress row").fix("position through the fence first")),
        }
    }

    fn still_whole(&self) -> Result<()> {
        self.memory.still_open()?;
        if self.broken {
            return Err(Error::unavailable("this unit of work is gone: a write of it was refused")
                .fix("begin the page again"));
        }
        Ok(())
    }
}

#[async_trait]
impl UnitOfWork for MemoryUnit {
    async fn load(&mut self, view: ViewNo, keys: &[DocumentKey]) -> Result<Vec<Document>> {
        self.memory.call().await?;
        self.still_whole()?;
        let inner = self.memory.shared.lock();
        inner.same_life(self.life)?;
        let stored = inner.state.documents.get(&(view, self.start.key.tenant, self.start.key.build));
        let mut found = Vec::new();
        for key in keys {
            let own = self.writes.get(&(view, key.clone()));
            let body = own
                .cloned()
                .unwrap_or_else(|| stored.and_then(|stored: &Documents| stored.get(key)).cloned());
            found.extend(body.map(|body| Document { key: key.clone(), body }));
        }
        Ok(found)
    }

    async fn write(&mut self, view: ViewNo, writes: Vec<DocumentWrite>) -> Result<()> {
        self.memory.call().await?;
        self.still_whole()?;
        let refused = {
            let inner = self.memory.shared.lock();
            inner.same_life(self.life)?;
            let unknown = !inner.state.views.values().any(|known| *known == view);
            let poison = writes.iter().find(|write| inner.injected.refuses_document(&write.key));
            poison
                .map(|write| format!("a row of document {:?} is refused (injected)", write.key.as_str()))
                .or_else(|| unknown.then(|| format!("there is no view {}", view.0)))
        };
        if let Some(refused) = refused {
            self.broken = true;
            return Err(Error::rejected(refused).fix("leave it out, and begin the page again"));
        }
        self.writes.extend(writes.into_iter().map(|write| ((view, write.key), write.body)));
        Ok(())
    }

    async fn execute(&mut self, _statement: &Statement) -> Result<u64> {
        self.memory.call().await?;
        Err(no_sql())
    }

    async fn query(&mut self, _statement: &Statement) -> Result<Vec<Row>> {
        self.memory.call().await?;
        Err(no_sql())
    }

    async fn finish(self: Box<Self>, to: Sequence, dead_letters: &[DeadLetter]) -> Result<()> {
        self.memory.call().await?;
        self.still_whole()?;
        if to < self.start.from || to > Sequence::MAX {
            return Err(Error::rejected(format!("a page from {} cannot end at {to}", self.start.from))
                .fix("end it at or after its start"));
        }
        let Self { memory, start, writes, .. } = &*self;
        let mut inner = memory.shared.lock();
        self.compare(&inner)?;
        inner.commit(Commit::Finish, |state| {
            for ((view, key), body) in writes {
                let documents =
                    state.documents.entry((*view, start.key.tenant, start.key.build)).or_default();
                match body {
                    Some(body) => drop(documents.insert(key.clone(), body.clone())),
                    None => drop(documents.remove(key)),
                }
            }
            for letter in dead_letters {
                let key = (
                    letter.key.tenant,
                    letter.key.projection,
                    letter.key.version,
                    letter.key.build,
                    letter.sequence,
                    letter.member.clone(),
                );
                let at = if letter.at == Timestamp::default() { clock() } else { letter.at };
                state.dead_letters.insert(key, DeadLetter { at, ..letter.clone() });
            }
            let moved = Progress { sequence: to, generation: start.generation, owner: Some(start.owner) };
            state.progress.insert(start.key, moved);
            Ok(())
        })
    }

    async fn roll_back(self: Box<Self>) {}
}
