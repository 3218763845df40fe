//! One turn of an agent: line, permit, budget, page; then release and go to the back.

use std::sync::Arc;

use bellwether_storage::{Page, PageQuery, Sequence, StoredEvent};
use bytes::Bytes;

use crate::decide::bisect::{Bisect, Part};
use crate::decide::course::Position;
use crate::decide::sizing::{Chunk, page_bytes, reservation};
use crate::member::{Decoded, Refused};
use crate::projection::Projection;
use crate::{Ask, Hopper, Lease, Pace};

use super::agent::{Agent, Doing, Failure, Mind};
use super::fleet::Fleet;
use super::room::Room;
use super::work::{Passed, Skips, Trouble, Work};

/// Events refused by the user's code in one turn, after which the page is cut: each costs a pass over what came before.
const REFUSED_PER_TURN_MAX: usize = 8;

/// A page's events, decoded; their raw content is gone.
pub(crate) struct Loaded {
    pub(crate) events: Vec<StoredEvent>,
    /// One per event set of the projection.
    pub(crate) sets: Vec<Box<dyn Decoded>>,
    /// The progress after all of them.
    pub(crate) through: Sequence,
    /// What they count against the budget.
    pub(crate) bytes: u64,
}

impl Agent {
    /// Works on one page after the position.
    pub(crate) async fn page(
        self: &Arc<Self>,
        fleet: &Arc<Fleet>,
        mind: &mut Mind,
        position: Position,
        pace: Pace,
    ) -> Result<(), Failure> {
        let stopped = async {
            fleet.stop.cancelled().await;
            Failure::Stopping
        };
        tokio::pin!(stopped);
        let database = self.site.no;
        self.set(Doing::WaitingPermit);
        let _turn = tokio::select! {
            biased;
            stopping = &mut stopped => return Err(stopping),
            turn = fleet.lines[self.projection].turn(database, self.number) => turn,
        };
        let _permit = tokio::select! {
            biased;
            stopping = &mut stopped => return Err(stopping),
            permit = fleet.permits.acquire(database, self.number) => permit,
        };
        let behind = self.facts.head().get().saturating_sub(position.sequence.get()).max(1);
        let page_events = Hopper::new(fleet.config.hopper).next_page(pace).unwrap_or(1);
        let events_max = (page_events >> mind.halvings).clamp(1, behind);
        let mut ask = Asked {
            events: events_max,
            bytes: mind.estimate.page_bytes(events_max, fleet.config.page_bytes_max),
            exact: false,
        };
        loop {
            self.set(Doing::WaitingBudget);
            let lease = tokio::select! {
                biased;
                stopping = &mut stopped => return Err(stopping),
                lease = fleet.budget.reserve(self.ask(fleet, ask)) => lease,
            };
            self.set(Doing::Working);
            // Boxed, so that agents in line do not carry the room of a page.
            let work = Box::pin(self.work_page(fleet, mind, &lease, ask, position));
            match lease.within_deadline(work).await {
                Err(overdue) => return Err(Failure::Overdue(overdue.to_string())),
                Ok(Err(failure)) => return Err(failure),
                Ok(Ok(None)) => return Ok(()),
                // Not even one event fits: give back and return to the front with its exact size.
                Ok(Ok(Some(bytes))) => ask = Asked { events: 1, bytes, exact: true },
            }
        }
    }

    fn ask(&self, fleet: &Fleet, asked: Asked) -> Ask {
        let chunk = fleet.chunk_bytes();
        Ask {
            database: self.site.no,
            agent: self.number,
            events: asked.events,
            bytes: reservation(asked.bytes, chunk),
            front: asked.exact,
        }
    }

    /// Loads and works on a page under the lease. `Some(bytes)` when its first event is larger than what was reserved.
    async fn work_page(
        self: &Arc<Self>,
        fleet: &Arc<Fleet>,
        mind: &mut Mind,
        lease: &Lease,
        asked: Asked,
        position: Position,
    ) -> Result<Option<u64>, Failure> {
        let chunk_bytes = fleet.chunk_bytes();
        let (events_granted, bytes_granted) = lease.granted();
        let projection = &fleet.projections[self.projection];
        let query = PageQuery {
            tenant: self.facts.number,
            after: position.sequence,
            up_to: None,
            types: Some(&projection.types),
            events_max: u32::try_from(events_granted.max(1)).unwrap_or(u32::MAX),
            // Who returned with an exact size reads that event, though the whole budget be smaller.
            bytes_max: match asked.exact {
                true => asked.bytes,
                false => asked.bytes.min(page_bytes(bytes_granted, chunk_bytes)),
            },
        };
        let page = self.site.database.read_page(&query).await?;
        if self.site.answered(&page.identity) {
            // Another life of the server: its answer counts, what was known before does not.
            self.site.stirred.notify_one();
            return Ok(None);
        }
        if let Some((_, bytes)) = page.too_large {
            return Ok(Some(bytes));
        }
        if page.through <= position.sequence {
            let problem = format!("the head is {} here, but {} was announced", page.head, self.facts.head());
            return Err(bellwether_storage::Error::unavailable(problem).into());
        }
        let loaded = load(projection, self, page);
        lease.trim(loaded.events.len() as u64, reservation(loaded.bytes, chunk_bytes));
        mind.estimate.held(loaded.events.len() as u64, loaded.bytes);
        self.passes(fleet, mind, lease, &loaded, position).await.map(|()| None)
    }

