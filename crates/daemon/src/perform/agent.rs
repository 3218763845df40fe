//! One agent: a projection of a tenant, as one small task with linear code.
//!
//! ```text
//! wait until head > progress  →  line  →  permit  →  reserve  →  load page  →  trim
//!   →  begin  →  event by event, chunk by chunk  →  finish  →  release
//! ```
//!
//! An idle agent is a parked task of a few hundred bytes and no statement: everything a page needs is boxed, and dropped with
//! the page.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bellwether_storage::{Error, FenceClaim, Progress, Sequence};
use tokio::sync::Notify;

use crate::decide::back_off::{back_off, fraction};
use crate::decide::course::{Course, Remedy, Step};
use crate::decide::sizing::Estimate;
use crate::{AgentNo, AgentState, Pace};

use super::fleet::Fleet;
use super::site::{Site, TenantFacts};

/// A page of 1,000 events, halved so often, is a single event.
const HALVINGS_MAX: u32 = 10;

/// Progress before the agent has looked.
const UNKNOWN: u64 = u64::MAX;

/// What others see of an agent.
pub(crate) struct Agent {
    pub(crate) number: AgentNo,
    /// Index of its projection.
    pub(crate) projection: usize,
    pub(crate) facts: Arc<TenantFacts>,
    pub(crate) site: Arc<Site>,
    wake: Notify,
    progress: AtomicU64,
    doing: Mutex<Doing>,
}

/// What the agent is doing, without what can be found out elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Doing {
    Idle,
    WaitingPermit,
    WaitingBudget,
    Working,
    StandingBy,
    /// The owner of the row stood still; it was this.
    TakingOver(Progress),
    BackingOff(Box<str>),
    Failed(Box<str>),
}

/// What the agent knows between pages.
pub(crate) struct Mind {
    pub(crate) course: Course,
    pub(crate) estimate: Estimate,
    /// The life of the server it was learnt in.
    life: u64,
    /// The largest document of any of its members so far.
    pub(crate) document_bytes_max: u64,
    /// How often the next page's events are halved, because pages exceeded their deadline.
    pub(crate) halvings: u32,
    /// Waits so far, for the jitter.
    waits: u64,
}

impl Agent {
    pub(crate) fn new(number: AgentNo, projection: usize, facts: Arc<TenantFacts>, site: Arc<Site>) -> Self {
        Self {
            number,
            projection,
            facts,
            site,
            wake: Notify::new(),
            progress: AtomicU64::new(UNKNOWN),
            doing: Mutex::new(Doing::Idle),
        }
    }

    /// Looks again whether there is work.
    pub(crate) fn wake(&self) {
        self.wake.notify_one();
    }

    /// The stored progress is this; seen, not made.
    pub(crate) fn saw(&self, sequence: Sequence) {
        self.progress.store(sequence.get(), Ordering::Release);
    }

    /// What was known of its progress belongs to an earlier life of the server.
    pub(crate) fn forget(&self) {
        self.progress.store(UNKNOWN, Ordering::Release);
    }

    /// The owner stood still at this for too long.
    pub(crate) fn take_over(&self, seen: Progress) {
        self.set(Doing::TakingOver(seen));
        self.wake();
    }

    /// How far it is; `None` before it has looked.
    pub(crate) fn progress(&self) -> Option<Sequence> {
        match self.progress.load(Ordering::Acquire) {
            UNKNOWN => None,
            sequence => Some(Sequence::new(sequence)),
        }
    }

    /// What it is doing; a wait for budget without its place, which the budget knows.
    pub(crate) fn state(&self) -> AgentState {
        match &*self.doing() {
            Doing::Idle => AgentState::Idle,
            Doing::WaitingPermit => AgentState::WaitingPermit,
            Doing::WaitingBudget => {
                AgentState::WaitingBudget { place: 0, reason: "being admitted".to_owned() }
            }
            Doing::Working => AgentState::Working,
            Doing::StandingBy | Doing::TakingOver(_) => AgentState::StandingBy,
            Doing::BackingOff(reason) => AgentState::BackingOff { reason: reason.to_string() },
            Doing::Failed(reason) => AgentState::Failed { reason: reason.to_string() },
        }
    }

    pub(crate) fn set(&self, doing: Doing) {
        *self.doing() = doing;
    }

    fn doing(&self) -> MutexGuard<'_, Doing> {
        self.doing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes out what [`take_over`](Agent::take_over) left.
    fn verdict(&self) -> Option<Progress> {
        let mut doing = self.doing();
        match *doing {
            Doing::TakingOver(seen) => {
                *doing = Doing::StandingBy;
                Some(seen)
            }
            _ => None,
        }
    }

    /// Runs until the daemon stops.
    pub(crate) async fn run(self: Arc<Self>, fleet: Arc<Fleet>) {
        let mut mind = Mind {
            course: Course::new(fleet.owner),
            estimate: Estimate::new(),
            life: self.site.life(),
            document_bytes_max: 0,
            halvings: 0,
            waits: 0,
        };
        loop {
            tokio::select! {
                biased;
                () = fleet.stop.cancelled() => return,
                () = self.wake.notified() => {}
            }
            // Boxed, so that a parked agent does not carry the room of a page.
            let work = Box::pin(self.work(&fleet, &mut mind));
            tokio::select! {
                biased;
                () = fleet.abort.cancelled() => return,
                () = work => {}
            }
        }
    }

