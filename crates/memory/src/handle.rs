//! Handles: what is shared between processes and what belongs to one.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bellwether_storage::{
    Counters, Error, PageStyle, ProgressKey, Result, ServerIdentity, TenantNo, Timestamp,
};

use crate::faults::{Commit, Faults, Injected, Verdict};
use crate::state::{State, clock};

/// How long a page waits for a progress row, and a fence for the page of another owner.
const ROW_WAIT: Duration = Duration::from_secs(2);

/// An asynchronous row lock; whoever holds its guard has the row.
pub(crate) type RowLock = Arc<tokio::sync::Mutex<()>>;

/// The database behind all handles.
pub(crate) struct Shared {
    pub(crate) name: String,
    pub(crate) inner: Mutex<Inner>,
}

/// State, locks and faults, under one short mutex.
pub(crate) struct Inner {
    pub(crate) state: State,
    pub(crate) heads: HashMap<TenantNo, RowLock>,
    pub(crate) rows: BTreeMap<ProgressKey, RowLock>,
    pub(crate) identity: ServerIdentity,
    /// Rises with each change of identity; open transactions of an older one are gone.
    pub(crate) life: u64,
    /// States before the last commits, newest last; empty unless [`Faults::keep_history`] was called.
    pub(crate) history: VecDeque<State>,
    pub(crate) injected: Injected,
}

/// What belongs to one process.
struct Process {
    page_style: PageStyle,
    row_wait: Duration,
    closed: AtomicBool,
    statements: AtomicU64,
    discovery_reads: AtomicU64,
}

/// One process's handle to a database in memory. Clones are the same handle.
#[derive(Clone)]
pub struct Memory {
    pub(crate) shared: Arc<Shared>,
    process: Arc<Process>,
}

impl Memory {
    /// An empty database named `memory`.
    pub fn new() -> Self {
        Self::named("memory")
    }

    /// An empty database of this name, for stores over several databases.
    pub fn named(name: impl Into<String>) -> Self {
        let identity = ServerIdentity {
            system: uuid::Uuid::now_v7().to_string(),
            timeline: 1,
            started_at: Timestamp::from_micros(clock().as_micros()),
        };
        let inner = Inner {
            state: State::default(),
            heads: HashMap::new(),
            rows: BTreeMap::new(),
            identity,
            life: 0,
            history: VecDeque::new(),
            injected: Injected::default(),
        };
        Self {
            shared: Arc::new(Shared { name: name.into(), inner: Mutex::new(inner) }),
            process: Arc::new(Process::new(PageStyle::Streaming, ROW_WAIT)),
        }
    }

    /// A new handle to the same database that says pages are written in this style. Default is [`PageStyle::Streaming`].
    ///
    /// Only what the handle reports changes: the daemon behaves accordingly, the database stands both.
    #[must_use]
    pub fn with_page_style(&self, style: PageStyle) -> Self {
        self.handle(style, self.process.row_wait)
    }

    /// A new handle to the same database that waits at most this long for a progress row. Default is 2 s.
    #[must_use]
    pub fn with_row_wait(&self, wait: Duration) -> Self {
        self.handle(self.process.page_style, wait)
    }

    /// The handle another process would have: own counters, closed on its own, the same database.
    #[must_use]
    pub fn another_handle(&self) -> Self {
        self.handle(self.process.page_style, self.process.row_wait)
    }

    /// The switchboard for faults of this database, seen by all handles.
    pub fn faults(&self) -> Faults {
        Faults::new(Arc::clone(&self.shared))
    }

    fn handle(&self, page_style: PageStyle, row_wait: Duration) -> Self {
        Self { shared: Arc::clone(&self.shared), process: Arc::new(Process::new(page_style, row_wait)) }
    }

    /// Opens a call: counts it, and fails it where the handle is closed or a fault says so.
    pub(crate) async fn call(&self) -> Result<()> {
        self.process.statements.fetch_add(1, Ordering::Relaxed);
        self.still_open()?;
        let latency = self.shared.lock().injected.answer_call()?;
        if let Some(latency) = latency {
            tokio::time::sleep(latency).await;
        }
        Ok(())
    }

    pub(crate) fn count_discovery(&self) {
        self.process.discovery_reads.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn still_open(&self) -> Result<()> {
        if self.process.closed.load(Ordering::Acquire) {
            return Err(Error::unavailable("this handle is closed").fix("open the database again"));
        }
        Ok(())
    }

    pub(crate) fn mark_closed(&self) {
        self.process.closed.store(true, Ordering::Release);
    }

    pub(crate) fn style(&self) -> PageStyle {
        self.process.page_style
    }

    pub(crate) fn row_wait(&self) -> Duration {
        self.process.row_wait
    }

    pub(crate) fn counted(&self) -> Counters {
        Counters {
            statements: self.process.statements.load(Ordering::Relaxed),
            discovery_reads: self.process.discovery_reads.load(Ordering::Relaxed),
        }
    }
}

impl Default for Memory {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory").field("name", &self.shared.name).finish_non_exhaustive()
    }
}

impl Process {
    fn new(page_style: PageStyle, row_wait: Duration) -> Self {
        Self {
            page_style,
            row_wait,
            closed: AtomicBool::new(false),
            statements: AtomicU64::new(0),
            discovery_reads: AtomicU64::new(0),
        }
    }
}

impl Shared {
    /// The database. A panic elsewhere leaves it whole, because commits apply what was checked before.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// Lock of a tenant's head.
    pub(crate) fn head_lock(&mut self, tenant: TenantNo) -> RowLock {
        Arc::clone(self.heads.entry(tenant).or_default())
    }

    /// Lock of a progress row.
    pub(crate) fn row_lock(&mut self, key: ProgressKey) -> RowLock {
        Arc::clone(self.rows.entry(key).or_default())
    }

    /// Fails a transaction that was begun on a server that is no more.
    pub(crate) fn same_life(&self, life: u64) -> Result<()> {
        if self.life == life {
            return Ok(());
        }
        Err(Error::unavailable("the server this transaction was begun on is gone").fix("begin it again"))
    }

    /// Applies a commit, or what a fault makes of it. `apply` must not fail once it has begun to change the state.
    pub(crate) fn commit<T>(
        &mut self,
        commit: Commit,
        apply: impl FnOnce(&mut State) -> Result<T>,
    ) -> Result<T> {
        let verdict = self.injected.judge(commit)?;
        if let Verdict::LostBefore = verdict {
            return Err(lost());
        }
        if self.injected.history_max > 0 {
            self.history.push_back(self.state.clone());
            while self.history.len() > self.injected.history_max {
                self.history.pop_front();
            }
        }
        let done = apply(&mut self.state)?;
        match verdict {
            Verdict::LostAfter => Err(lost()),
            _ => Ok(done),
        }
    }
}

fn lost() -> Error {
    Error::unknown("the answer of the commit was lost").fix("look whether it happened before doing it again")
}