    /// Works through the page in as many passes, each with a commit of its own, as its output and its poison demand.
    async fn passes(
        self: &Arc<Self>,
        fleet: &Arc<Fleet>,
        mind: &mut Mind,
        lease: &Lease,
        loaded: &Loaded,
        mut position: Position,
    ) -> Result<(), Failure> {
        let chunk = Chunk::of(fleet.chunk_bytes());
        let mut room = Room { chunk, document_bytes_max: mind.document_bytes_max };
        let (mut at, mut bisect, mut skips) = (0, Bisect::default(), Skips::new());
        let mut until = loaded.events.len();
        loop {
            let take = bisect.take(until - at);
            let mut work = Work::new(fleet, self, lease, loaded, &skips, room);
            let passed = work.pass(position, at..at + take).await;
            room = work.room;
            mind.document_bytes_max = room.document_bytes_max;
            drop(work);
            match passed {
                Ok(passed) => {
                    self.committed(fleet, mind, &passed, at);
                    bisect.passed(passed.next - at);
                    (position.sequence, at) = (passed.to, passed.next);
                    if at >= until || fleet.stop.is_cancelled() {
                        return Ok(());
                    }
                }
                Err(Trouble::Refused { index, seat, refused }) => {
                    self.name_poison(fleet, loaded, index, seat, &refused);
                    skips.insert((index, seat), refused);
                    if skips.len() % REFUSED_PER_TURN_MAX == 0 {
                        until = until.min(index + 1);
                    }
                }
                Err(Trouble::Rejected { seat, error }) => {
                    fleet.tally.retries.add(1);
                    if bisect.failed(take) == Part::Found {
                        let refused = Refused { class: "rejected", reason: error.to_string() };
                        self.name_poison(fleet, loaded, at, seat, &refused);
                        if skips.insert((at, seat), refused).is_some() {
                            // Skipping it did not help: the refusal is not of this event's making.
                            return Err(error.into());
                        }
                    }
                }
                Err(Trouble::Storage(error)) => return Err(error.into()),
            }
        }
    }

    fn committed(&self, fleet: &Fleet, mind: &mut Mind, passed: &Passed, at: usize) {
        mind.course.committed(passed.to);
        mind.halvings = mind.halvings.saturating_sub(1);
        self.saw(passed.to);
        let tally = &fleet.tally;
        tally.pages.add(1);
        tally.events.add((passed.next - at) as u64);
        tally.documents.add(passed.documents);
        tally.flushes.add(passed.flushes);
        tally.dead_letters.add(passed.dead_letters);
        fleet.moved.notify_waiters();
    }

    fn name_poison(&self, fleet: &Fleet, loaded: &Loaded, index: usize, seat: usize, refused: &Refused) {
        let projection = &fleet.projections[self.projection];
        let event = &loaded.events[index];
        tracing::warn!(
            projection = %projection.name, member = projection.member_name(seat), tenant = %self.facts.id,
            sequence = event.sequence.get(), event_type = %event.event_type, class = refused.class, reason = refused.reason,
            "poison event; it becomes a dead letter and the projection goes on"
        );
    }
}

/// What a page asks for, without its chunk.
#[derive(Debug, Clone, Copy)]
struct Asked {
    events: u64,
    bytes: u64,
    /// Whether the first event is known to need all of it.
    exact: bool,
}

/// Decodes a page once per event set and drops the raw content.
fn load(projection: &Projection, agent: &Agent, page: Page) -> Loaded {
    let mut events = page.events;
    let bytes = events.iter().map(|event| event.size() as u64).sum();
    let sets = projection.sets.iter().map(|set| (set.decode)(&agent.facts.id, &events)).collect();
    for event in &mut events {
        event.body = Bytes::new();
        event.headers = Bytes::new();
    }
    Loaded { events, sets, through: page.through, bytes }
}
