//! Reading and fencing progress rows for many agents in one statement.
//!
//! When a daemon starts, thousands of agents want their position at once; each sends its request here, and what has piled up
//! while a statement ran goes into the next one.

use std::sync::Arc;

use bellwether_storage::{
    Database, Error, ErrorKind, FenceClaim, FenceOutcome, FenceRequest, Owner, Progress, ProgressKey, Result,
};
use tokio::sync::{mpsc, oneshot};

/// Requests of one statement.
const BATCH_MAX: usize = 1_000;

/// Statements spent on one batch that cannot be positioned as a whole, because somebody's open page blocks a row of it.
const SPLITS_MAX: u32 = 24;

/// What an agent asks for.
enum Request {
    Look { key: ProgressKey, reply: oneshot::Sender<Result<Option<Progress>>> },
    Fence { request: FenceRequest, reply: oneshot::Sender<Result<FenceOutcome>> },
}

/// Sends requests to the task of one database.
#[derive(Clone)]
pub(crate) struct Positions {
    requests: mpsc::Sender<Request>,
}

/// The task's end: see [`Positioner::run`].
pub(crate) struct Positioner {
    database: Arc<dyn Database>,
    owner: Owner,
    requests: mpsc::Receiver<Request>,
}

/// A desk for one database.
pub(crate) fn positions(database: Arc<dyn Database>, owner: Owner) -> (Positions, Positioner) {
    let (sender, requests) = mpsc::channel(BATCH_MAX);
    (Positions { requests: sender }, Positioner { database, owner, requests })
}

impl Positions {
    /// The progress row, a hint; `None` where there is none yet.
    pub(crate) async fn look(&self, key: ProgressKey) -> Result<Option<Progress>> {
        let (reply, answer) = oneshot::channel();
        self.send(Request::Look { key, reply }).await?;
        answer.await.unwrap_or_else(|_| Err(stopped()))
    }

    /// Positions through the fence.
    pub(crate) async fn fence(&self, key: ProgressKey, claim: FenceClaim) -> Result<FenceOutcome> {
        let (reply, answer) = oneshot::channel();
        self.send(Request::Fence { request: FenceRequest { key, claim }, reply }).await?;
        answer.await.unwrap_or_else(|_| Err(stopped()))
    }

    async fn send(&self, request: Request) -> Result<()> {
        self.requests.send(request).await.map_err(|_| stopped())
    }
}

impl Positioner {
    /// Answers requests until told to stop.
    pub(crate) async fn run(mut self) {
        let mut batch = Vec::new();
        while self.requests.recv_many(&mut batch, BATCH_MAX).await > 0 {
            let (mut looks, mut fences) = (Vec::new(), Vec::new());
            for request in batch.drain(..) {
                match request {
                    Request::Look { key, reply } => looks.push((key, reply)),
                    Request::Fence { request, reply } => fences.push((request, reply)),
                }
            }
            self.look(looks).await;
            self.fence(fences).await;
        }
    }

    async fn look(&self, looks: Vec<(ProgressKey, oneshot::Sender<Result<Option<Progress>>>)>) {
        if looks.is_empty() {
            return;
        }
        let keys: Vec<_> = looks.iter().map(|(key, _)| *key).collect();
        match self.database.progress(&keys).await {
            Ok(rows) => {
                for ((_, reply), row) in looks.into_iter().zip(rows) {
                    let _ = reply.send(Ok(row));
                }
            }
            Err(error) => {
                for (_, reply) in looks {
                    let _ = reply.send(Err(copy(&error)));
                }
            }
        }
    }

    /// Fences all; where one row blocks the rest, the halves by themselves, a bounded number of times.
    async fn fence(&self, fences: Vec<(FenceRequest, oneshot::Sender<Result<FenceOutcome>>)>) {
        let mut left = SPLITS_MAX;
        let mut parts = vec![fences];
        while let Some(mut part) = parts.pop() {
            if part.is_empty() {
                continue;
            }
            let requests: Vec<_> = part.iter().map(|(request, _)| *request).collect();
            left = left.saturating_sub(1);
            match self.database.fence(self.owner, &requests).await {
                Ok(outcomes) => {
                    for ((_, reply), outcome) in part.into_iter().zip(outcomes) {
                        let _ = reply.send(Ok(outcome));
                    }
                }
                Err(error) if error.kind() == ErrorKind::Unavailable && part.len() > 1 && left > 0 => {
                    let second = part.split_off(part.len() / 2);
                    parts.push(second);
                    parts.push(part);
                }
                Err(error) => {
                    for (_, reply) in part {
                        let _ = reply.send(Err(copy(&error)));
                    }
                }
            }
        }
    }
}

/// The same error for everybody in a batch.
fn copy(error: &Error) -> Error {
    Error::new(error.kind(), error.to_string())
}

fn stopped() -> Error {
    Error::unavailable("the daemon is stopping")
}
