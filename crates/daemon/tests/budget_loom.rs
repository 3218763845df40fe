//! Every interleaving of the budget's desk, explored by loom.
//!
//! `cargo test -p bellwether-daemon --test budget_loom` takes some ten seconds, a little less with `--release`.
//!
//! The desk is compiled here from the very files the crate is made of, with loom's lock and reference count in the place of the
//! standard library's: the module `sync` below is all that differs. So nothing else has to be built for loom, no flag is
//! needed, and an ordinary test run includes this.
//!
//! A lost wake-up shows as a deadlock, which loom reports. Each scenario ends by looking for anything left behind. The faulty
//! machines of the property test sit here too: every fault that a scenario is there for must make it fail.

#![allow(dead_code, unreachable_pub)] // This small part of the crate uses and exports less than the whole.

#[path = "../src/decide"]
mod decide {
    pub(crate) mod budget;
    pub(crate) mod budget_faults;
    pub(crate) mod line;
}

#[path = "../src/perform"]
mod perform {
    pub(crate) mod desk;
    pub(crate) mod sync {
        pub(crate) use loom::sync::{Arc, Mutex};
    }
}

use std::future::poll_fn;
use std::pin::Pin;
use std::process::Command;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use bellwether_storage::DatabaseNo;
use loom::future::block_on;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use loom::thread;

use decide::budget::{AgentNo, Amount, Ask, Capacity};
use decide::budget_faults::{FAULTS, Fault, Faulty};
use perform::desk::{Desk, Place, Waiting};

fn desk(bytes: u64, fault: Fault) -> Desk<Faulty> {
    let capacity = Capacity { events: 0, bytes, pages: 0 };
    Desk::new(Faulty::new(capacity, fault), Instant::now, true)
}

fn reserve(desk: &Desk<Faulty>, bytes: u64) -> Waiting<Faulty> {
    desk.reserve(Ask { database: DatabaseNo(0), agent: AgentNo(0), events: 1, bytes, front: false })
}

fn poll_once(waiting: &mut Waiting<Faulty>) -> Option<Place<Faulty>> {
    match Future::poll(Pin::new(waiting), &mut Context::from_waker(Waker::noop())) {
        Poll::Ready(place) => Some(place),
        Poll::Pending => None,
    }
}

/// Held at once, and not waited for.
fn hold(desk: &Desk<Faulty>, bytes: u64) -> Place<Faulty> {
    poll_once(&mut reserve(desk, bytes)).expect("there is room")
}

/// In line, behind what is held.
fn queue(desk: &Desk<Faulty>, bytes: u64) -> Waiting<Faulty> {
    let mut waiting = reserve(desk, bytes);
    assert!(poll_once(&mut waiting).is_none(), "went straight through");
    waiting
}

fn nothing_is_left(desk: &Desk<Faulty>) {
    desk.look(|faulty| {
        assert_eq!(faulty.machine.in_use(), Amount::default());
        assert_eq!((faulty.machine.holders().len(), faulty.machine.waiting().count()), (0, 0));
    });
}

/// Three agents share one place.
fn agents_take_turns(fault: Fault) {
    let (desk, inside) = (desk(1, fault), Arc::new(AtomicUsize::new(0)));
    let agent = |desk: Desk<Faulty>, inside: Arc<AtomicUsize>| {
        move || {
            let place = block_on(reserve(&desk, 1));
            assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two in a budget for one");
            inside.fetch_sub(1, Ordering::SeqCst);
            drop(place);
        }
    };
    let others: Vec<_> = (0..2).map(|_| thread::spawn(agent(desk.clone(), inside.clone()))).collect();
    agent(desk.clone(), inside)();
    others.into_iter().for_each(|other| other.join().unwrap());
    nothing_is_left(&desk);
}

/// A future is dropped in line, or just admitted, or before it asked: whoever comes after it still enters.
fn a_dropped_future_leaves_nothing_behind(fault: Fault) {
    let desk = desk(1, fault);
    let held = hold(&desk, 1);
    let gives_up = thread::spawn({
        let desk = desk.clone();
        move || drop(poll_once(&mut reserve(&desk, 1)))
    });
    let waits = thread::spawn({
        let desk = desk.clone();
        move || drop(block_on(reserve(&desk, 1)))
    });
    drop(held);
    gives_up.join().unwrap();
    waits.join().unwrap();
    nothing_is_left(&desk);
}

/// Who stands in the way of a smaller ask is dropped: the smaller one enters beside what is held.
fn a_dropped_waiter_lets_in_who_stood_behind(fault: Fault) {
    let desk = desk(2, fault);
    let held = hold(&desk, 1);
    let large = queue(&desk, 2);
    let small = thread::spawn({
        let desk = desk.clone();
        move || drop(block_on(reserve(&desk, 1)))
    });
    drop(large);
    small.join().unwrap();
    drop(held);
    nothing_is_left(&desk);
}

/// A page turns out smaller than it asked for: the next enters beside it.
fn trimming_lets_in(fault: Fault) {
    let desk = desk(2, fault);
    let held = hold(&desk, 2);
    let next = thread::spawn({
        let desk = desk.clone();
        move || drop(block_on(reserve(&desk, 1)))
    });
    held.trim(Amount { events: 1, bytes: 1 });
    next.join().unwrap();
    drop(held);
    nothing_is_left(&desk);
}

/// The gate opens while somebody holds: the line enters then, and not before.
fn an_opening_gate_lets_in(fault: Fault) {
    let (desk, opened) = (desk(2, fault), Arc::new(AtomicBool::new(false)));
    let held = hold(&desk, 1);
    desk.set_gate(false);
    let next = thread::spawn({
        let (desk, opened) = (desk.clone(), opened.clone());
        move || {
            let place = block_on(reserve(&desk, 1));
            assert!(opened.load(Ordering::SeqCst), "entered through a closed gate");
            drop(place);
        }
    });
    opened.store(true, Ordering::SeqCst);
    desk.set_gate(true);
    next.join().unwrap();
    drop(held);
    nothing_is_left(&desk);
}

