//! The shell around one database's deciding writer: one loop that starts flights, and a way in for callers.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bellwether_storage::{Database, DatabaseNo, Error, Place, Result, TenantId, TenantNo};
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use super::flight;
use super::room::Taken;
use super::{Listeners, Room};
use crate::decide::{Append, Bounds, News, Reply, Writer};

/// What comes back with a reply: the caller's ear, and the room its append took.
#[derive(Debug)]
pub(crate) struct Token {
    reply: oneshot::Sender<Reply>,
    _taken: Taken,
}

/// A database's writer, running. Dropping it drains it.
#[derive(Debug)]
pub(crate) struct WriterHandle {
    shared: Arc<Shared>,
    room: Room,
    _drain_on_drop: DropGuard,
}

/// What the loop, its flights and the callers share.
pub(super) struct Shared {
    pub(super) database: Arc<dyn Database>,
    number: DatabaseNo,
    listeners: Arc<Listeners>,
    desk: Mutex<Desk>,
    wake: Notify,
    draining: CancellationToken,
    pub(super) tasks: TaskTracker,
}

/// Under one short lock, never held across an await.
struct Desk {
    writer: Writer<Token>,
    closed: bool,
}

/// One append on its way in.
pub(crate) struct Submission<'a> {
    pub(crate) tenant: TenantNo,
    pub(crate) id: &'a TenantId,
    pub(crate) place: Place,
    pub(crate) append: Append<()>,
}

impl WriterHandle {
    /// Starts the writer of a database.
    pub(crate) fn start(
        database: Arc<dyn Database>,
        number: DatabaseNo,
        bounds: Bounds,
        room: Room,
        listeners: Arc<Listeners>,
    ) -> Self {
        let draining = CancellationToken::new();
        let shared = Arc::new(Shared {
            database,
            number,
            listeners,
            desk: Mutex::new(Desk { writer: Writer::new(bounds), closed: false }),
            wake: Notify::new(),
            draining: draining.clone(),
            tasks: TaskTracker::new(),
        });
        shared.tasks.spawn(run(Arc::clone(&shared)));
        Self { shared, room, _drain_on_drop: draining.drop_guard() }
    }

    /// Hands an append in and waits for its reply.
    ///
    /// # Errors
    ///
    /// `Unavailable` when the store is closed; `Unknown` when the writer ended under it.
    ///
    /// # Cancel safety
    ///
    /// Not cancel safe once it is handed in: it goes on without its caller.
    pub(crate) async fn submit(&self, submission: Submission<'_>) -> Result<Reply> {
        let Submission { tenant, id, place, append } = submission;
        let taken = self.room.take(id, append.bytes).await;
        let (reply, answer) = oneshot::channel();
        {
            let mut desk = self.shared.desk();
            if desk.closed {
                return Err(closed());
            }
            desk.writer.queue(tenant, id, place, append.with_token(Token { reply, _taken: taken }));
        }
        self.shared.wake.notify_one();
        answer.await.map_err(|_| {
            Error::unknown("the writer ended before it answered")
                .fix("read the stream, or append again with the same append id")
        })
    }

    /// Takes no more appends, carries out those that were taken, and ends.
    pub(crate) async fn drain(&self) {
        self.shared.desk().closed = true;
        self.shared.draining.cancel();
        self.shared.tasks.close();
        self.shared.tasks.wait().await;
    }
}

impl Shared {
    fn desk(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reports to the deciding writer, passes on what it has to say, and lets the loop look again.
    pub(super) fn report<R>(&self, report: impl FnOnce(&mut Writer<Token>) -> R) -> R {
        let (result, news) = {
            let mut desk = self.desk();
            let result = report(&mut desk.writer);
            (result, desk.writer.news())
        };
        self.pass_on(news);
        self.wake.notify_one();
        result
    }

    fn pass_on(&self, news: Vec<News<Token>>) {
        for one in news {
            match one {
                News::Head { tenant, id, head } => self.listeners.tell(self.number, tenant, &id, head),
                // A caller that has gone away does not want to know.
                News::Reply(token, reply) => drop(token.reply.send(reply)),
            }
        }
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("database", &self.number).finish_non_exhaustive()
    }
}

/// How long a batch that would be small beside the one in flight waits for more appends.
const PATIENCE: Duration = Duration::from_millis(2);

/// Starts flights whenever something was handed in or came back, until the writer is drained.
async fn run(shared: Arc<Shared>) {
    let mut held_since: Option<Instant> = None;
    loop {
        let hurry = held_since.is_some_and(|since| since.elapsed() >= PATIENCE);
        let (orders, news, holds_back, idle) = {
            let mut desk = shared.desk();
            let writer = &mut desk.writer;
            let orders: Vec<_> =
                std::iter::from_fn(|| if hurry { writer.order_now() } else { writer.order() }).collect();
            (orders, writer.news(), writer.holds_back(), writer.is_idle())
        };
        held_since = if holds_back { held_since.or_else(|| Some(Instant::now())) } else { None };
        // Deciding alone can settle some: conflicts that a read has confirmed.
        shared.pass_on(news);
        for order in orders {
            shared.tasks.spawn(flight::carry_out(Arc::clone(&shared), order));
        }
        if idle && shared.draining.is_cancelled() {
            return;
        }
        tokio::select! {
            biased;
            () = shared.wake.notified() => {}
            () = shared.draining.cancelled(), if !shared.draining.is_cancelled() => {}
            () = tokio::time::sleep(PATIENCE), if held_since.is_some() => {}
        }
        // Callers that were just answered often come back at once: let them, so that their appends share the next commit.
        tokio::task::yield_now().await;
    }
}

fn closed() -> Error {
    Error::unavailable("the store is closed").fix("open it again")
}
