//! The fault switchboard: what a test can do to a database that a database would rather not have done to it.

use std::collections::{HashSet, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bellwether_storage::{DocumentKey, Error, Place, Result, Sequence, StreamId, TenantNo, Timestamp};
use tokio::sync::OwnedMutexGuard;

use crate::handle::Shared;

/// A call that commits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Commit {
    /// [`EventLog::append`](bellwether_storage::EventLog::append).
    Append,
    /// [`HeadLock::append`](bellwether_storage::HeadLock::append).
    LockedAppend,
    /// [`UnitOfWork::finish`](bellwether_storage::UnitOfWork::finish).
    Finish,
}

/// When the answer of a commit is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Answer {
    /// Before the effect: nothing happened, and the caller cannot know.
    LostBefore,
    /// After the effect: it happened, and the caller cannot know.
    LostAfter,
}

/// What happens to a commit.
pub(crate) enum Verdict {
    Normal,
    LostBefore,
    LostAfter,
}

/// Faults that wait for their call.
#[derive(Debug, Default)]
pub(crate) struct Injected {
    calls_unavailable: u32,
    commits_unavailable: u32,
    lost: VecDeque<(Commit, Answer)>,
    latency: Option<Duration>,
    refused_documents: HashSet<DocumentKey>,
    refused_streams: HashSet<StreamId>,
    /// How many states before a commit are kept; zero keeps none.
    pub(crate) history_max: usize,
}

impl Injected {
    pub(crate) fn answer_call(&mut self) -> Result<Option<Duration>> {
        if self.calls_unavailable > 0 {
            self.calls_unavailable -= 1;
            return Err(Error::unavailable("the database cannot be reached (injected)").fix("try again"));
        }
        Ok(self.latency)
    }

    pub(crate) fn judge(&mut self, commit: Commit) -> Result<Verdict> {
        if self.commits_unavailable > 0 {
            self.commits_unavailable -= 1;
            return Err(Error::unavailable("the commit was not sent (injected)").fix("try again"));
        }
        let Some(index) = self.lost.iter().position(|(lost, _)| *lost == commit) else {
            return Ok(Verdict::Normal);
        };
        match self.lost.remove(index) {
            Some((_, Answer::LostBefore)) => Ok(Verdict::LostBefore),
            Some((_, Answer::LostAfter)) => Ok(Verdict::LostAfter),
            None => Ok(Verdict::Normal),
        }
    }

    pub(crate) fn refuses_document(&self, key: &DocumentKey) -> bool {
        self.refused_documents.contains(key)
    }

    pub(crate) fn refuses_stream(&self, stream: &StreamId) -> bool {
        self.refused_streams.contains(stream)
    }
}

/// Injects faults into one database, for all its handles. Cheap to make and to clone.
#[derive(Clone)]
pub struct Faults {
    shared: Arc<Shared>,
}

impl Faults {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// The next `calls` calls fail with `Unavailable` before they do anything.
    pub fn unavailable(&self, calls: u32) {
        self.shared.lock().injected.calls_unavailable = calls;
    }

    /// The next `commits` commits of any kind fail with `Unavailable`; nothing of them happens.
    pub fn fail_commits(&self, commits: u32) {
        self.shared.lock().injected.commits_unavailable = commits;
    }

    /// Loses the answer of the next commit of this kind that is not already spoken for; it fails with `Unknown`. Call it
    /// several times to lose several.
    pub fn lose_answer(&self, commit: Commit, answer: Answer) {
        self.shared.lock().injected.lost.push_back((commit, answer));
    }

    /// Each call waits this long before it does anything; `None` does not wait.
    pub fn latency(&self, latency: Option<Duration>) {
        self.shared.lock().injected.latency = latency;
    }

    /// Refuses writes of this document with `Rejected`, as a database refuses a poison row.
    pub fn refuse_document(&self, key: &DocumentKey) {
        self.shared.lock().injected.refused_documents.insert(key.clone());
    }

    /// Refuses appends to this stream with `Rejected`, as a database refuses a poison row.
    pub fn refuse_stream(&self, stream: &StreamId) {
        self.shared.lock().injected.refused_streams.insert(stream.clone());
    }

