//! Working on a page: event by event, with a bounded map of documents.
//!
//! Events are taken in windows: routed, their documents loaded together, applied in order. What the first members change flows
//! on to those that follow them before the next window. When the documents in work fill the chunk they are written inside the
//! open transaction and the map starts empty; or, where a transaction keeps others waiting, the page is cut there instead.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use bellwether_storage::{
    DeadLetter, DocumentKey, DocumentSet, Error, ErrorKind, Generation, PageStart, PageStyle, Result,
    Sequence, UnitOfWork, ViewNo,
};

use crate::decide::sizing::{Chunk, WINDOW_KEYS, WRITE_DOCUMENTS};
use crate::member::{Cause, Emitted, Refused, Slot, Working};
use crate::projection::{Body, Projection, Seat};
use crate::{Keys, Lease};

use super::agent::Agent;
use super::fleet::Fleet;
use super::letters::letter;
use super::turn::Loaded;

/// Events that a member cannot work on, by index in the page and seat.
pub(crate) type Skips = BTreeMap<(usize, usize), Refused>;

/// A pass that committed.
pub(crate) struct Passed {
    /// Index of the first event that is left.
    pub(crate) next: usize,
    /// The progress that was committed.
    pub(crate) to: Sequence,
    pub(crate) documents: u64,
    pub(crate) flushes: u64,
    pub(crate) dead_letters: u64,
}

/// A pass that did not commit.
pub(crate) enum Trouble {
    /// The user's code refuses this event.
    Refused { index: usize, seat: usize, refused: Refused },
    /// The database refuses what came out of one of these events.
    Rejected { seat: usize, error: Error },
    /// The database failed.
    Storage(Error),
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Self::Storage(error)
    }
}

/// One pass over a part of a page.
pub(crate) struct Work<'a> {
    pub(super) fleet: &'a Fleet,
    pub(super) agent: &'a Agent,
    pub(super) projection: &'a Projection,
    pub(super) loaded: &'a Loaded,
    pub(super) skips: &'a Skips,
    lease: &'a Lease,
    chunk: Chunk,
    document_bytes_max: u64,
    working: Vec<Box<dyn Working>>,
    pub(super) unit: Option<Box<dyn UnitOfWork>>,
    documents: u64,
    flushes: u64,
}

/// One application to come: an input, by its place in the window, and the document it goes to.
struct Route {
    input: usize,
    seat: usize,
    key: DocumentKey,
}

/// Keys of an event that are not in a window yet.
struct Pending {
    index: usize,
    seat: usize,
    keys: Keys,
    taken: usize,
}

impl<'a> Work<'a> {
    pub(crate) fn new(
        fleet: &'a Arc<Fleet>,
        agent: &'a Arc<Agent>,
        lease: &'a Lease,
        loaded: &'a Loaded,
        skips: &'a Skips,
        chunk: Chunk,
        document_bytes_max: u64,
    ) -> Self {
        let projection = &fleet.projections[agent.projection];
        let working = match &projection.body {
            Body::Members(seats) => seats.iter().map(|seat| seat.member.open(seat.taps.clone())).collect(),
            Body::Sql(_) => Vec::new(),
        };
        Self {
            fleet,
            agent,
            projection,
            loaded,
            skips,
            lease,
            chunk,
            document_bytes_max,
            working,
            unit: None,
            documents: 0,
            flushes: 0,
        }
    }

    /// The chunk, as far as it could grow.
    pub(crate) fn chunk(&self) -> Chunk {
        self.chunk
    }

    /// The largest document met.
    pub(crate) fn document_bytes_max(&self) -> u64 {
        self.document_bytes_max
    }

    /// Works on these events of the page and commits them, or the first part of them.
    pub(crate) async fn pass(
        &mut self,
        sequence: Sequence,
        generation: Generation,
        range: Range<usize>,
    ) -> Result<Passed, Trouble> {
        let fleet = self.fleet;
        let start = PageStart { key: fleet.key(self.agent), from: sequence, generation, owner: fleet.owner };
        let first = range.start;
        let done = match &self.projection.body {
            Body::Sql(sql) => self.project(sql.as_ref(), &start, range).await,
            Body::Members(seats) => self.members(seats, &start, range).await,
        };
        match done {
            Ok(next) => self.finish(&start, first, next).await,
            Err(trouble) => {
                if let Some(unit) = self.unit.take() {
                    unit.roll_back().await;
                }
                Err(trouble)
            }
        }
    }

