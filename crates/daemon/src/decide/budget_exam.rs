//! The exam of the budget's machine: random operations, and after every one of them the invariants and a second opinion.
//!
//! The second opinion is a naive model that shares no code with the machine: two plain lists, scanned. The invariants are
//! computed from what the machine shows. `I1` to `I7`, `I9` and `I12` are those of `protocols.md` §3.3; those about tasks
//! (`I10`, `I11`, `I13`) are tested where tasks are.

use std::fmt::Debug;
use std::time::Duration;

use bellwether_storage::DatabaseNo;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};

use super::budget::{AgentNo, Amount, Ask, Capacity, Machine, Reason, Rules};
use super::budget_faults::{FAULTS, Fault, Faulty};
use super::line::Ticket;

#[derive(Debug, Clone)]
enum Operation {
    Reserve { events: u64, bytes: u64, front: bool },
    Trim { holder: usize, to: Amount },
    Grow { holder: usize, by: Amount },
    DropHolder { holder: usize },
    DropWaiter { waiter: usize },
    DropTwice { gone: usize },
    Resize(Capacity),
    Gate { open: bool },
}

fn amounts() -> impl Strategy<Value = u64> {
    prop_oneof![12 => 0..10_u64, 1 => Just(u64::MAX), 1 => Just(u64::MAX / 2)]
}

fn capacities() -> impl Strategy<Value = Capacity> {
    let amount = || prop_oneof![2 => Just(0), 6 => 1..16_u64, 1 => Just(u64::MAX)];
    let pages = prop_oneof![1 => Just(0), 2 => 1..6_u64];
    (amount(), amount(), pages).prop_map(|(events, bytes, pages)| Capacity { events, bytes, pages })
}

fn operations() -> impl Strategy<Value = Operation> {
    let pair = || (amounts(), amounts()).prop_map(|(events, bytes)| Amount { events, bytes });
    prop_oneof![
        8 => (amounts(), amounts(), prop::bool::weighted(0.15))
            .prop_map(|(events, bytes, front)| Operation::Reserve { events, bytes, front }),
        4 => (any::<usize>(), pair()).prop_map(|(holder, to)| Operation::Trim { holder, to }),
        3 => (any::<usize>(), pair()).prop_map(|(holder, by)| Operation::Grow { holder, by }),
        4 => any::<usize>().prop_map(|holder| Operation::DropHolder { holder }),
        2 => any::<usize>().prop_map(|waiter| Operation::DropWaiter { waiter }),
        1 => any::<usize>().prop_map(|gone| Operation::DropTwice { gone }),
        1 => capacities().prop_map(Operation::Resize),
        1 => any::<bool>().prop_map(|open| Operation::Gate { open }),
    ]
}

/// A party of the naive model; `who` is the number of its ask.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Naive {
    who: u64,
    ask: (u64, u64),
    held: (u64, u64),
    admitted_at: usize,
}

/// The second opinion, and the bookkeeping of the exam.
struct Exam<R> {
    rules: R,
    machine: fn(&R) -> &Machine,
    capacity: Capacity,
    gate_open: bool,
    holders: Vec<Naive>,
    queue: Vec<Naive>,
    // How many at the front of the queue have returned rather than come.
    returned: usize,
    tickets: Vec<Ticket>,
    gone: Vec<Ticket>,
    told: Vec<bool>,
    lowered_at: usize,
    step: usize,
}

type Verdict = Result<(), TestCaseError>;

impl<R: Rules + Debug> Exam<R> {
    fn new(rules: R, machine: fn(&R) -> &Machine, capacity: Capacity) -> Exam<R> {
        Exam {
            rules,
            machine,
            capacity,
            gate_open: true,
            holders: Vec::new(),
            queue: Vec::new(),
            returned: 0,
            tickets: Vec::new(),
            gone: Vec::new(),
            told: Vec::new(),
            lowered_at: 0,
            step: 0,
        }
    }

    fn now(&self) -> Duration {
        Duration::from_secs(self.step as u64)
    }

