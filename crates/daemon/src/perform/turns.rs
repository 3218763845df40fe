//! Turns: so many at once, first come, first served.
//!
//! This is the load budget with pages alone: one ask is one page, nothing else is bounded, and no gate closes it. So permits and
//! lines have every property the budget's machine is tested for (no lost wake-up, nothing left behind, shrinking while held),
//! and no code of their own to get them wrong.

use bellwether_storage::DatabaseNo;

use super::desk::{Desk, Waiting};
use super::permits::PermitStatus;
use crate::decide::budget::{AgentNo, Ask, Capacity, Machine};

/// So many at once. Clones share the same turns.
#[derive(Clone)]
pub(crate) struct Turns {
    desk: Desk<Machine>,
}

impl Turns {
    /// So many at once; zero is unbounded.
    pub(crate) fn new(at_once: u64) -> Turns {
        let machine = Machine::new(capacity(at_once));
        Turns { desk: Desk::new(machine, || tokio::time::Instant::now().into_std(), false) }
    }

    /// Waits for a turn.
    pub(crate) fn take(&self, database: DatabaseNo, agent: AgentNo) -> Waiting<Machine> {
        self.desk.reserve(Ask { database, agent, events: 1, bytes: 0, front: false })
    }

    /// Changes how many at once; more than that many stay until they leave.
    pub(crate) fn resize(&self, at_once: u64) {
        self.desk.resize(capacity(at_once));
    }

    /// How the turns stand.
    pub(crate) fn status(&self) -> PermitStatus {
        self.desk.look(|machine| PermitStatus {
            in_use: machine.holders().len() as u64,
            capacity: machine.capacity().pages,
            waiting: machine.waiting().map(|party| party.ask.agent).collect(),
        })
    }
}

fn capacity(at_once: u64) -> Capacity {
    Capacity { events: 0, bytes: 0, pages: at_once }
}
