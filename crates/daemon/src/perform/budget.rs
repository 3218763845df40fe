//! The load budget of one store on one node, over all its databases.
//!
//! # Model
//!
//! A page [reserves](Budget::reserve) events and bytes before it is loaded and holds them as a [`Lease`]: trimmed to what the
//! page held, grown where its output needs more, given back when the lease is dropped, on commit as on failure, cancellation
//! and loss of ownership. Whoever finds no room waits in line, visible in [`Budget::status`] with place and reason; that is a
//! healthy state. The rules are decided in `decide::budget`; here they meet tasks, time and memory.
//!
//! # The memory gate
//!
//! Beside its own sums the budget watches the memory of the process (see [`SystemMemory`](super::SystemMemory)). A reading is
//! taken by a timer of whoever is the front of the line, so as long as anybody waits; and before an admission if the last
//! reading is older than the interval.

use std::fmt;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, TryLockError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use tokio::time::{Sleep, sleep, timeout_at};

use super::budget_config::BudgetConfig;
use super::budget_status::BudgetStatus;
use super::desk::{Desk, Place, Waiting};
use super::memory::{MemorySource, SystemMemory};
use super::wait_order::{self, Hold, Rung};
use crate::decide::budget::{Amount, Ask, Capacity, Machine};
use crate::decide::gate::{Gate, MemoryReading};

/// How much may be loaded and not yet committed, over all databases of a store on this node.
///
/// ```
/// use bellwether_daemon::{AgentNo, Ask, Budget, BudgetConfig};
/// use bellwether_storage::DatabaseNo;
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let budget = Budget::new(BudgetConfig { bytes_max: Some(1_000), ..BudgetConfig::default() });
/// let ask = |agent| Ask { database: DatabaseNo(0), agent: AgentNo(agent), events: 500, bytes: 800, front: false };
///
/// let page = budget.reserve(ask(1)).await;           // straight through: there is room and nobody waits
/// page.trim(120, 600);                               // the page held less than it asked for
/// assert!(page.grow(300));                           // its output needs more, and there is room
/// assert!(!page.grow(300));                          // now there is none: write what has piled up
///
/// let waiter = tokio::spawn({ let budget = budget.clone(); async move { budget.reserve(ask(2)).await } });
/// while budget.status().waiting.is_empty() { tokio::task::yield_now().await; }
/// assert_eq!(budget.status().waiting[0].agent, AgentNo(2));
///
/// drop(page);                                        // committed: everything is given back, and the next enters
/// let next = waiter.await.unwrap();
/// assert_eq!(budget.status().bytes.in_use, 800);
/// # drop(next); }
/// ```
pub struct Budget {
    desk: Desk<Machine>,
    config: BudgetConfig,
    memory: Box<dyn MemorySource>,
    gate: Mutex<Watch>,
    // When the last reading was taken, in milliseconds of the desk's time; so that the way straight through takes no lock for it.
    read_at_ms: AtomicU64,
}

struct Watch {
    gate: Gate,
    reading: Option<MemoryReading>,
}

impl Budget {
    /// A budget that watches the memory of this process. Reads the memory limit once, for the default of the bytes.
    pub fn new(config: BudgetConfig) -> Arc<Budget> {
        Budget::with_memory(config, SystemMemory::find())
    }

    /// A budget that takes its readings of memory from elsewhere.
    ///
    /// ```
    /// use bellwether_daemon::{Budget, BudgetConfig, MemoryReading};
    ///
    /// let budget = Budget::with_memory(BudgetConfig::default(), || {
    ///     Some(MemoryReading { used_bytes: 0, limit_bytes: 512 << 20 })
    /// });
    /// assert_eq!(budget.status().bytes.capacity, 64 << 20); // an eighth of the limit
    /// ```
    pub fn with_memory(config: BudgetConfig, memory: impl MemorySource + 'static) -> Arc<Budget> {
        let reading = memory.read();
        let capacity = config.capacity(memory.limit_bytes());
        let desk = Desk::new(Machine::new(capacity), || tokio::time::Instant::now().into_std(), true);
        let mut gate = Gate::new(u64::from(config.memory_threshold_percent));
        desk.set_gate(gate.observe(reading));
        let read_at_ms = AtomicU64::new(0);
        Arc::new(Budget {
            desk,
            config,
            memory: Box::new(memory),
            gate: Mutex::new(Watch { gate, reading }),
            read_at_ms,
        })
    }

    /// Waits for room, and holds it.
    ///
    /// Straight through if it fits, the memory gate is open and nobody waits; otherwise first come, first served. An ask above
    /// the capacity is cut down to it, so every ask is admitted some time: read [`Lease::granted`].
    /// Take the database's permit before, and the connection after.
    ///
    /// # Cancel safety
    ///
    /// Safe: a dropped future has left the line, or given back what it was admitted to.
    ///
    /// # Panics
    ///
    /// In debug builds, if the task holds a lease or a connection already: see [`wait_order`].
    pub async fn reserve(&self, ask: Ask) -> Lease {
        wait_order::may_wait(Rung::Budget);
        if self.reading_is_due() {
            self.sample();
        }
        let place = Reserve { budget: self, waiting: self.desk.reserve(ask), timer: None }.await;
        Lease { place, page_deadline: self.config.page_deadline(), _held: wait_order::hold(Rung::Budget) }
    }

    /// Changes how much may be held, while running; zero is unbounded, each by itself.
    ///
    /// Nobody is taken anything: above a lowered capacity the next has to wait until enough has been given back. A raised one
    /// is filled from the line at once.
    pub fn resize(&self, capacity: Capacity) {
        self.desk.resize(capacity);
    }

    /// How much may be held now.
    pub fn capacity(&self) -> Capacity {
        self.desk.look(Machine::capacity)
    }

