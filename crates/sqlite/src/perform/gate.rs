//! The one writer, and the transaction that holds it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bellwether_storage::{Error, ErrorKind, Result};
use tokio::sync::oneshot;

use super::file::{File, Use};
use super::link::Link;
use crate::decide::turns::{Answer, Ticket, Turn, Turns};
use crate::error;

/// Between two questions for the lock that another process holds, where SQLite itself did not wait.
const ASK_AGAIN_AFTER: Duration = Duration::from_millis(5);

/// How long closing waits for the transaction in flight.
const CLOSE_WAIT: Duration = Duration::from_secs(10);

/// The one writer of a file, and the line before it.
pub(crate) struct Gate {
    file: Arc<File>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    turns: Turns,
    waiting: HashMap<Ticket, oneshot::Sender<Pass>>,
    /// The writer's connection while nobody writes; `None` before the first and after one that was given up.
    link: Option<Link>,
    closed: bool,
}

/// Why a transaction was not begun. Nothing happened.
#[derive(Debug)]
pub(crate) enum NotBegun {
    /// Another transaction, of this or another process, lasted longer than the caller waits.
    Busy,
    /// Anything else.
    Failed(Error),
}

impl From<NotBegun> for Error {
    fn from(reason: NotBegun) -> Self {
        match reason {
            NotBegun::Busy => {
                Error::unavailable("another transaction is writing to the file").fix("try again")
            }
            NotBegun::Failed(error) => error,
        }
    }
}

impl Gate {
    pub(crate) fn new(file: Arc<File>) -> Arc<Self> {
        Arc::new(Self { file, state: Mutex::default() })
    }

    /// Begins a transaction that writes, waiting for its turn and for other processes at most `wait` in all.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: a place in the line is given up, a transaction just begun is rolled back.
    pub(crate) async fn begin(self: &Arc<Self>, turn: Turn, wait: Duration) -> Result<Transaction, NotBegun> {
        let deadline = Instant::now() + wait;
        let pass = self.pass(turn, wait).await?;
        // Taken out before it is awaited on: a future dropped here closes the connection instead of leaving it half begun.
        let kept = self.state().link.take();
        let mut link = match kept {
            Some(link) => link,
            None => self.file.connect(Use::Write).await.map_err(NotBegun::Failed)?,
        };
        loop {
            match link.execute(sqlx::query("BEGIN IMMEDIATE")).await {
                Ok(_) => return Ok(Transaction { link: Some(link), pass }),
                Err(failed) if !error::is_busy(&failed) => return Err(NotBegun::Failed(error::of(failed))),
                Err(_) if Instant::now() >= deadline => {
                    self.state().link = Some(link);
                    return Err(NotBegun::Busy);
                }
                Err(_) => tokio::time::sleep(ASK_AGAIN_AFTER).await,
            }
        }
    }

    /// Lets nobody write any more and closes the connection.
    pub(crate) async fn close(self: &Arc<Self>) {
        self.state().closed = true;
        let Some(_pass) = self.wait_in_line(Turn::Short, CLOSE_WAIT).await else {
            tracing::warn!(
                "a transaction is still open {} s after the store was closed",
                CLOSE_WAIT.as_secs()
            );
            return;
        };
        let link = self.state().link.take();
        if let Some(link) = link {
            link.close().await;
        }
    }

    async fn pass(self: &Arc<Self>, turn: Turn, wait: Duration) -> Result<Pass, NotBegun> {
        if self.state().closed {
            return Err(NotBegun::Failed(closed()));
        }
        let pass = self.wait_in_line(turn, wait).await.ok_or(NotBegun::Busy)?;
        match self.state().closed {
            true => Err(NotBegun::Failed(closed())),
            false => Ok(pass),
        }
    }

    async fn wait_in_line(self: &Arc<Self>, turn: Turn, wait: Duration) -> Option<Pass> {
        let (ticket, called) = {
            let mut state = self.state();
            match state.turns.ask(turn) {
                Answer::Go => return Some(Pass { gate: Arc::clone(self) }),
                Answer::Wait(ticket) => {
                    let (call, called) = oneshot::channel();
                    state.waiting.insert(ticket, call);
                    (ticket, called)
                }
            }
        };
        let _in_line = InLine { gate: self, ticket };
        // A pass that arrives while this gives up is dropped with the channel and goes to the next in line.
        tokio::time::timeout(wait, called).await.ok()?.ok()
    }

    fn end_turn(self: &Arc<Self>) {
        let next = {
            let mut state = self.state();
            let ticket = state.turns.end();
            ticket.and_then(|ticket| state.waiting.remove(&ticket))
        };
        if let Some(call) = next {
            // Refused when the waiter has just given up: the pass comes back, is dropped, and calls the one after it.
            drop(call.send(Pass { gate: Arc::clone(self) }));
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it holds the lock; if it did, the line itself is still whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) fn closed() -> Error {
    Error::unavailable("the store is closed").fix("open it again")
}

/// Gives up a place in the line when its waiter is dropped.
struct InLine<'a> {
    gate: &'a Arc<Gate>,
    ticket: Ticket,
}

impl Drop for InLine<'_> {
    fn drop(&mut self) {
        let mut state = self.gate.state();
        if state.turns.withdraw(self.ticket) {
            state.waiting.remove(&self.ticket);
        }
    }
}

/// The right to write. Dropping it calls the next in line.
#[derive(Debug)]
struct Pass {
    gate: Arc<Gate>,
}

impl std::fmt::Debug for Gate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gate").finish_non_exhaustive()
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        self.gate.end_turn();
    }
}

/// A transaction that writes. Dropping it gives its connection up, which rolls back.
pub(crate) struct Transaction {
    /// Closed before the pass is given on. `None` once it went back to the gate.
    link: Option<Link>,
    pass: Pass,
}

impl Transaction {
    /// Its connection.
    pub(crate) fn link(&mut self) -> &mut Link {
        self.link.as_mut().expect("a transaction keeps its connection until it ends")
    }

    /// Commits.
    ///
    /// # Errors
    ///
    /// `Unknown` when nobody knows whether it happened; any other kind: nothing happened.
    ///
    /// # Cancel safety
    ///
    /// Not cancel safe: a dropped future may or may not have committed.
    pub(crate) async fn commit(mut self) -> Result<()> {
        match self.link().execute(sqlx::query("COMMIT")).await {
            Ok(_) => {
                self.give_back();
                Ok(())
            }
            Err(failed) => {
                let failed = error::of_commit(failed);
                if failed.kind() != ErrorKind::Unknown {
                    self.roll_back().await;
                }
                Err(failed)
            }
        }
    }

    /// Rolls back. A connection on which that fails is given up, which comes to the same.
    pub(crate) async fn roll_back(mut self) {
        match self.link().execute(sqlx::query("ROLLBACK")).await {
            Ok(_) => self.give_back(),
            Err(error) => tracing::debug!(%error, "gave a connection up that could not roll back"),
        }
    }

    /// Commits what went well, rolls back what did not.
    pub(crate) async fn end<T>(self, outcome: Result<T>) -> Result<T> {
        match outcome {
            Ok(value) => {
                self.commit().await?;
                Ok(value)
            }
            Err(failed) => {
                self.roll_back().await;
                Err(failed)
            }
        }
    }

    fn give_back(&mut self) {
        self.pass.gate.state().link = self.link.take();
    }
}
