//! The documents in work: taken in, measured, written when they fill the chunk.

use std::collections::{BTreeMap, BTreeSet};

use bellwether_storage::{DocumentKey, DocumentSet, Error, ErrorKind, PageStart, PageStyle, ViewNo};

use crate::decide::sizing::{Chunk, Fill, Standing, WRITE_DOCUMENTS};

use super::route::Route;
use super::work::{Trouble, Work};

/// Chunks a page may grow to, beyond which larger maps save nothing worth their memory.
const GROWN_CHUNKS_MAX: u64 = 4;

/// The room a page has for documents, and what is known of their sizes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Room {
    pub(crate) chunk: Chunk,
    /// The largest document of any member so far.
    pub(crate) document_bytes_max: u64,
}

impl Work<'_> {
    /// Takes in the documents of the first of these routes, as many as may be loaded at once; returns for how many routes all
    /// is here: at least one.
    pub(super) async fn take_in(&mut self, routes: &[Route]) -> Result<usize, Trouble> {
        let keys_max = self.room.chunk.keys(self.room.document_bytes_max);
        let mut missing: BTreeMap<usize, BTreeSet<DocumentKey>> = BTreeMap::new();
        let (mut count, mut ready) = (0, 0);
        for route in routes {
            if !self.working[route.seat].holds(&route.key) {
                let keys = missing.entry(route.seat).or_default();
                if !keys.contains(&route.key) {
                    if count == keys_max {
                        break;
                    }
                    keys.insert(route.key.clone());
                    count += 1;
                }
            }
            ready += 1;
        }
        for (seat, keys) in missing {
            self.load(seat, keys).await?;
        }
        Ok(ready)
    }

    pub(super) async fn load(&mut self, seat: usize, mut keys: BTreeSet<DocumentKey>) -> Result<(), Trouble> {
        let site = &self.agent.site;
        let view = self.view(seat);
        let asked: Vec<_> = keys.iter().cloned().collect();
        let documents = match &mut self.unit {
            Some(unit) => unit.load(view, &asked).await?,
            None => {
                let key = self.fleet.key(self.agent);
                let set = DocumentSet { view, tenant: key.tenant, build: key.build };
                site.database.load(set, &asked).await?
            }
        };
        for document in documents {
            self.room.document_bytes_max = self.room.document_bytes_max.max(document.body.len() as u64);
            keys.remove(&document.key);
            let key = document.key.clone();
            self.working[seat].insert(document.key, Some(&document.body)).map_err(|reason| {
                Error::corrupt(format!(
                    "document {key} of view {} of tenant {} cannot be decoded: {reason}",
                    self.projection.member_name(seat),
                    self.agent.facts.id
                ))
                .fix("raise the view's VERSION when its fields change in a way old documents do not fit")
            })?;
        }
        for key in keys {
            self.working[seat].insert(key, None).map_err(Error::corrupt)?;
        }
        Ok(())
    }

    pub(super) fn view(&self, seat: usize) -> ViewNo {
        self.agent.site.posts[self.agent.projection].views[seat]
    }

    pub(super) fn bytes(&self) -> u64 {
        self.working.iter().map(|working| working.bytes()).sum()
    }

    /// What to do now, before the next of these routes.
    pub(super) fn fill(&self, ends_event: bool, next: &[Route]) -> Fill {
        let cuts = self.agent.site.style != PageStyle::Streaming;
        let next_bytes = if cuts && ends_event { self.next_bytes(next) } else { 0 };
        let open = self.unit.is_some();
        self.room.chunk.fill(Standing { bytes: self.bytes(), next_bytes, ends_event, cuts, open })
    }

    /// What the event of the first of these routes will add, by the size of the documents so far.
    fn next_bytes(&self, next: &[Route]) -> u64 {
        let Some(first) = next.first() else { return 0 };
        let event = next.iter().take_while(|route| route.input == first.input);
        let new = event.filter(|route| !self.working[route.seat].holds(&route.key)).count() as u64;
        let here = self.working.iter().map(|working| working.count() as u64).sum::<u64>().max(1);
        new.saturating_mul(self.bytes() / here)
    }

    /// Takes one more chunk from the budget, if there is room and it has not taken its share; says whether it did.
    pub(super) fn grow(&mut self) -> bool {
        let by = self.fleet.chunk_bytes();
        let may = self.room.chunk.soft < by.saturating_mul(GROWN_CHUNKS_MAX);
        if may && self.lease.grow(by) {
            self.room.chunk = self.room.chunk.grown(by);
            return true;
        }
        false
    }

    /// Grows, or writes the documents in work inside the page's transaction.
    pub(super) async fn make_room(&mut self, start: &PageStart) -> Result<(), Trouble> {
        if self.grow() {
            return Ok(());
        }
        self.begin(start).await?;
        self.flushes += 1;
        self.write_all().await
    }

    /// Writes all changed documents, part by part, and empties the map.
    pub(super) async fn write_all(&mut self) -> Result<(), Trouble> {
        self.fleet.tally.page_bytes_peak.raise(self.loaded.bytes + self.bytes());
        for seat in 0..self.working.len() {
            let view = self.view(seat);
            loop {
                let writes = self.working[seat]
                    .drain(WRITE_DOCUMENTS, self.room.chunk.write_bytes)
                    .map_err(|reason| Trouble::Rejected { seat, error: Error::rejected(reason) })?;
                if writes.is_empty() {
                    break;
                }
                self.documents += writes.len() as u64;
                self.room.document_bytes_max = writes
                    .iter()
                    .map(|write| write.size() as u64)
                    .fold(self.room.document_bytes_max, u64::max);
                let unit = self.unit.as_mut().expect("begun before anything is written");
                unit.write(view, writes).await.map_err(|error| match error.kind() {
                    ErrorKind::Rejected => Trouble::Rejected { seat, error },
                    _ => Trouble::Storage(error),
                })?;
            }
        }
        Ok(())
    }
}
