//! The single-file line of a projection: build, commit, back of the line.
//!
//! As a setting, all agents of a projection on a node, over all databases, work on their pages one after the other. It is the
//! simplest way to bound what a heavy projection costs, and the slowest; the load budget is the default.

use std::fmt;

use bellwether_storage::DatabaseNo;

use super::desk::Place;
use super::permits::PermitStatus;
use super::turns::Turns;
use super::wait_order::{self, Hold, Rung};
use crate::decide::budget::{AgentNo, Machine};

/// The line of one projection. Clones are the same line.
///
/// ```
/// use bellwether_daemon::{AgentNo, Line};
/// use bellwether_storage::DatabaseNo;
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let line = Line::single_file();
/// let turn = line.turn(DatabaseNo(0), AgentNo(1)).await;
/// assert_eq!(line.status().in_use, 1);
/// drop(turn); // after the commit; the next turn is at the back of the line
/// # }
/// ```
#[derive(Clone)]
pub struct Line {
    turns: Turns,
}

impl Line {
    /// One page at a time.
    pub fn single_file() -> Line {
        Line { turns: Turns::new(1) }
    }

    /// No line: every turn is granted at once.
    pub fn unbounded() -> Line {
        Line { turns: Turns::new(0) }
    }

    /// Waits for the agent's turn, first come, first served. Take it before the permit.
    ///
    /// # Cancel safety
    ///
    /// Safe: a dropped future has left the line, or given its turn back.
    pub async fn turn(&self, database: DatabaseNo, agent: AgentNo) -> Turn {
        wait_order::may_wait(Rung::Line);
        Turn { _place: self.turns.take(database, agent).await, _held: wait_order::hold(Rung::Line) }
    }

    /// Who has the turn, and who waits. A capacity of zero says that there is no line.
    pub fn status(&self) -> PermitStatus {
        self.turns.status()
    }
}

impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.status().fmt(f)
    }
}

/// An agent's turn in its projection's line. Dropping it lets the next one.
#[must_use = "the next agent has its turn as soon as this is dropped"]
pub struct Turn {
    _place: Place<Machine>,
    _held: Hold,
}

impl fmt::Debug for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Turn").finish_non_exhaustive()
    }
}