    fn run(&mut self, operations: &[Operation]) -> Verdict {
        for operation in operations {
            self.step += 1;
            self.apply(operation)?;
            self.check()?;
        }
        // I12: all idle, nothing left.
        while let Some(who) = self.holders.first().or(self.queue.first()).map(|party| party.who) {
            self.step += 1;
            self.leave(who)?;
            self.check()?;
        }
        let machine = (self.machine)(&self.rules);
        prop_assert_eq!(machine.in_use(), Amount::default());
        prop_assert_eq!((machine.holders().count(), machine.waiting().count()), (0, 0));
        Ok(())
    }

    fn apply(&mut self, operation: &Operation) -> Verdict {
        match operation {
            Operation::Reserve { events, bytes, front } => self.reserve(*events, *bytes, *front),
            Operation::Trim { holder, to } => match pick(&self.holders, *holder) {
                Some(who) => self.trim(who, *to),
                None => Ok(()),
            },
            Operation::Grow { holder, by } => match pick(&self.holders, *holder) {
                Some(who) => self.grow(who, *by),
                None => Ok(()),
            },
            Operation::DropHolder { holder } => {
                pick(&self.holders, *holder).map_or(Ok(()), |who| self.leave(who))
            }
            Operation::DropWaiter { waiter } => {
                pick(&self.queue, *waiter).map_or(Ok(()), |who| self.leave(who))
            }
            Operation::DropTwice { gone } if !self.gone.is_empty() => {
                let ticket = self.gone[gone % self.gone.len()];
                prop_assert_eq!(
                    self.rules.leave(self.now(), ticket),
                    vec![],
                    "a ticket that is gone did something"
                );
                let grew = self.rules.grow(ticket, Amount { events: 1, bytes: 1 });
                prop_assert!(!grew, "a ticket that is gone grew");
                Ok(())
            }
            Operation::DropTwice { .. } => Ok(()),
            Operation::Resize(capacity) => {
                let lower = |new: u64, old: u64| new != 0 && (old == 0 || new < old);
                if lower(capacity.events, self.capacity.events) || lower(capacity.bytes, self.capacity.bytes)
                {
                    self.lowered_at = self.step;
                }
                self.capacity = *capacity;
                let told = self.rules.resize(self.now(), *capacity);
                self.admit_and_compare(&told)
            }
            Operation::Gate { open } => {
                self.gate_open = *open;
                let told = self.rules.set_gate(self.now(), *open);
                self.admit_and_compare(&told)
            }
        }
    }

    fn reserve(&mut self, events: u64, bytes: u64, front: bool) -> Verdict {
        let who = self.tickets.len() as u64;
        let (database, agent) = (DatabaseNo(who as u32 % 3), AgentNo(who));
        // I2, straight through: only at the front.
        let (ticket, admitted) =
            self.rules.reserve(self.now(), Ask { database, agent, events, bytes, front });
        prop_assert!(!self.tickets.contains(&ticket), "a ticket was given twice");
        self.tickets.push(ticket);
        self.told.push(admitted);
        let events = if events == 0 && bytes == 0 { 1 } else { events };
        let party = Naive { who, ask: (events, bytes), held: (0, 0), admitted_at: 0 };
        if front {
            self.queue.insert(self.returned, party);
            self.returned += 1;
        } else {
            self.queue.push(party);
        }
        self.examine();
        self.compare_told()
    }

    fn trim(&mut self, who: u64, to: Amount) -> Verdict {
        let holder = self.holders.iter_mut().find(|party| party.who == who).expect("a holder was picked");
        holder.held = (holder.held.0.min(to.events), holder.held.1.min(to.bytes));
        let spent = holder.held == (0, 0);
        if spent {
            self.holders.retain(|party| party.who != who);
            self.gone.push(self.tickets[who as usize]);
        }
        let told = self.rules.trim(self.now(), self.tickets[who as usize], to);
        self.admit_and_compare(&told)
    }

