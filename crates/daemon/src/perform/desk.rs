//! The desk where reservations are asked for and handed out: the async side of [`Rules`].
//!
//! One short lock around the machine, and a waker per task that waits. The desk makes no choices: it passes every operation on
//! and tells those whom the machine admitted. Two promises are its own, and checked under loom from this very file:
//!
//! * **No lost wake-up.** A task that was admitted is woken, however the admission came about, and however its waiting races
//!   with it.
//! * **Nothing left behind.** A future that is dropped leaves the line, also when it was admitted already and has not been
//!   polled since; a place that is dropped gives everything back. Either way the line is looked at again.
//!
//! Wakers are called, and dropped, after the lock is released: either may run code that comes back to the desk.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::PoisonError;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use super::sync::{Arc, Mutex};
use crate::decide::budget::{Amount, Ask, Capacity, Rules};
use crate::decide::line::Ticket;

/// A desk, shared by all who ask at it.
pub(crate) struct Desk<R> {
    shared: Arc<Shared<R>>,
}

impl<R> Clone for Desk<R> {
    fn clone(&self) -> Desk<R> {
        Desk { shared: self.shared.clone() }
    }
}

struct Shared<R> {
    state: Mutex<State<R>>,
    clock: fn() -> Instant,
    start: Instant,
    front_watches: bool,
}

struct State<R> {
    rules: R,
    waits: BTreeMap<Ticket, Wait>,
    front: Option<Ticket>,
}

/// How it stands with a future that was not admitted at once.
enum Wait {
    InLine(Waker),
    Admitted(Duration),
}

impl<R: Rules> Desk<R> {
    /// A desk over the rules. With `front_watches`, a task is also woken when it becomes the front of the line, so that it
    /// can [watch](Waiting::is_front) over whatever the line depends on.
    pub(crate) fn new(rules: R, clock: fn() -> Instant, front_watches: bool) -> Desk<R> {
        let state = Mutex::new(State { rules, waits: BTreeMap::new(), front: None });
        Desk { shared: Arc::new(Shared { state, clock, start: clock(), front_watches }) }
    }

    /// Asks for room; nothing happens before the future is polled.
    pub(crate) fn reserve(&self, ask: Ask) -> Waiting<R> {
        Waiting { desk: self.clone(), stage: Stage::Asks(ask) }
    }

    /// See [`Rules::resize`].
    pub(crate) fn resize(&self, capacity: Capacity) {
        self.act(None, |rules, now| rules.resize(now, capacity));
    }

    /// See [`Rules::set_gate`].
    pub(crate) fn set_gate(&self, open: bool) {
        self.act(None, |rules, now| rules.set_gate(now, open));
    }

    /// Looks at the rules under the lock; keep it short.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&R) -> T) -> T {
        look(&self.lock().rules)
    }

    /// The moment that lies so long after the desk's start.
    pub(crate) fn moment(&self, since: Duration) -> Instant {
        self.shared.start + since
    }

    /// Time since the desk's start.
    pub(crate) fn now(&self) -> Duration {
        (self.shared.clock)().saturating_duration_since(self.shared.start)
    }

    /// Does something that may admit others, and wakes those.
    fn act(&self, gone: Option<Ticket>, operation: impl FnOnce(&mut R, Duration) -> Vec<Ticket>) {
        let now = self.now();
        let mut state = self.lock();
        let forgotten = gone.and_then(|ticket| state.waits.remove(&ticket));
        let admitted = operation(&mut state.rules, now);
        let mut woken = Vec::new();
        for ticket in admitted {
            if let Some(wait) = state.waits.get_mut(&ticket)
                && let Wait::InLine(waker) = std::mem::replace(wait, Wait::Admitted(now))
            {
                woken.push(waker);
            }
        }
        if self.shared.front_watches {
            let front = state.rules.front();
            if front != state.front
                && let Some(Wait::InLine(waker)) = front.and_then(|front| state.waits.get(&front))
            {
                woken.push(waker.clone());
            }
            state.front = front;
        }
        drop(state);
        // Even dropping a waker may run code of others that comes back to this desk.
        drop(forgotten);
        woken.into_iter().for_each(Waker::wake);
    }

    // A panic inside the machine poisons the lock. What it left may be off by that one operation, but to refuse every later one
    // would turn a failed page into a standstill of the node.
    fn lock(&self) -> impl std::ops::DerefMut<Target = State<R>> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A reservation on its way. Dropping it leaves nothing behind.