    /// Writes what is left, and commits everything before `next`.
    async fn finish(&mut self, start: &PageStart, first: usize, next: usize) -> Result<Passed, Trouble> {
        self.begin(start).await?;
        self.write_all().await?;
        let to = match next == self.loaded.events.len() {
            true => self.loaded.through,
            false => self.loaded.events[next - 1].sequence,
        };
        let letters = self.letters(start, first..next);
        let unit = self.unit.take().expect("begun above");
        unit.finish(to, &letters).await?;
        Ok(Passed {
            next,
            to,
            documents: self.documents,
            flushes: self.flushes,
            dead_letters: letters.len() as u64,
        })
    }

    /// Dead letters of these events: those that could not be decoded, and those that were refused.
    fn letters(&self, start: &PageStart, range: Range<usize>) -> Vec<DeadLetter> {
        let mut letters = Vec::new();
        for index in range {
            let event = &self.loaded.events[index];
            let mut add = |seat, refused: &Refused| {
                letters.push(letter(start.key, self.projection.member_name(seat), event, refused));
            };
            for (seat, set) in self.event_seats() {
                match (self.skips.get(&(index, seat)), self.loaded.sets[set].slot(index)) {
                    (Some(refused), _) | (None, Slot::Failed(refused)) => add(seat, refused),
                    (None, _) => {}
                }
            }
            for ((_, seat), refused) in self.skips.range((index, 0)..(index + 1, 0)) {
                if self.event_seats().iter().all(|(known, _)| known != seat) {
                    add(*seat, refused);
                }
            }
        }
        letters
    }

    /// Seats that work on events, with the event set of each.
    fn event_seats(&self) -> Vec<(usize, usize)> {
        match &self.projection.body {
            Body::Sql(_) => vec![(0, 0)],
            Body::Members(seats) => seats
                .iter()
                .enumerate()
                .filter_map(|(seat, known)| known.set.map(|set| (seat, set)))
                .collect(),
        }
    }

    /// Begins the page's transaction, unless it is open.
    pub(super) async fn begin(&mut self, start: &PageStart) -> Result<()> {
        if self.unit.is_none() {
            self.unit = Some(self.agent.site.database.begin(start).await?);
        }
        Ok(())
    }

    /// Works on events until all are done or the page is cut; returns the index of the first one left.
    async fn members(
        &mut self,
        seats: &[Seat],
        start: &PageStart,
        range: Range<usize>,
    ) -> Result<usize, Trouble> {
        let streaming = self.agent.site.style == PageStyle::Streaming;
        if streaming {
            // The progress row is the first lock of a page.
            self.begin(start).await?;
        }
        let (mut unrouted, mut pending) = (range.start, VecDeque::new());
        loop {
            let window = self.window(&mut pending, &mut unrouted, range.end)?;
            if window.is_empty() {
                return Ok(range.end);
            }
            let mut at = 0;
            while at < window.len() {
                let ready = self.take_in(&window[at..]).await?;
                let mut emitted = Vec::new();
                let stop = at + ready;
                while at < stop {
                    self.apply_event(&window[at], &mut emitted)?;
                    at += 1;
                    let ends_event = window.get(at).is_none_or(|next| next.input != window[at - 1].input);
                    let may_stop = streaming || ends_event;
                    if self.bytes() > self.chunk.hard
                        || (may_stop && self.is_filled(streaming, &window[at..]))
                    {
                        break;
                    }
                }
                self.flow(seats, emitted, start).await?;
                let event = window[at - 1].input;
                let at_boundary = match window.get(at) {
                    Some(route) => route.input != event,
                    None => pending.front().is_none_or(|next| next.index != event),
                };
                if at_boundary && !streaming {
                    let filled = self.is_filled(streaming, &window[at..]);
                    if self.unit.is_some() || (filled && !self.grow()) {
                        return Ok(event + 1);
                    }
                } else if self.bytes() > if streaming { self.chunk.soft } else { self.chunk.hard } {
                    self.make_room(start).await?;
                }
            }
        }
    }

