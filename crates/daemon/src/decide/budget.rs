//! The load budget, decided: who may hold how much, and who is next.
//!
//! A page of events *reserves* room before it is loaded, is *trimmed* to what it held, may *grow* while it produces output, and
//! *leaves* when it is committed or given up. Room is counted in events and in bytes, and the pages themselves are counted too.
//! Whoever finds no room stands in line.
//!
//! # Rules
//!
//! * A capacity of zero means unbounded, for each of events, bytes and pages by itself.
//! * Straight through only if it fits, the memory gate is open and nobody waits; otherwise the back of the line, first come,
//!   first served. Who returns with an exact size enters at the front.
//! * An ask above the capacity is cut down to it when it is admitted, not when it queues: the capacity may have changed since.
//! * With nobody holding anything the front of the line is admitted, whatever the gate says: else all would wait for ever.
//! * Growing never waits, and never passes somebody who waits.
//! * After every operation that can make room the line is looked at again, so an admissible front never sleeps.
//!
//! # Where this can grow
//!
//! [`Machine::admissible`] is the one place that says whether a waiter may enter, and [`Machine::examine`] the one place that
//! picks the next waiter. A share per database changes these two and nothing else; who holds room knows its database already.
//!
//! There is no clock here: moments are passed in as time since the start, and only kept to be shown.

use std::collections::BTreeMap;
use std::time::Duration;

use bellwether_storage::DatabaseNo;

use super::line::{Entry, Line, Ticket};

/// The number of an agent (one projection of one tenant) on this node, to show who holds and who waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AgentNo(pub u64);

/// What a page asks of the budget before it is loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ask {
    /// The database the page comes from.
    pub database: DatabaseNo,
    /// Who asks.
    pub agent: AgentNo,
    /// The most events the page will hold.
    pub events: u64,
    /// The most bytes the page will hold, and one chunk of output on top.
    pub bytes: u64,
    /// Whether to stand at the front of the line instead of the back. Only for an agent that was admitted, found the first
    /// event of its page larger than its reservation, gave the reservation back and now returns with the exact size.
    pub front: bool,
}

/// How much may be held at once; zero is unbounded, each by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Capacity {
    /// Events loaded and not yet committed.
    pub events: u64,
    /// Bytes of those events and of the output made of them.
    pub bytes: u64,
    /// Pages in flight.
    pub pages: u64,
}

/// Why the line stands still.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// The page at the front does not fit beside those in flight, in events or in bytes.
    Budget,
    /// The process is short of memory: no new page until those in flight have drained.
    Gate,
    /// As many pages are in flight as may be.
    Pages,
}

/// An amount in both units.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Amount {
    pub(crate) events: u64,
    pub(crate) bytes: u64,
}

/// Somebody who holds room, or waits for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Party {
    /// What was asked.
    pub(crate) ask: Ask,
    /// What is held; zero while waiting.
    pub(crate) held: Amount,
    /// When it was admitted or, while waiting, when it queued: time since the start.
    pub(crate) since: Duration,
}

/// Figures that only ever rise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Tally {
    /// Admissions so far, straight through or from the line.
    pub(crate) admissions: u64,
    /// How many of them had to wait.
    pub(crate) waited: u64,
    /// Most events held at once.
    pub(crate) events_peak: u64,
    /// Most bytes held at once.
    pub(crate) bytes_peak: u64,
    /// Most pages in flight at once.
    pub(crate) pages_peak: u64,
}

/// The operations of the budget.
///
/// A trait so that the tests can put a faulty machine in the place of the true one and see that they notice. Operations that
/// can make room return whom they admitted from the line, in order; each of those must be told.
pub(crate) trait Rules {
    /// Asks for room. The ticket names the reservation from here on; `true` if it was admitted at once. Nobody else is
    /// admitted by this: a newcomer makes no room.
    fn reserve(&mut self, now: Duration, ask: Ask) -> (Ticket, bool);

    /// Lowers what is held to at most this; amounts above it are left as they are. Trimmed to nothing is released.
    fn trim(&mut self, now: Duration, ticket: Ticket, to: Amount) -> Vec<Ticket>;