    /// Takes back every fault that waits for its call, and every refusal and latency. History and identity stay.
    pub fn clear(&self) {
        let injected = &mut self.shared.lock().injected;
        *injected = Injected { history_max: injected.history_max, ..Injected::default() };
    }

    /// Holds the head of a tenant until the guard is dropped, as an open transaction of another process would. `None` when
    /// somebody else holds it.
    pub fn hold_head(&self, tenant: TenantNo) -> Option<HeldHead> {
        let lock = self.shared.lock().head_lock(tenant);
        lock.try_lock_owned().ok().map(|guard| HeldHead { _guard: guard })
    }

    /// Another server answers from now on, without loss: a restart. Open transactions are gone.
    pub fn change_identity(&self) {
        self.shared.lock().new_life();
    }

    /// Keeps the state before each of the last `commits` commits (appends, locked appends, pages), so that
    /// [`fail_over`](Faults::fail_over) can lose them. Each costs a copy of the maps. Zero forgets and keeps none.
    pub fn keep_history(&self, commits: usize) {
        let mut inner = self.shared.lock();
        inner.injected.history_max = commits;
        while inner.history.len() > commits {
            inner.history.pop_front();
        }
    }

    /// Fails over to a server that has lost the last `commits` commits and returns how many were lost: no more than
    /// [`keep_history`](Faults::keep_history) has kept. What was registered or fenced since is lost with them. The identity
    /// changes, and open transactions are gone.
    pub fn fail_over(&self, commits: usize) -> usize {
        let mut inner = self.shared.lock();
        let lost = commits.min(inner.history.len());
        let keep = inner.history.len() - lost;
        if let Some(state) = inner.history.get(keep).cloned() {
            inner.state = state;
        }
        inner.history.truncate(keep);
        inner.new_life();
        lost
    }

    /// Raises a tenant's head to this number without events below it, to test near the ends of its range. False when there is
    /// no such tenant or its head is above.
    pub fn raise_head(&self, tenant: TenantNo, head: Sequence) -> bool {
        let mut inner = self.shared.lock();
        inner.state.moves += 1;
        let moves = inner.state.moves;
        match inner.state.tenants.get_mut(&tenant) {
            Some(found) if found.head <= head && head <= Sequence::MAX => {
                found.head = head;
                found.moved = moves;
                true
            }
            _ => false,
        }
    }

    /// Deletes an event behind the store's back: a hole. False when it was not there.
    pub fn remove_event(&self, tenant: TenantNo, sequence: Sequence) -> bool {
        let mut inner = self.shared.lock();
        inner.state.tenants.get_mut(&tenant).is_some_and(|found| found.events.remove(&sequence).is_some())
    }

    /// Opens or closes a tenant for appends. False when there is no such tenant.
    pub fn set_open(&self, tenant: TenantNo, open: bool) -> bool {
        let mut inner = self.shared.lock();
        inner.state.tenants.get_mut(&tenant).map(|found| found.open = open).is_some()
    }

    /// Says that a tenant's events lie elsewhere. False when there is no such tenant.
    pub fn set_place(&self, tenant: TenantNo, place: Place) -> bool {
        let mut inner = self.shared.lock();
        inner.state.tenants.get_mut(&tenant).map(|found| found.place = place).is_some()
    }
}

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Faults").field(&self.shared.lock().injected).finish()
    }
}

/// Holds a tenant's head until it is dropped.
#[derive(Debug)]
#[must_use = "the head is free again once this is dropped"]
pub struct HeldHead {
    _guard: OwnedMutexGuard<()>,
}

impl crate::handle::Inner {
    fn new_life(&mut self) {
        self.life += 1;
        self.identity.timeline = self.identity.timeline.saturating_add(1);
        self.identity.started_at =
            Timestamp::from_micros(self.identity.started_at.as_micros().saturating_add(1));
        // Locks die with their server: who still holds one holds a lock of nobody.
        self.heads.clear();
        self.rows.clear();
    }
}
