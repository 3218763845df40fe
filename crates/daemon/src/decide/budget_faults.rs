//! Faulty budgets: the true machine with one rule left out. The tests must notice every one of them.

use std::time::Duration;

use super::budget::{Amount, Ask, Capacity, Machine, Rules};
use super::line::Ticket;

/// What is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Nothing: the true machine.
    None,
    /// What a page did not need stays reserved until it ends.
    NoTrim,
    /// Who is dropped keeps its room.
    LeakOnDrop,
    /// A newcomer that fits passes those who wait.
    Barging,
    /// Pages are admitted however short memory is.
    GateIgnored,
    /// When a waiter is dropped, those it stood in the way of are admitted but not told.
    LostWakeUp,
    /// When a page is trimmed, those who fit now are admitted but not told.
    LostWakeUpOnTrim,
    /// An ask is cut to the capacity of the moment it queues.
    CutWhenQueuing,
    /// A closed gate stays closed with nothing in flight.
    StandsStillWhenEmpty,
}

/// Every fault, and not the true machine.
pub(crate) const FAULTS: [Fault; 8] = [
    Fault::NoTrim,
    Fault::LeakOnDrop,
    Fault::Barging,
    Fault::GateIgnored,
    Fault::LostWakeUp,
    Fault::LostWakeUpOnTrim,
    Fault::CutWhenQueuing,
    Fault::StandsStillWhenEmpty,
];

/// A machine with a fault.
#[derive(Debug)]
pub(crate) struct Faulty {
    pub(crate) machine: Machine,
    fault: Fault,
}

impl Faulty {
    pub(crate) fn new(capacity: Capacity, fault: Fault) -> Faulty {
        Faulty { machine: Machine::new(capacity), fault }
    }

    fn fits(&self, ask: &Ask) -> bool {
        let (in_use, capacity) = (self.machine.in_use(), self.machine.capacity());
        let within = |used: u64, more: u64, most: u64| most == 0 || used.saturating_add(more) <= most;
        within(in_use.events, ask.events, capacity.events) && within(in_use.bytes, ask.bytes, capacity.bytes)
    }
}

impl Rules for Faulty {
    fn reserve(&mut self, now: Duration, ask: Ask) -> (Ticket, bool) {
        let capacity = self.machine.capacity();
        let cut = |asked: u64, most: u64| if most == 0 { asked } else { asked.min(most) };
        match self.fault {
            Fault::Barging if self.fits(&ask) => self.machine.reserve(now, Ask { front: true, ..ask }),
            Fault::CutWhenQueuing => {
                let (events, bytes) = (cut(ask.events, capacity.events), cut(ask.bytes, capacity.bytes));
                self.machine.reserve(now, Ask { events, bytes, ..ask })
            }
            Fault::StandsStillWhenEmpty if !self.machine.gate_open() && self.machine.holders().len() == 0 => {
                // It queues, where the true machine would let it in: told to nobody.
                (self.machine.reserve(now, ask).0, false)
            }
            _ => self.machine.reserve(now, ask),
        }
    }

    fn trim(&mut self, now: Duration, ticket: Ticket, to: Amount) -> Vec<Ticket> {
        match self.fault {
            Fault::NoTrim => Vec::new(),
            Fault::LostWakeUpOnTrim => {
                self.machine.trim(now, ticket, to);
                Vec::new()
            }
            _ => self.machine.trim(now, ticket, to),
        }
    }

    fn grow(&mut self, ticket: Ticket, by: Amount) -> bool {
        self.machine.grow(ticket, by)
    }

    fn leave(&mut self, now: Duration, ticket: Ticket) -> Vec<Ticket> {
        let waits = self.machine.held(ticket) == Amount::default();
        match self.fault {
            Fault::LeakOnDrop if !waits => Vec::new(),
            Fault::LostWakeUp if waits => {
                self.machine.leave(now, ticket);
                Vec::new()
            }
            _ => self.machine.leave(now, ticket),
        }
    }

    fn resize(&mut self, now: Duration, capacity: Capacity) -> Vec<Ticket> {
        self.machine.resize(now, capacity)
    }

    fn set_gate(&mut self, now: Duration, open: bool) -> Vec<Ticket> {
        self.machine.set_gate(now, open || self.fault == Fault::GateIgnored)
    }

    fn front(&self) -> Option<Ticket> {
        self.machine.front()
    }

    fn held(&self, ticket: Ticket) -> Amount {
        self.machine.held(ticket)
    }
}