    /// Raises what is held, if nobody waits and there is room; says whether it did.
    fn grow(&mut self, ticket: Ticket, by: Amount) -> bool;

    /// Gives everything back, or leaves the line. A ticket that is unknown, or has left before, changes nothing.
    fn leave(&mut self, now: Duration, ticket: Ticket) -> Vec<Ticket>;

    /// Changes the capacity. Nobody is taken anything; above a lowered capacity the next has to wait.
    fn resize(&mut self, now: Duration, capacity: Capacity) -> Vec<Ticket>;

    /// Opens or closes the memory gate, or just looks at the line again.
    fn set_gate(&mut self, now: Duration, open: bool) -> Vec<Ticket>;

    /// Who is next in line.
    fn front(&self) -> Option<Ticket>;

    /// What is held under the ticket; nothing while it waits, and after it has left.
    fn held(&self, ticket: Ticket) -> Amount;
}

/// The budget of one store on one node.
#[derive(Debug)]
pub(crate) struct Machine {
    capacity: Capacity,
    gate_open: bool,
    holders: BTreeMap<Ticket, Party>,
    line: Line<Party>,
    // Sums of what the holders hold. Wider than one amount, so that no ask, however wild, can overflow them.
    events_in_use: u128,
    bytes_in_use: u128,
    tally: Tally,
}

impl Machine {
    /// A budget nobody uses yet, its gate open.
    pub(crate) fn new(capacity: Capacity) -> Machine {
        Machine {
            capacity,
            gate_open: true,
            holders: BTreeMap::new(),
            line: Line::new(),
            events_in_use: 0,
            bytes_in_use: 0,
            tally: Tally::default(),
        }
    }

    /// How much may be held.
    pub(crate) fn capacity(&self) -> Capacity {
        self.capacity
    }

    /// How much is held.
    pub(crate) fn in_use(&self) -> Amount {
        Amount { events: narrow(self.events_in_use), bytes: narrow(self.bytes_in_use) }
    }

    /// Who holds room, in no order that matters.
    pub(crate) fn holders(&self) -> impl ExactSizeIterator<Item = &Party> {
        self.holders.values()
    }

    /// Who waits, front first.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = &Party> {
        self.line.iter().map(|(_, party)| party)
    }

    /// Whether the memory gate is open.
    pub(crate) fn gate_open(&self) -> bool {
        self.gate_open
    }

    /// The figures that only rise.
    pub(crate) fn tally(&self) -> Tally {
        self.tally
    }

    /// Why the front of the line waits; nothing if nobody waits.
    pub(crate) fn reason(&self) -> Option<Reason> {
        let (_, front) = self.line.front()?;
        self.admissible(&front.ask).err()
    }

    /// What the ask would hold now, or why it may not enter.
    fn admissible(&self, ask: &Ask) -> Result<Amount, Reason> {
        let amount = Amount {
            events: cut(ask.events.max(u64::from(ask.bytes == 0)), self.capacity.events),
            bytes: cut(ask.bytes, self.capacity.bytes),
        };
        if self.holders.is_empty() {
            return Ok(amount);
        }
        if !self.gate_open {
            return Err(Reason::Gate);
        }
        if self.capacity.pages != 0 && self.holders.len() as u64 >= self.capacity.pages {
            return Err(Reason::Pages);
        }
        if self.fits(amount) { Ok(amount) } else { Err(Reason::Budget) }
    }

    /// Whether that much more stays within the capacity.
    fn fits(&self, amount: Amount) -> bool {
        within(self.events_in_use, amount.events, self.capacity.events)
            && within(self.bytes_in_use, amount.bytes, self.capacity.bytes)
    }

    /// Admits from the front for as long as the front may enter.
    fn examine(&mut self, now: Duration) -> Vec<Ticket> {
        let mut admitted = Vec::new();
        while let Some((ticket, front)) = self.line.front() {
            let Ok(amount) = self.admissible(&front.ask) else { break };
            let ask = front.ask;
            self.line.leave(ticket);
            self.tally.waited += 1;
            self.admit(now, ticket, ask, amount);
            admitted.push(ticket);
        }
        admitted
    }

    fn admit(&mut self, now: Duration, ticket: Ticket, ask: Ask, held: Amount) {
        self.holders.insert(ticket, Party { ask, held, since: now });
        self.tally.admissions += 1;
        self.tally.pages_peak = self.tally.pages_peak.max(self.holders.len() as u64);
        self.take(held);
    }

    fn take(&mut self, amount: Amount) {
        self.events_in_use += u128::from(amount.events);
        self.bytes_in_use += u128::from(amount.bytes);
        self.tally.events_peak = self.tally.events_peak.max(narrow(self.events_in_use));
        self.tally.bytes_peak = self.tally.bytes_peak.max(narrow(self.bytes_in_use));
    }

    fn give_back(&mut self, amount: Amount) {
        self.events_in_use -= u128::from(amount.events);
        self.bytes_in_use -= u128::from(amount.bytes);
    }
}

