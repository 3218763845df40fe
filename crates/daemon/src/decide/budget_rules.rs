//! The rules of the budget one by one, each with the few lines that show it.

use std::time::Duration;

use bellwether_storage::DatabaseNo;

use super::budget::{AgentNo, Amount, Ask, Capacity, Machine, Reason, Rules};
use super::line::Ticket;

const NOW: Duration = Duration::ZERO;

fn budget(events: u64, bytes: u64, pages: u64) -> Machine {
    Machine::new(Capacity { events, bytes, pages })
}

fn ask(events: u64, bytes: u64) -> Ask {
    Ask { database: DatabaseNo(0), agent: AgentNo(0), events, bytes, front: false }
}

fn enter(machine: &mut Machine, events: u64, bytes: u64) -> Ticket {
    let (ticket, admitted) = machine.reserve(NOW, ask(events, bytes));
    assert!(admitted, "no room for {events} events, {bytes} bytes in {machine:?}");
    ticket
}

fn queue(machine: &mut Machine, events: u64, bytes: u64) -> Ticket {
    let (ticket, admitted) = machine.reserve(NOW, ask(events, bytes));
    assert!(!admitted, "went straight through: {machine:?}");
    ticket
}

// B1
#[test]
fn zero_is_unbounded_for_each_unit_by_itself() {
    let mut machine = budget(0, 10, 0);
    enter(&mut machine, u64::MAX, 5);
    enter(&mut machine, u64::MAX, 5);
    queue(&mut machine, 1, 1);
    let mut machine = budget(10, 0, 0);
    enter(&mut machine, 10, u64::MAX);
    queue(&mut machine, 1, 1);
}

// B2
#[test]
fn nobody_goes_straight_through_past_one_who_waits() {
    let mut machine = budget(0, 10, 0);
    enter(&mut machine, 1, 6);
    queue(&mut machine, 1, 8);
    queue(&mut machine, 1, 1);
}

// B3
#[test]
fn the_line_is_first_come_first_served() {
    let mut machine = budget(0, 10, 0);
    let holder = enter(&mut machine, 1, 10);
    let line: Vec<_> = (0..3).map(|_| queue(&mut machine, 1, 5)).collect();
    assert_eq!(machine.leave(NOW, holder), line[..2]);
    assert_eq!(machine.leave(NOW, line[1]), line[2..]);
}

// B4: the cut is taken when admitted, not when queuing.
#[test]
fn an_ask_above_the_capacity_is_cut_when_it_is_admitted() {
    let mut machine = budget(0, 10, 0);
    let holder = enter(&mut machine, 1, 99);
    assert_eq!(machine.in_use().bytes, 10);
    let waiter = queue(&mut machine, 1, 99);
    machine.resize(NOW, Capacity { bytes: 50, ..Capacity::default() });
    machine.leave(NOW, holder);
    assert_eq!(machine.held(waiter).bytes, 50);
}

// B5
#[test]
fn with_nothing_in_flight_the_front_enters_through_a_closed_gate() {
    let mut machine = budget(0, 10, 1);
    machine.set_gate(NOW, false);
    let holder = enter(&mut machine, 1, 1);
    let waiter = queue(&mut machine, 1, 1);
    assert_eq!(machine.reason(), Some(Reason::Gate));
    assert_eq!(machine.leave(NOW, holder), [waiter]);
}

// B6
#[test]
fn an_opening_gate_lets_the_line_in() {
    let mut machine = budget(0, 10, 0);
    enter(&mut machine, 1, 1);
    machine.set_gate(NOW, false);
    let waiter = queue(&mut machine, 1, 1);
    assert_eq!(machine.set_gate(NOW, false), []);
    assert_eq!(machine.set_gate(NOW, true), [waiter]);
}

// B7
#[test]
fn a_dropped_waiter_no_longer_stands_in_the_way() {
    let mut machine = budget(0, 10, 0);
    enter(&mut machine, 1, 6);
    let large = queue(&mut machine, 1, 8);
    let small = queue(&mut machine, 1, 4);
    assert_eq!(machine.leave(NOW, large), [small]);
}

// B8
#[test]
fn a_lowered_capacity_takes_nothing_and_a_raised_one_lets_in() {
    let mut machine = budget(0, 10, 0);
    let holder = enter(&mut machine, 1, 10);
    machine.resize(NOW, Capacity { bytes: 4, ..Capacity::default() });
    assert_eq!(machine.in_use().bytes, 10);
    let waiter = queue(&mut machine, 1, 4);
    machine.trim(NOW, holder, Amount { events: 1, bytes: 1 });
    assert_eq!(machine.held(waiter), Amount::default());
    assert_eq!(machine.resize(NOW, Capacity { bytes: 5, ..Capacity::default() }), [waiter]);
}

// B9
#[test]
fn growing_never_passes_one_who_waits() {
    let mut machine = budget(0, 10, 0);
    let holder = enter(&mut machine, 1, 5);
    assert!(machine.grow(holder, Amount { events: 0, bytes: 2 }));
    assert!(!machine.grow(holder, Amount { events: 0, bytes: 4 }));
    let waiter = queue(&mut machine, 1, 9);
    assert!(!machine.grow(holder, Amount { events: 0, bytes: 1 }));
    machine.leave(NOW, waiter);
    assert!(machine.grow(holder, Amount { events: 0, bytes: 3 }));
}

// I2
#[test]
fn pages_in_flight_are_bounded_too() {
    let mut machine = budget(0, 0, 2);
    let holder = enter(&mut machine, 1, 1);
    enter(&mut machine, 1, 1);
    let waiter = queue(&mut machine, 1, 1);
    assert_eq!(machine.reason(), Some(Reason::Pages));
    assert_eq!(machine.leave(NOW, holder), [waiter]);
}

#[test]
fn what_is_trimmed_to_nothing_has_left() {
    let mut machine = budget(0, 10, 1);
    let holder = enter(&mut machine, 5, 5);
    let waiter = queue(&mut machine, 5, 5);
    assert_eq!(machine.trim(NOW, holder, Amount::default()), [waiter]);
    assert_eq!(machine.holders().len(), 1);
    assert_eq!(machine.leave(NOW, holder), []);
}

#[test]
fn an_ask_for_nothing_holds_something() {
    let mut machine = budget(1, 0, 0);
    let holder = enter(&mut machine, 0, 0);
    assert_eq!(machine.held(holder).events, 1);
    queue(&mut machine, 0, 0);
}

#[test]
fn who_returns_with_the_exact_size_enters_at_the_front() {
    let mut machine = budget(0, 10, 0);
    let holder = enter(&mut machine, 1, 6);
    queue(&mut machine, 1, 9);
    let (returned, admitted) = machine.reserve(NOW, Ask { front: true, ..ask(1, 8) });
    assert!(!admitted);
    assert_eq!(machine.leave(NOW, holder), [returned]);
    let (fits, admitted) = machine.reserve(NOW, Ask { front: true, ..ask(1, 2) });
    assert!(admitted && machine.held(fits).bytes == 2);
}
