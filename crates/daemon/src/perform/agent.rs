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
                Step::Page { from, generation } => {
                    let pace = match self.facts.head().get() - from.get()
                        > fleet.config.hopper.rebuild_page_events
                    {
                        true => Pace::Rebuilding,
                        false => Pace::Following,
                    };
                    self.page(fleet, mind, from, generation, pace).await
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
            Failure::Overdue(reason) => (None, reason.clone()),
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