    fn grow(&mut self, who: u64, by: Amount) -> Verdict {
        let (events, bytes) = self.in_use();
        // I7
        let within =
            |used: u128, more: u64, most: u64| most == 0 || used + u128::from(more) <= u128::from(most);
        let holder = self.holders.iter_mut().find(|party| party.who == who).expect("a holder was picked");
        let grown = (holder.held.0.checked_add(by.events), holder.held.1.checked_add(by.bytes));
        let may = self.queue.is_empty()
            && within(events, by.events, self.capacity.events)
            && within(bytes, by.bytes, self.capacity.bytes);
        let grew = self.rules.grow(self.tickets[who as usize], by);
        match grown {
            (Some(events), Some(bytes)) => {
                prop_assert_eq!(grew, may, "I7: growing");
                if grew {
                    holder.held = (events, bytes);
                }
            }
            // More than can be counted is not held.
            _ => prop_assert!(!grew, "grew past what can be counted"),
        }
        Ok(())
    }

    fn leave(&mut self, who: u64) -> Verdict {
        self.holders.retain(|party| party.who != who);
        if let Some(place) = self.queue.iter().position(|party| party.who == who) {
            self.queue.remove(place);
            self.returned -= usize::from(place < self.returned);
        }
        let ticket = self.tickets[who as usize];
        self.gone.push(ticket);
        let told = self.rules.leave(self.now(), ticket);
        self.admit_and_compare(&told)
    }

    fn in_use(&self) -> (u128, u128) {
        let sum = |unit: fn(&Naive) -> u64| self.holders.iter().map(|party| u128::from(unit(party))).sum();
        (sum(|party| party.held.0), sum(|party| party.held.1))
    }

    /// What the front would hold if it may enter (I2).
    fn front_enters(&self) -> Option<(u64, u64)> {
        let front = self.queue.first()?;
        let cut = |asked: u64, most: u64| if most == 0 { asked } else { asked.min(most) };
        let wanted = (cut(front.ask.0, self.capacity.events), cut(front.ask.1, self.capacity.bytes));
        if self.holders.is_empty() {
            return Some(wanted);
        }
        let (events, bytes) = self.in_use();
        let fits =
            |used: u128, more: u64, most: u64| most == 0 || used + u128::from(more) <= u128::from(most);
        let pages = self.capacity.pages == 0 || (self.holders.len() as u64) < self.capacity.pages;
        let enters = self.gate_open
            && pages
            && fits(events, wanted.0, self.capacity.events)
            && fits(bytes, wanted.1, self.capacity.bytes);
        enters.then_some(wanted)
    }

    /// Admits in the model, in order; returns whom.
    fn examine(&mut self) -> Vec<u64> {
        let mut admitted = Vec::new();
        while let Some(held) = self.front_enters() {
            let front = self.queue.remove(0);
            self.returned = self.returned.saturating_sub(1);
            admitted.push(front.who);
            self.holders.push(Naive { held, admitted_at: self.step, ..front });
        }
        admitted
    }

    /// I6: the same are admitted, in the order of the queue; and exactly they are told.
    fn admit_and_compare(&mut self, told: &[Ticket]) -> Verdict {
        let expected = self.examine();
        let told: Vec<u64> = told
            .iter()
            .filter_map(|ticket| self.tickets.iter().position(|one| one == ticket).map(|who| who as u64))
            .collect();
        prop_assert_eq!(&told, &expected, "I6: who was admitted from the line, and told so");
        for who in told {
            self.told[who as usize] = true;
        }
        self.compare_told()
    }

    fn compare_told(&self) -> Verdict {
        for party in &self.holders {
            prop_assert!(self.told[party.who as usize], "{:?} was admitted and never told", party);
        }
        for party in &self.queue {
            prop_assert!(!self.told[party.who as usize], "{:?} waits and was told it was admitted", party);
        }
        Ok(())
    }