/// The capacity is raised while somebody holds.
fn a_raised_capacity_lets_in(fault: Fault) {
    let desk = desk(1, fault);
    let held = hold(&desk, 1);
    let next = thread::spawn({
        let desk = desk.clone();
        move || drop(block_on(reserve(&desk, 1)))
    });
    desk.resize(Capacity { events: 0, bytes: 2, pages: 0 });
    next.join().unwrap();
    drop(held);
    nothing_is_left(&desk);
}

/// A newcomer that would fit comes after the one that waits; and a future that moved to another task is woken there.
fn nobody_is_passed(fault: Fault) {
    let (desk, served) = (desk(2, fault), Arc::new(AtomicBool::new(false)));
    let held = hold(&desk, 1);
    let mut first = queue(&desk, 2);
    let first = thread::spawn({
        let served = served.clone();
        move || {
            let place = block_on(poll_fn(|cx| Pin::new(&mut first).poll(cx)));
            served.store(true, Ordering::SeqCst);
            drop(place);
        }
    });
    let newcomer = thread::spawn({
        let desk = desk.clone();
        move || {
            let place = block_on(reserve(&desk, 1));
            assert!(served.load(Ordering::SeqCst), "passed one who waits");
            drop(place);
        }
    });
    drop(held);
    first.join().unwrap();
    newcomer.join().unwrap();
    nothing_is_left(&desk);
}

/// Who becomes the front of the line learns of it, to watch over memory, while everything else stands still.
fn the_front_learns_that_it_is_the_front(fault: Fault) {
    let desk = desk(1, fault);
    let held = hold(&desk, 1);
    let front = queue(&desk, 1);
    let mut next = queue(&desk, 1);
    let next = thread::spawn(move || {
        block_on(poll_fn(|cx| match Pin::new(&mut next).poll(cx) {
            Poll::Pending if next.is_front() => Poll::Ready(()),
            Poll::Pending => Poll::Pending,
            Poll::Ready(_) => panic!("entered a full budget"),
        }));
    });
    drop(front);
    next.join().unwrap();
    drop(held);
    nothing_is_left(&desk);
}

/// Names the fault that the scenarios of this process run with.
const FAULT: &str = "BELLWETHER_BUDGET_FAULT";

/// Explores the scenario with up to three preemptions, more than any known race of so few steps needs.
fn explore(scenario: fn(Fault)) {
    let wanted = std::env::var(FAULT).ok();
    let fault =
        wanted.map(|name| FAULTS.into_iter().find(|fault| format!("{fault:?}") == name).expect("a fault"));
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(move || scenario(fault.unwrap_or(Fault::None)));
}

/// Runs the scenario with the fault; says whether it failed, and failed with these words. In a process of its own: a
/// deadlock that loom finds ends the process, since the threads it has unwound still hold parts of the model.
fn notices(scenario: &str, fault: Fault, words: &str) -> bool {
    let child = Command::new(std::env::current_exe().expect("the path of this test"))
        .args(["--exact", "--nocapture", &format!("every_interleaving::{scenario}")])
        .env(FAULT, format!("{fault:?}"))
        .env("RUST_BACKTRACE", "0")
        .output()
        .expect("this test starts again");
    let said = [child.stdout, child.stderr].concat();
    !child.status.success() && String::from_utf8_lossy(&said).contains(words)
}

// T5, B1-B9 across threads.
mod every_interleaving {
    use super::explore;

    #[test]
    fn agents_take_turns() {
        explore(super::agents_take_turns);
    }

    #[test]
    fn a_dropped_future_leaves_nothing_behind() {
        explore(super::a_dropped_future_leaves_nothing_behind);
    }

    #[test]
    fn a_dropped_waiter_lets_in_who_stood_behind() {
        explore(super::a_dropped_waiter_lets_in_who_stood_behind);
    }

    #[test]
    fn trimming_lets_in() {
        explore(super::trimming_lets_in);
    }

    #[test]
    fn an_opening_gate_lets_in() {
        explore(super::an_opening_gate_lets_in);
    }

    #[test]
    fn a_raised_capacity_lets_in() {
        explore(super::a_raised_capacity_lets_in);
    }

    #[test]
    fn nobody_is_passed() {
        explore(super::nobody_is_passed);
    }

    #[test]
    fn the_front_learns_that_it_is_the_front() {
        explore(super::the_front_learns_that_it_is_the_front);
    }
}

#[test]
fn the_scenarios_notice_every_fault_they_are_there_for() {
    let expected = [
        ("agents_take_turns", Fault::LeakOnDrop, "deadlock"),
        ("a_dropped_future_leaves_nothing_behind", Fault::LeakOnDrop, "deadlock"),
        ("a_dropped_waiter_lets_in_who_stood_behind", Fault::LostWakeUp, "deadlock"),
        ("trimming_lets_in", Fault::NoTrim, "deadlock"),
        ("trimming_lets_in", Fault::LostWakeUpOnTrim, "deadlock"),
        ("an_opening_gate_lets_in", Fault::GateIgnored, "entered through a closed gate"),
        ("nobody_is_passed", Fault::Barging, "passed one who waits"),
    ];
    let passed: Vec<_> =
        expected.into_iter().filter(|(scenario, fault, words)| !notices(scenario, *fault, words)).collect();
    assert!(passed.is_empty(), "went unnoticed: {passed:?}");
}