    /// Works until there is nothing to do.
    async fn work(self: &Arc<Self>, fleet: &Arc<Fleet>, mind: &mut Mind) {
        loop {
            if fleet.stop.is_cancelled() {
                return;
            }
            if mind.life != self.site.life() {
                mind.life = self.site.life();
                mind.course.server_changed();
                self.site.stand_down(self);
            }
            if let Some(seen) = self.verdict() {
                mind.course.take_over(seen);
            }
            let result = match mind.course.next(self.facts.head()) {
                Step::Sleep => {
                    if let Some(sequence) = mind.course.position() {
                        self.saw(sequence);
                    }
                    self.rest(fleet, Doing::Idle);
                    return;
                }
                Step::Stop => return,
                Step::StandBy(seen) => {
                    self.rest(fleet, Doing::StandingBy);
                    self.site.stand_by(self, seen, fleet.now());
                    return;
                }
                Step::Look => self.look(fleet, mind).await,
                Step::Fence(claim) => self.fence(fleet, mind, claim).await,
                Step::Page(position) => {
                    let behind = self.facts.head().get().saturating_sub(position.sequence.get());
                    let pace = match behind > fleet.config.hopper.rebuild_page_events {
                        true => Pace::Rebuilding,
                        false => Pace::Following,
                    };
                    self.page(fleet, mind, position, pace).await
                }
            };
            if let Err(failure) = result {
                self.failed(fleet, mind, failure).await;
            }
        }
    }

    async fn look(&self, fleet: &Fleet, mind: &mut Mind) -> Result<(), Failure> {
        let row = self.site.positions.look(fleet.key(self)).await?;
        mind.course.looked(row);
        self.saw(row.map_or(Sequence::ZERO, |row| row.sequence));
        Ok(())
    }

    async fn fence(&self, fleet: &Fleet, mind: &mut Mind, claim: FenceClaim) -> Result<(), Failure> {
        let outcome = self.site.positions.fence(fleet.key(self), claim).await?;
        if let Some(sequence) = mind.course.fenced(outcome) {
            self.saw(sequence);
        }
        Ok(())
    }

    pub(crate) fn rest(&self, fleet: &Fleet, doing: Doing) {
        self.set(doing);
        fleet.moved.notify_waiters();
    }

    /// Waits, or stops for good, as the failure demands.
    async fn failed(&self, fleet: &Fleet, mind: &mut Mind, failure: Failure) {
        let (kind, reason) = match &failure {
            Failure::Stopping => return,
            Failure::Storage(_) if fleet.stop.is_cancelled() => return,
            Failure::Overdue(reason) => {
                mind.halvings = (mind.halvings + 1).min(HALVINGS_MAX);
                (None, reason.clone())
            }
            Failure::Storage(error) => (Some(error.kind()), error.to_string()),
        };
        fleet.tally.retries.add(1);
        let name = &fleet.projections[self.projection].name;
        match mind.course.failed(kind) {
            Remedy::GoOn => {
                tracing::debug!(projection = %name, tenant = %self.facts.id, reason, "positioning anew");
            }
            Remedy::Fail => {
                tracing::error!(projection = %name, tenant = %self.facts.id, reason, "agent failed; it stays stopped until the daemon restarts");
                self.rest(fleet, Doing::Failed(reason.into()));
            }
            Remedy::BackOff => {
                let failures = mind.course.failures();
                mind.waits += 1;
                let jitter = fraction(fleet.config.seed, self.number.0, mind.waits);
                let wait = back_off(failures, fleet.back_off_min(), fleet.back_off_max(), jitter);
                tracing::warn!(projection = %name, tenant = %self.facts.id, reason, failures, ?wait, "page failed; trying again");
                self.rest(fleet, Doing::BackingOff(reason.into()));
                tokio::select! {
                    biased;
                    () = fleet.stop.cancelled() => {}
                    () = tokio::time::sleep(wait) => {}
                }
            }
        }
    }
}

/// Why a step did not succeed.
pub(crate) enum Failure {
    /// The daemon stops.
    Stopping,
    /// A page exceeded its deadline; its outcome is unknown.
    Overdue(String),
    /// A database said so.
    Storage(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Storage(error)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bellwether_memory::Memory;
    use bellwether_storage::{Database, DatabaseNo, Owner, TenantId, TenantNo};
    use uuid::Uuid;

    use super::*;
    use crate::Daemon;
    use crate::perform::positions::positions;

    // T3
    #[tokio::test]
    async fn an_idle_agent_is_a_few_hundred_bytes_and_one_in_line_not_many_more() {
        let database: Arc<dyn Database> = Arc::new(Memory::new());
        let fleet = Daemon::over(vec![database.clone()]).start().await.unwrap().fleet();
        let owner = Owner(Uuid::nil());
        let site =
            Arc::new(Site::new(DatabaseNo(0), database.clone(), Vec::new(), positions(database, owner).0));
        let facts = Arc::new(TenantFacts::new(TenantId::new("acme").unwrap(), TenantNo(1)));
        let agent = Arc::new(Agent::new(AgentNo(1), 0, facts, site));
        let mut mind = Mind {
            course: Course::new(owner),
            estimate: Estimate::new(),
            life: 0,
            document_bytes_max: 0,
            halvings: 0,
            waits: 0,
        };
        let idle = size_of_val(&agent.clone().run(fleet.clone()));
        let in_line = size_of_val(&agent.work(&fleet, &mut mind));
        assert!(idle + size_of::<Agent>() <= 1_024, "{idle} + {} bytes", size_of::<Agent>());
        assert!(in_line <= 2_048, "{in_line} bytes");
        println!("{idle} + {} idle, {in_line} more in line", size_of::<Agent>());
    }
}
