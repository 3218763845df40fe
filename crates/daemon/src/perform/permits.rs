//! Permits: how many pages of one database may be in flight.
//!
//! A page takes its database's permit before it asks the budget for room, and holds it to the commit. So permits bound the
//! connections a database sees, and an agent that waits for a slow database holds none of the room that others need.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use bellwether_storage::DatabaseNo;

use super::desk::Place;
use super::turns::Turns;
use super::wait_order::{self, Hold, Rung};
use crate::decide::budget::{AgentNo, Machine};

/// Pages in flight per database by default. More gain nothing on a small database and cost connections on all.
pub const PERMITS_PER_DATABASE_DEFAULT: u64 = 4;

/// The permits of all databases of a store.
///
/// ```
/// use bellwether_daemon::{AgentNo, Permits};
/// use bellwether_storage::DatabaseNo;
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let permits = Permits::new(4);
/// permits.resize(DatabaseNo(7), 1);                       // this database stands fewer
///
/// let permit = permits.acquire(DatabaseNo(7), AgentNo(1)).await;
/// assert_eq!(permits.status(DatabaseNo(7)).in_use, 1);
/// drop(permit);                                           // after the commit
/// assert_eq!(permits.status(DatabaseNo(7)).in_use, 0);
/// # }
/// ```
pub struct Permits {
    default: u64,
    databases: Mutex<BTreeMap<DatabaseNo, Turns>>,
}

/// The permits of one database at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PermitStatus {
    /// Permits that are held.
    pub in_use: u64,
    /// How many there are; zero is unbounded.
    pub capacity: u64,
    /// Who waits, front first.
    pub waiting: Vec<AgentNo>,
}

impl Permits {
    /// So many permits for every database; zero is unbounded.
    pub fn new(per_database: u64) -> Permits {
        Permits { default: per_database, databases: Mutex::new(BTreeMap::new()) }
    }

    /// Waits for a permit of the database, first come, first served.
    ///
    /// # Cancel safety
    ///
    /// Safe: a dropped future has left the line, or given its permit back.
    pub async fn acquire(&self, database: DatabaseNo, agent: AgentNo) -> Permit {
        wait_order::may_wait(Rung::Permit);
        let turn = self.turns(database).take(database, agent);
        Permit { _place: turn.await, _held: wait_order::hold(Rung::Permit) }
    }

    /// Sets how many permits this database has; zero is unbounded. Fewer than are held take effect as those are given back.
    pub fn resize(&self, database: DatabaseNo, permits: u64) {
        self.turns(database).resize(permits);
    }

    /// How the database's permits stand.
    pub fn status(&self, database: DatabaseNo) -> PermitStatus {
        self.turns(database).status()
    }

    fn turns(&self, database: DatabaseNo) -> Turns {
        let mut databases = self.databases.lock().unwrap_or_else(PoisonError::into_inner);
        databases.entry(database).or_insert_with(|| Turns::new(self.default)).clone()
    }
}

impl fmt::Debug for Permits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let databases = self.databases.lock().unwrap_or_else(PoisonError::into_inner);
        f.debug_map().entries(databases.iter().map(|(database, turns)| (database, turns.status()))).finish()
    }
}

/// A page of the database may be in flight. Dropping it lets the next one.
#[must_use = "the next page may start as soon as this is dropped"]
pub struct Permit {
    _place: Place<Machine>,
    _held: Hold,
}

impl fmt::Debug for Permit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permit").finish_non_exhaustive()
    }
}