    /// What is in use, who holds it and who waits, as of one moment.
    pub fn status(&self) -> BudgetStatus {
        let reading = self.watch().reading;
        let now = self.desk.now();
        self.desk.look(|machine| BudgetStatus::of(machine, reading, now))
    }

    /// Takes a reading of memory now, and opens or closes the gate by it.
    ///
    /// The budget does this by itself as often as it needs to; call it when something else has just changed.
    pub fn sample(&self) {
        // Who finds another one reading lets that one do it. Deciding and telling the desk are one step under the lock, so
        // an older reading never overrules a newer one.
        let mut watch = match self.gate.try_lock() {
            Ok(watch) => watch,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return,
        };
        self.read_at_ms.store(milliseconds(self.desk.now()), Ordering::Relaxed);
        watch.reading = self.memory.read();
        let reading = watch.reading;
        self.desk.set_gate(watch.gate.observe(reading));
    }

    fn reading_is_due(&self) -> bool {
        let now = milliseconds(self.desk.now());
        now.saturating_sub(self.read_at_ms.load(Ordering::Relaxed)) >= self.config.memory_interval_ms
    }

    fn watch(&self) -> std::sync::MutexGuard<'_, Watch> {
        // A memory source that panicked leaves the last good reading.
        self.gate.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Budget")
            .field("config", &self.config)
            .field("status", &self.status())
            .finish_non_exhaustive()
    }
}

fn milliseconds(since: Duration) -> u64 {
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// A reservation on its way that samples memory while it is the front of the line.
struct Reserve<'a> {
    budget: &'a Budget,
    waiting: Waiting<Machine>,
    // Only the front has one, so the thousands behind it cost no timer each.
    timer: Option<Pin<Box<Sleep>>>,
}

impl Future for Reserve<'_> {
    type Output = Place<Machine>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Place<Machine>> {
        loop {
            if let Poll::Ready(place) = Pin::new(&mut self.waiting).poll(cx) {
                return Poll::Ready(place);
            }
            if !self.waiting.is_front() {
                self.timer = None;
                return Poll::Pending;
            }
            // Never zero: this would go round without ever letting go.
            let interval = Duration::from_millis(self.budget.config.memory_interval_ms.max(1));
            let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(interval)));
            if timer.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            self.timer = None;
            self.budget.sample();
        }
    }
}

/// Room in the budget that is held for one page. Dropping it gives everything back.
#[must_use = "what was reserved is given back as soon as this is dropped"]
pub struct Lease {
    place: Place<Machine>,
    page_deadline: Option<Duration>,
    _held: Hold,
}

impl Lease {
    /// Lowers what is held to at most this, after the page was loaded: `bytes` is the page and one chunk of output on top.
    ///
    /// Amounts above what is held change nothing. Trimmed to zero of both, everything is given back at once and the lease is
    /// spent.
    pub fn trim(&self, events: u64, bytes: u64) {
        self.place.trim(Amount { events, bytes });
    }

    /// Takes so many bytes more, if nobody waits and there is room; says whether it did. Never waits.
    ///
    /// On `false` write what has piled up into the page's transaction, and go on with what is held.
    #[must_use = "without room nothing was taken: write what has piled up"]
    pub fn grow(&self, bytes: u64) -> bool {
        self.place.grow(Amount { events: 0, bytes })
    }

    /// How many events and bytes are held now. Less than was asked, if the ask was above the capacity.
    pub fn granted(&self) -> (u64, u64) {
        let held = self.place.held();
        (held.events, held.bytes)
    }

    /// Gives everything back; the same as dropping it, spelled out.
    pub fn release(self) {}

    /// The moment by which the page must have ended: see [`BudgetConfig::page_deadline_ms`]. `None` if it may take for ever.
    pub fn deadline(&self) -> Option<Instant> {
        self.page_deadline.and_then(|deadline| self.place.since().checked_add(deadline))
    }

    /// Does the work of the page, but gives it up at the [deadline](Lease::deadline).
    ///
    /// A page that hangs in its database must not hold its room for ever. The work is dropped where it stands, which rolls
    /// its transaction back; drop the lease after it, and load the page anew.
    ///
    /// ```
    /// use bellwether_daemon::{AgentNo, Ask, Budget, BudgetConfig};
    /// use bellwether_storage::DatabaseNo;
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// let budget = Budget::new(BudgetConfig { page_deadline_ms: 20, ..BudgetConfig::default() });
    /// let ask = Ask { database: DatabaseNo(0), agent: AgentNo(1), events: 500, bytes: 800, front: false };
    ///
    /// let lease = budget.reserve(ask).await;
    /// assert_eq!(lease.within_deadline(async { "committed" }).await, Ok("committed"));
    /// assert!(lease.within_deadline(std::future::pending::<()>()).await.is_err());
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`PageOverdue`] when the deadline passed first. Back off, then load the page again.
    ///
    /// # Cancel safety
    ///
    /// As safe as the work: dropping this drops the work.
    pub async fn within_deadline<T>(&self, work: impl Future<Output = T>) -> Result<T, PageOverdue> {
        match self.deadline() {
            None => Ok(work.await),
            Some(deadline) => timeout_at(deadline.into(), work)
                .await
                .map_err(|_| PageOverdue { deadline: self.page_deadline.unwrap_or_default() }),
        }
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (events, bytes) = self.granted();
        f.debug_struct("Lease").field("events", &events).field("bytes", &bytes).finish_non_exhaustive()
    }
}

/// A page held its room until the deadline and was given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the page did not end within {deadline:?} and was given up; see whether its database hangs, or raise page_deadline_ms"
)]
pub struct PageOverdue {
    /// How long it might have taken.
    pub deadline: Duration,
}