    fn check(&self) -> Verdict {
        let machine = (self.machine)(&self.rules);
        let capped = |sum: u128| u64::try_from(sum).unwrap_or(u64::MAX);
        let holders: Vec<_> = machine.holders().collect();
        let waiting: Vec<_> = machine.waiting().collect();

        // I1
        let events: u128 = holders.iter().map(|party| u128::from(party.held.events)).sum();
        let bytes: u128 = holders.iter().map(|party| u128::from(party.held.bytes)).sum();
        prop_assert_eq!(machine.in_use(), Amount { events: capped(events), bytes: capped(bytes) }, "I1");
        // I3
        prop_assert_eq!(self.front_enters(), None, "I3: the front could enter");
        prop_assert_eq!(machine.reason().is_some(), !waiting.is_empty(), "I3: who waits, waits for a reason");
        // I4
        prop_assert!(waiting.is_empty() || !holders.is_empty(), "I4: all wait and nobody holds");
        // I5
        if self.holders.iter().all(|party| party.admitted_at > self.lowered_at) {
            let over = |sum: u128, most: u64| most != 0 && sum > u128::from(most);
            prop_assert!(!over(events, self.capacity.events) && !over(bytes, self.capacity.bytes), "I5");
        }
        // A holder of nothing has left.
        prop_assert!(holders.iter().all(|party| party.held != Amount::default()), "a holder holds nothing");

        // The second opinion: the same holders with the same amounts, the same line in the same order.
        let mut held: Vec<_> =
            holders.iter().map(|party| (party.ask.agent.0, (party.held.events, party.held.bytes))).collect();
        held.sort_unstable();
        let mut expected: Vec<_> = self.holders.iter().map(|party| (party.who, party.held)).collect();
        expected.sort_unstable();
        prop_assert_eq!(held, expected);
        let line: Vec<_> = waiting.iter().map(|party| party.ask.agent.0).collect();
        prop_assert_eq!(line, self.queue.iter().map(|party| party.who).collect::<Vec<_>>(), "I6: the line");
        prop_assert_eq!((machine.gate_open(), machine.capacity()), (self.gate_open, self.capacity));
        self.check_reason(machine)
    }

    fn check_reason(&self, machine: &Machine) -> Verdict {
        let pages_full = self.capacity.pages != 0 && self.holders.len() as u64 >= self.capacity.pages;
        let expected = match (self.queue.is_empty(), self.gate_open, pages_full) {
            (true, _, _) => None,
            (false, false, _) => Some(Reason::Gate),
            (false, true, true) => Some(Reason::Pages),
            (false, true, false) => Some(Reason::Budget),
        };
        prop_assert_eq!(machine.reason(), expected);
        Ok(())
    }
}

fn pick(parties: &[Naive], which: usize) -> Option<u64> {
    (!parties.is_empty()).then(|| parties[which % parties.len()].who)
}

fn exam(cases: u32, fault: Fault) -> Result<(), String> {
    // The same seed every time: a faulty machine must fail every time, not only when chance will.
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 200, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(
        config,
        proptest::test_runner::TestRng::deterministic_rng(Default::default()),
    );
    let input = (capacities(), prop::collection::vec(operations(), 1..80));
    runner
        .run(&input, |(capacity, operations)| {
            Exam::new(Faulty::new(capacity, fault), |faulty| &faulty.machine, capacity).run(&operations)
        })
        .map_err(|failure| failure.to_string())
}

proptest! {
    #![proptest_config(Config { cases: 1_500, failure_persistence: None, ..Config::default() })]

    // T5, B1-B9; I1-I7, I9 (pages), I12. Another seed every time.
    #[test]
    fn every_invariant_holds_after_every_operation(
        capacity in capacities(),
        operations in prop::collection::vec(operations(), 1..120),
    ) {
        Exam::new(Machine::new(capacity), |machine| machine, capacity).run(&operations)?;
    }
}

#[test]
fn the_exam_passes_the_true_machine() {
    assert_eq!(exam(500, Fault::None), Ok(()));
}

#[test]
fn the_exam_fails_every_faulty_machine() {
    let passed: Vec<_> = FAULTS.into_iter().filter(|fault| exam(500, *fault).is_ok()).collect();
    assert!(passed.is_empty(), "the exam let pass: {passed:?}");
}