impl Rules for Machine {
    fn reserve(&mut self, now: Duration, ask: Ask) -> (Ticket, bool) {
        let entry = if ask.front { Entry::Front } else { Entry::Back };
        let ticket = self.line.ticket(entry);
        let first = self.line.front().is_none_or(|(front, _)| ticket < front);
        match self.admissible(&ask) {
            Ok(amount) if first => {
                self.admit(now, ticket, ask, amount);
                (ticket, true)
            }
            _ => {
                self.line.join(ticket, Party { ask, held: Amount::default(), since: now });
                (ticket, false)
            }
        }
    }

    fn trim(&mut self, now: Duration, ticket: Ticket, to: Amount) -> Vec<Ticket> {
        let Some(holder) = self.holders.get_mut(&ticket) else { return Vec::new() };
        let before = holder.held;
        let after = Amount { events: before.events.min(to.events), bytes: before.bytes.min(to.bytes) };
        if after == Amount::default() {
            return self.leave(now, ticket);
        }
        holder.held = after;
        self.give_back(Amount { events: before.events - after.events, bytes: before.bytes - after.bytes });
        self.examine(now)
    }

    fn grow(&mut self, ticket: Ticket, by: Amount) -> bool {
        if !self.line.is_empty() || !self.fits(by) {
            return false;
        }
        let Some(holder) = self.holders.get_mut(&ticket) else { return false };
        let (Some(events), Some(bytes)) =
            (holder.held.events.checked_add(by.events), holder.held.bytes.checked_add(by.bytes))
        else {
            return false;
        };
        holder.held = Amount { events, bytes };
        self.take(by);
        true
    }

    fn leave(&mut self, now: Duration, ticket: Ticket) -> Vec<Ticket> {
        match self.holders.remove(&ticket) {
            Some(holder) => self.give_back(holder.held),
            None if self.line.leave(ticket).is_some() => {}
            None => return Vec::new(),
        }
        self.examine(now)
    }

    fn resize(&mut self, now: Duration, capacity: Capacity) -> Vec<Ticket> {
        self.capacity = capacity;
        self.examine(now)
    }

    fn set_gate(&mut self, now: Duration, open: bool) -> Vec<Ticket> {
        self.gate_open = open;
        self.examine(now)
    }

    fn front(&self) -> Option<Ticket> {
        self.line.front().map(|(ticket, _)| ticket)
    }

    fn held(&self, ticket: Ticket) -> Amount {
        self.holders.get(&ticket).map(|holder| holder.held).unwrap_or_default()
    }
}

/// At most the capacity, where there is one.
fn cut(asked: u64, capacity: u64) -> u64 {
    if capacity == 0 { asked } else { asked.min(capacity) }
}

/// Whether `more` on top stays within the capacity, where there is one.
fn within(in_use: u128, more: u64, capacity: u64) -> bool {
    capacity == 0 || in_use + u128::from(more) <= u128::from(capacity)
}

/// For show: a sum too large for one amount is shown as the largest.
fn narrow(sum: u128) -> u64 {
    u64::try_from(sum).unwrap_or(u64::MAX)
}
