//! The order of waits: line < permit < budget < connection.
//!
//! Who waits for one of these holds nothing at or after it; so no two agents can wait for each other. Debug builds assert it
//! for every task; release builds compile to nothing. (A page shared by two agents, one of which held its budget while it
//! waited for its permit, was the deadlock that taught the rule.)
//!
//! What is held is booked to the task that acquired it, and stays booked there until it is dropped, wherever that happens.
//! Outside of a task (`block_on` on a plain thread) nothing is checked.

/// What an agent waits for on its way to a page, in the order in which it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Rung {
    /// The projection's single-file line.
    Line,
    /// A permit of the database.
    Permit,
    /// Room in the load budget.
    Budget,
    /// A connection.
    Connection,
}

/// Asserts, in debug builds, that this task may wait for the rung: that it holds nothing at or after it.
///
/// ```
/// use bellwether_daemon::wait_order::{self, Rung};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() { tokio::spawn(async {
/// wait_order::may_wait(Rung::Connection);
/// let connection = wait_order::hold(Rung::Connection);
/// // A second wait for a connection, or for anything before it, would panic here.
/// drop(connection);
/// wait_order::may_wait(Rung::Budget);
/// # }).await.unwrap(); }
/// ```
///
/// # Panics
///
/// In debug builds, if the task holds something at or after the rung.
#[track_caller]
pub fn may_wait(rung: Rung) {
    #[cfg(debug_assertions)]
    booked::may_wait(rung);
    let _ = rung;
}

/// Books the rung as held by this task until the guard is dropped.
#[must_use = "the rung counts as held only as long as this lives"]
pub fn hold(rung: Rung) -> Hold {
    let _ = rung;
    Hold {
        #[cfg(debug_assertions)]
        booking: booked::hold(rung),
    }
}

/// A rung that is held. See [`hold`].
#[derive(Debug)]
pub struct Hold {
    #[cfg(debug_assertions)]
    booking: Option<booked::Booking>,
}

#[cfg(debug_assertions)]
impl Drop for Hold {
    fn drop(&mut self) {
        if let Some(booking) = self.booking.take() {
            booked::release(booking);
        }
    }
}

#[cfg(debug_assertions)]
mod booked {
    use std::collections::BTreeMap;
    use std::sync::{Mutex, PoisonError};

    use hashbrown::HashMap;
    use tokio::task::Id;

    use super::Rung;

    pub(super) type Booking = (Id, Rung);

    static HELD: Mutex<Option<HashMap<Id, BTreeMap<Rung, u32>>>> = Mutex::new(None);

    fn with<T>(act: impl FnOnce(&mut HashMap<Id, BTreeMap<Rung, u32>>) -> T) -> T {
        act(HELD.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default())
    }

    #[track_caller]
    pub(super) fn may_wait(rung: Rung) {
        let Some(task) = tokio::task::try_id() else { return };
        let later =
            with(|held| held.get(&task).and_then(|rungs| rungs.last_key_value()).map(|(held, _)| *held));
        if let Some(later) = later.filter(|later| *later >= rung) {
            panic!("a task that holds a {later:?} waits for a {rung:?}; give the {later:?} back first");
        }
    }

    pub(super) fn hold(rung: Rung) -> Option<Booking> {
        let task = tokio::task::try_id()?;
        with(|held| *held.entry(task).or_default().entry(rung).or_default() += 1);
        Some((task, rung))
    }

    pub(super) fn release((task, rung): Booking) {
        with(|held| {
            let Some(rungs) = held.get_mut(&task) else { return };
            if let Some(count) = rungs.get_mut(&rung) {
                *count -= 1;
                if *count == 0 {
                    rungs.remove(&rung);
                }
            }
            if rungs.is_empty() {
                held.remove(&task);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::{Rung, hold, may_wait};

    async fn check(held: &'static [Rung], wanted: Rung) -> bool {
        let task = tokio::spawn(async move {
            let _held: Vec<_> = held.iter().map(|rung| hold(*rung)).collect();
            may_wait(wanted);
        });
        task.await.is_ok()
    }

    // I10
    #[tokio::test]
    #[cfg(debug_assertions)]
    async fn who_waits_holds_nothing_at_or_after_it() {
        assert!(check(&[], Rung::Line).await);
        assert!(check(&[Rung::Line, Rung::Permit], Rung::Budget).await);
        assert!(check(&[Rung::Line, Rung::Permit, Rung::Budget], Rung::Connection).await);
        assert!(!check(&[Rung::Budget], Rung::Permit).await);
        assert!(!check(&[Rung::Budget], Rung::Budget).await);
        assert!(!check(&[Rung::Connection], Rung::Budget).await);
    }

    // I10
    #[tokio::test]
    async fn what_was_dropped_elsewhere_is_no_longer_held() {
        let task = tokio::spawn(async {
            let held = hold(Rung::Budget);
            tokio::task::spawn_blocking(move || drop(held)).await.unwrap();
            may_wait(Rung::Permit);
        });
        task.await.unwrap();
    }
}