pub(crate) struct Waiting<R: Rules> {
    desk: Desk<R>,
    stage: Stage,
}

enum Stage {
    Asks(Ask),
    InLine(Ticket),
    Done,
}

impl<R: Rules> Waiting<R> {
    /// Whether this one waits, and is the front of the line.
    pub(crate) fn is_front(&self) -> bool {
        match self.stage {
            Stage::InLine(ticket) => self.desk.look(|rules| rules.front()) == Some(ticket),
            Stage::Asks(_) | Stage::Done => false,
        }
    }

    fn place(&mut self, ticket: Ticket, since: Duration) -> Poll<Place<R>> {
        self.stage = Stage::Done;
        Poll::Ready(Place { desk: self.desk.clone(), ticket, since })
    }
}

// Nothing in it is ever pinned: the ticket is the reservation, not the address.
impl<R: Rules> Unpin for Waiting<R> {}

impl<R: Rules> Future for Waiting<R> {
    type Output = Place<R>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Place<R>> {
        let desk = self.desk.clone();
        match self.stage {
            Stage::Asks(ask) => {
                let now = desk.now();
                let mut state = desk.lock();
                let (ticket, admitted) = state.rules.reserve(now, ask);
                if admitted {
                    drop(state);
                    return self.place(ticket, now);
                }
                state.waits.insert(ticket, Wait::InLine(cx.waker().clone()));
                state.front = state.rules.front();
                self.stage = Stage::InLine(ticket);
                Poll::Pending
            }
            Stage::InLine(ticket) => {
                let mut state = desk.lock();
                match state.waits.remove(&ticket) {
                    Some(Wait::Admitted(since)) => {
                        drop(state);
                        self.place(ticket, since)
                    }
                    Some(Wait::InLine(waker)) if waker.will_wake(cx.waker()) => {
                        state.waits.insert(ticket, Wait::InLine(waker));
                        Poll::Pending
                    }
                    Some(Wait::InLine(outdated)) => {
                        state.waits.insert(ticket, Wait::InLine(cx.waker().clone()));
                        drop(state);
                        drop(outdated);
                        Poll::Pending
                    }
                    None => unreachable!("who waits is known to the desk until the place is handed out"),
                }
            }
            Stage::Done => panic!("a reservation was polled after it was handed out"),
        }
    }
}

impl<R: Rules> Drop for Waiting<R> {
    fn drop(&mut self) {
        if let Stage::InLine(ticket) = self.stage {
            // In line or admitted and not yet collected: both leave the same way.
            self.desk.act(Some(ticket), |rules, now| rules.leave(now, ticket));
        }
    }
}

/// Room that is held; dropping it gives everything back.
pub(crate) struct Place<R: Rules> {
    desk: Desk<R>,
    ticket: Ticket,
    since: Duration,
}

impl<R: Rules> Place<R> {
    /// See [`Rules::trim`].
    pub(crate) fn trim(&self, to: Amount) {
        self.desk.act(None, |rules, now| rules.trim(now, self.ticket, to));
    }

    /// See [`Rules::grow`].
    pub(crate) fn grow(&self, by: Amount) -> bool {
        self.desk.lock().rules.grow(self.ticket, by)
    }

    /// What is held now.
    pub(crate) fn held(&self) -> Amount {
        self.desk.look(|rules| rules.held(self.ticket))
    }

    /// The moment it was admitted.
    pub(crate) fn since(&self) -> Instant {
        self.desk.moment(self.since)
    }
}

impl<R: Rules> Drop for Place<R> {
    fn drop(&mut self) {
        self.desk.act(None, |rules, now| rules.leave(now, self.ticket));
    }
}
