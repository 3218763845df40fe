//! What the load budget looks like at one moment.

use std::time::Duration;

use bellwether_storage::DatabaseNo;

use crate::decide::budget::{AgentNo, Machine, Party, Reason};
use crate::decide::gate::MemoryReading;

/// The budget at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetStatus {
    /// Events loaded and not yet committed.
    pub events: Gauge,
    /// Bytes of those and of their output.
    pub bytes: Gauge,
    /// Pages in flight.
    pub pages: Gauge,
    /// Whether the memory gate is open.
    pub gate_open: bool,
    /// The last reading of memory, where there is one.
    pub memory: Option<MemoryReading>,
    /// Who holds room.
    pub holders: Vec<Holding>,
    /// Who waits, front first. Waiting is healthy: it is how tenants take turns.
    pub waiting: Vec<InLine>,
    /// Admissions so far.
    pub admissions: u64,
    /// How many of them had to wait.
    pub waited: u64,
}

/// One quantity the budget bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gauge {
    /// Held now.
    pub in_use: u64,
    /// The most that may be held; zero is unbounded.
    pub capacity: u64,
    /// The most that was held at once since the start.
    pub peak: u64,
}

/// A page in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Holding {
    /// Whose it is.
    pub agent: AgentNo,
    /// The database it comes from.
    pub database: DatabaseNo,
    /// Events held.
    pub events: u64,
    /// Bytes held.
    pub bytes: u64,
    /// Since it was admitted.
    pub held_for: Duration,
}

/// A page that waits for room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InLine {
    /// Place in line; the front is 1.
    pub place: usize,
    /// Who waits.
    pub agent: AgentNo,
    /// The database its page comes from.
    pub database: DatabaseNo,
    /// Events asked for.
    pub events: u64,
    /// Bytes asked for.
    pub bytes: u64,
    /// Since it queued.
    pub waited_for: Duration,
    /// What the front of the line waits for, and everybody behind it with it.
    pub reason: Reason,
}

impl BudgetStatus {
    pub(crate) fn of(machine: &Machine, memory: Option<MemoryReading>, now: Duration) -> BudgetStatus {
        let (capacity, in_use, tally) = (machine.capacity(), machine.in_use(), machine.tally());
        let gauge = |in_use, capacity, peak| Gauge { in_use, capacity, peak };
        // The line stands only as long as its front may not enter, so there is a reason whenever anybody waits.
        let reason = machine.reason();
        BudgetStatus {
            events: gauge(in_use.events, capacity.events, tally.events_peak),
            bytes: gauge(in_use.bytes, capacity.bytes, tally.bytes_peak),
            pages: gauge(machine.holders().len() as u64, capacity.pages, tally.pages_peak),
            gate_open: machine.gate_open(),
            memory,
            holders: machine.holders().map(|party| Holding::of(party, now)).collect(),
            waiting: reason
                .into_iter()
                .flat_map(|reason| {
                    machine
                        .waiting()
                        .zip(1..)
                        .map(move |(party, place)| InLine::of(party, place, reason, now))
                })
                .collect(),
            admissions: tally.admissions,
            waited: tally.waited,
        }
    }
}

impl Holding {
    fn of(party: &Party, now: Duration) -> Holding {
        Holding {
            agent: party.ask.agent,
            database: party.ask.database,
            events: party.held.events,
            bytes: party.held.bytes,
            held_for: now.saturating_sub(party.since),
        }
    }
}

impl InLine {
    fn of(party: &Party, place: usize, reason: Reason, now: Duration) -> InLine {
        InLine {
            place,
            agent: party.ask.agent,
            database: party.ask.database,
            events: party.ask.events,
            bytes: party.ask.bytes,
            waited_for: now.saturating_sub(party.since),
            reason,
        }
    }
}