    /// The next applications, up to a window of them: routes events as far as needed.
    fn window(
        &self,
        pending: &mut VecDeque<Pending>,
        unrouted: &mut usize,
        end: usize,
    ) -> Result<Vec<Route>, Trouble> {
        let mut window = Vec::new();
        while window.len() < WINDOW_KEYS {
            if let Some(next) = pending.front_mut() {
                while next.taken < next.keys.len() && window.len() < WINDOW_KEYS {
                    let key = self.key(next.index, next.seat, next.keys.at(next.taken))?;
                    window.push(Route { input: next.index, seat: next.seat, key });
                    next.taken += 1;
                }
                if next.taken == next.keys.len() {
                    pending.pop_front();
                }
                continue;
            }
            if *unrouted == end {
                break;
            }
            let index = *unrouted;
            *unrouted += 1;
            for (seat, set) in self.event_seats() {
                let Slot::At(at) = self.loaded.sets[set].slot(index) else { continue };
                if self.skips.contains_key(&(index, seat)) {
                    continue;
                }
                let mut keys = Keys::default();
                self.working[seat]
                    .route(self.loaded.sets[set].event(*at), &mut keys)
                    .map_err(|refused| Trouble::Refused { index, seat, refused })?;
                if !keys.is_empty() {
                    pending.push_back(Pending { index, seat, keys, taken: 0 });
                }
            }
        }
        Ok(window)
    }

    fn key(&self, index: usize, seat: usize, key: &str) -> Result<DocumentKey, Trouble> {
        DocumentKey::new(key).map_err(|error| Trouble::Refused {
            index,
            seat,
            refused: Refused { class: "key", reason: error.to_string() },
        })
    }

    fn apply_event(&mut self, route: &Route, emitted: &mut Vec<(usize, Emitted)>) -> Result<(), Trouble> {
        let (index, seat) = (route.input, route.seat);
        let Body::Members(seats) = &self.projection.body else { unreachable!("only members have routes") };
        let set = seats[seat].set.expect("a route of an event leads to a member that works on events");
        let Slot::At(at) = self.loaded.sets[set].slot(index) else {
            unreachable!("routed because it was decoded")
        };
        let input = self.loaded.sets[set].event(*at);
        self.apply(index, seat, &route.key, input, emitted)
    }

    fn apply(
        &mut self,
        index: usize,
        seat: usize,
        key: &DocumentKey,
        input: &dyn std::any::Any,
        emitted: &mut Vec<(usize, Emitted)>,
    ) -> Result<(), Trouble> {
        let event = &self.loaded.events[index];
        let cause = Cause { tenant: &self.agent.facts.id, sequence: event.sequence, at: event.at };
        let mut changes = Vec::new();
        self.working[seat].apply(key, input, &cause, &mut changes).map_err(|refused| Trouble::Refused {
            index,
            seat,
            refused,
        })?;
        emitted.extend(changes.into_iter().map(|change| (index, change)));
        Ok(())
    }

    /// Lets changes flow on to the members that follow, and on to those that follow them.
    async fn flow(
        &mut self,
        seats: &[Seat],
        emitted: Vec<(usize, Emitted)>,
        start: &PageStart,
    ) -> Result<(), Trouble> {
        debug_assert_eq!(seats.len(), self.working.len());
        let mut changes = emitted;
        while !changes.is_empty() {
            let mut next = Vec::new();
            let mut routes = Vec::new();
            for (input, (index, change)) in changes.iter().enumerate() {
                if self.skips.contains_key(&(*index, change.to)) {
                    continue;
                }
                let mut keys = Keys::default();
                self.working[change.to]
                    .route(change.change.as_ref(), &mut keys)
                    .map_err(|refused| Trouble::Refused { index: *index, seat: change.to, refused })?;
                for key in keys.iter() {
                    routes.push(Route { input, seat: change.to, key: self.key(*index, change.to, key)? });
                }
                if routes.len() >= WINDOW_KEYS || input + 1 == changes.len() {
                    self.follow(&routes, &changes, start, &mut next).await?;
                    routes.clear();
                }
            }
            self.follow(&routes, &changes, start, &mut next).await?;
            changes = next;
        }
        Ok(())
    }

