//! What a daemon is doing, as plain values.

use std::fmt;

use bellwether_storage::{DatabaseNo, Sequence, TenantId};

use crate::BudgetStatus;

/// What an agent is doing. Waiting is a healthy state.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum AgentState {
    /// Nothing to do: it costs no statement.
    Idle,
    /// Waits for one of the database's page permits, or for its turn in the single-file line.
    WaitingPermit,
    /// Waits for room in the load budget.
    WaitingBudget {
        /// Place in the line; 1 is next. Zero while it is being admitted.
        place: u64,
        /// Why the line does not move.
        reason: String,
    },
    /// Has a page in flight.
    Working,
    /// Another process owns this progress; takes over when that stands still.
    StandingBy,
    /// Its last page failed; tries again after a while.
    BackingOff {
        /// What failed.
        reason: String,
    },
    /// Stopped for good: an operator must look.
    Failed {
        /// What was found.
        reason: String,
    },
}

impl fmt::Display for AgentState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Idle => f.write_str("idle"),
            Self::WaitingPermit => f.write_str("waiting for a permit"),
            Self::WaitingBudget { place, reason } => {
                write!(f, "waiting for budget at place {place}: {reason}")
            }
            Self::Working => f.write_str("working"),
            Self::StandingBy => f.write_str("standing by"),
            Self::BackingOff { reason } => write!(f, "backing off: {reason}"),
            Self::Failed { reason } => write!(f, "failed: {reason}"),
        }
    }
}

/// One agent: a projection of a tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentStatus {
    /// The projection.
    pub projection: String,
    /// Its version.
    pub version: u32,
    /// The tenant.
    pub tenant: TenantId,
    /// Where the tenant lives.
    pub database: DatabaseNo,
    /// How far it is, as last known; `None` before it has looked.
    pub progress: Option<Sequence>,
    /// Head of the tenant, as last known.
    pub head: Sequence,
    /// What it is doing.
    pub state: AgentState,
}

/// Work done since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DaemonCounters {
    /// Pages committed.
    pub pages: u64,
    /// Events worked on in committed pages.
    pub events: u64,
    /// Documents written in committed pages.
    pub documents: u64,
    /// Chunks written before the end of their page.
    pub flushes: u64,
    /// Dead letters committed.
    pub dead_letters: u64,
    /// Pages that failed and were done again.
    pub retries: u64,
    /// Discovery reads.
    pub polls: u64,
    /// Most bytes a page ever held in its documents and events while in flight.
    pub page_bytes_peak: u64,
}

/// A daemon at one moment.
#[derive(Debug, Clone)]
pub struct DaemonStatus {
    /// All agents, ordered by database, tenant and projection.
    pub agents: Vec<AgentStatus>,
    /// Work done.
    pub counters: DaemonCounters,
    /// The load budget.
    pub budget: BudgetStatus,
}
