//! Working on a page: event by event, with a bounded map of documents.
//!
//! Events are taken in windows: routed, their documents loaded together, applied in order. What the first members change flows
//! on to those that follow them before the next window. When the documents in work fill the chunk they are written inside the
//! open transaction and the map starts empty; or, where a transaction keeps others waiting, the page is cut there instead.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use bellwether_storage::{
    DeadLetter, DocumentKey, Error, PageStart, PageStyle, Result, Sequence, UnitOfWork,
};

use crate::Lease;
use crate::decide::course::Position;
use crate::decide::sizing::Fill;
use crate::member::{Cause, Emitted, Refused, Slot, Working};
use crate::projection::{Body, Projection, Seat};

use super::agent::Agent;
use super::fleet::Fleet;
use super::letters::letter;
use super::room::Room;
use super::route::Route;
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
    /// Seats that work on events, with the event set of each.
    pub(super) event_seats: Vec<(usize, usize)>,
    pub(super) lease: &'a Lease,
    pub(super) room: Room,
    pub(super) working: Vec<Box<dyn Working>>,
    pub(super) unit: Option<Box<dyn UnitOfWork>>,
    pub(super) documents: u64,
    pub(super) flushes: u64,
}

impl<'a> Work<'a> {
    pub(crate) fn new(
        fleet: &'a Arc<Fleet>,
        agent: &'a Arc<Agent>,
        lease: &'a Lease,
        loaded: &'a Loaded,
        skips: &'a Skips,
        room: Room,
    ) -> Self {
        let projection = &fleet.projections[agent.projection];
        let (working, event_seats) = match &projection.body {
            Body::Members(seats) => (
                seats.iter().map(|seat| seat.member.open(seat.taps.clone())).collect(),
                seats.iter().enumerate().filter_map(|(seat, known)| Some((seat, known.set?))).collect(),
            ),
            Body::Sql(_) => (Vec::new(), vec![(0, 0)]),
        };
        Self {
            fleet,
            agent,
            projection,
            loaded,
            skips,
            event_seats,
            lease,
            room,
            working,
            unit: None,
            documents: 0,
            flushes: 0,
        }
    }

    /// Works on these events of the page and commits them, or the first part of them.
    pub(crate) async fn pass(&mut self, position: Position, range: Range<usize>) -> Result<Passed, Trouble> {
        let (fleet, key) = (self.fleet, self.fleet.key(self.agent));
        let Position { sequence, generation } = position;
        let start = PageStart { key, from: sequence, generation, owner: fleet.owner };
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
            for (seat, set) in &self.event_seats {
                match (self.skips.get(&(index, *seat)), self.loaded.sets[*set].slot(index)) {
                    (Some(refused), _) | (None, Slot::Failed(refused)) => add(*seat, refused),
                    (None, _) => {}
                }
            }
            for ((_, seat), refused) in self.skips.range((index, 0)..(index + 1, 0)) {
                if self.event_seats.iter().all(|(known, _)| known != seat) {
                    add(*seat, refused);
                }
            }
        }
        letters
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
        if self.agent.site.style == PageStyle::Streaming {
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
                    if self.fill(ends_event, &window[at..]) != Fill::GoOn {
                        break;
                    }
                }
                self.flow(seats, emitted, start).await?;
                let event = window[at - 1].input;
                let at_boundary = match window.get(at) {
                    Some(route) => route.input != event,
                    None => pending.front().is_none_or(|next| next.index != event),
                };
                match self.fill(at_boundary, &window[at..]) {
                    Fill::GoOn => {}
                    Fill::Write => self.make_room(start).await?,
                    // More room helps only while nobody is kept waiting.
                    Fill::Cut if self.unit.is_none() && self.grow() => {}
                    Fill::Cut => return Ok(event + 1),
                }
            }
        }
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

    pub(super) fn apply(
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
}