    async fn follow(
        &mut self,
        routes: &[Route],
        changes: &[(usize, Emitted)],
        start: &PageStart,
        next: &mut Vec<(usize, Emitted)>,
    ) -> Result<(), Trouble> {
        let mut at = 0;
        while at < routes.len() {
            let ready = self.take_in(&routes[at..]).await?;
            for route in &routes[at..at + ready] {
                let (index, change) = &changes[route.input];
                self.apply(*index, route.seat, &route.key, change.change.as_ref(), next)?;
                at += 1;
                if self.bytes() > self.chunk.hard {
                    break;
                }
            }
            if self.bytes() > self.chunk.hard {
                self.make_room(start).await?;
            }
        }
        Ok(())
    }

    /// Takes in the documents of the first of these routes, as many as may be loaded at once; returns for how many routes all
    /// is here: at least one.
    async fn take_in(&mut self, routes: &[Route]) -> Result<usize, Trouble> {
        let keys_max = self.chunk.keys(self.document_bytes_max);
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

    async fn load(&mut self, seat: usize, mut keys: BTreeSet<DocumentKey>) -> Result<(), Trouble> {
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
            self.document_bytes_max = self.document_bytes_max.max(document.body.len() as u64);
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
            self.working[seat].insert(key, None).map_err(|reason| Error::corrupt(reason))?;
        }
        Ok(())
    }

    fn view(&self, seat: usize) -> ViewNo {
        self.agent.site.posts[self.agent.projection].views[seat]
    }

    fn bytes(&self) -> u64 {
        self.working.iter().map(|working| working.bytes()).sum()
    }

    /// Whether the documents in work fill the chunk, or, where the page would be cut here, will do so before the next event
    /// (the first of these routes) ends, as far as one can tell from the documents so far.
    fn is_filled(&self, streaming: bool, next: &[Route]) -> bool {
        let bytes = self.bytes();
        if streaming || bytes > self.chunk.soft {
            return bytes > self.chunk.soft;
        }
        let Some(first) = next.first() else { return false };
        let new = next
            .iter()
            .take_while(|route| route.input == first.input)
            .filter(|route| !self.working[route.seat].holds(&route.key))
            .count() as u64;
        let here = self.working.iter().map(|working| working.count() as u64).sum::<u64>().max(1);
        bytes + new * (bytes / here) > self.chunk.hard
    }

    /// Takes one more chunk from the budget, if there is room and it has not taken its share; says whether it did.
    fn grow(&mut self) -> bool {
        let by = self.fleet.chunk_bytes();
        let may = self.chunk.soft < by.saturating_mul(GROWN_CHUNKS_MAX);
        if may && self.lease.grow(by) {
            self.chunk = self.chunk.grown(by);
            return true;
        }
        false
    }

    /// Grows, or writes the documents in work inside the page's transaction.
    async fn make_room(&mut self, start: &PageStart) -> Result<(), Trouble> {
        if self.grow() {
            return Ok(());
        }
        self.begin(start).await?;
        self.flushes += 1;
        self.write_all().await
    }

    /// Writes all changed documents, part by part, and empties the map.
    async fn write_all(&mut self) -> Result<(), Trouble> {
        self.fleet.tally.page_bytes_peak.raise(self.loaded.bytes + self.bytes());
        for seat in 0..self.working.len() {
            let view = self.view(seat);
            loop {
                let writes = self.working[seat]
                    .drain(WRITE_DOCUMENTS, self.chunk.write_bytes)
                    .map_err(|reason| Trouble::Rejected { seat, error: Error::rejected(reason) })?;
                if writes.is_empty() {
                    break;
                }
                self.documents += writes.len() as u64;
                self.document_bytes_max =
                    writes.iter().map(|write| write.size() as u64).fold(self.document_bytes_max, u64::max);
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

/// Chunks a page may grow to, beyond which larger maps save nothing worth their memory.
const GROWN_CHUNKS_MAX: u64 = 4;
