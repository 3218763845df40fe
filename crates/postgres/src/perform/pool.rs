//! A small pool of connections for one purpose.
//!
//! Our own, because two things matter that a general pool does not do: each connection carries the identity of the server it
//! was made to, and a connection in doubt is closed rather than repaired.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bellwether_storage::{Counters, Error, Result, ServerIdentity, Timestamp};
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{Connection, Row};
use tokio::sync::Semaphore;

use crate::error;
use crate::perform::link::Link;
use crate::sql;

/// A connection unused for longer is asked whether it still lives before it is trusted with a statement: after a restart of
/// the server, an append should meet a refused connection (nothing happened) and not a broken one (nobody knows).
const TRUSTED_IDLE: Duration = Duration::from_secs(1);

/// Statements of one handle, counted over all its pools.
#[derive(Default)]
pub(crate) struct Counted {
    statements: AtomicU64,
    discovery_reads: AtomicU64,
}

impl Counted {
    pub(crate) fn statement(&self) {
        self.statements.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn discovery_read(&self) {
        self.discovery_reads.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn so_far(&self) -> Counters {
        Counters {
            statements: self.statements.load(Ordering::Relaxed),
            discovery_reads: self.discovery_reads.load(Ordering::Relaxed),
        }
    }
}

/// Limits of a pool.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) connections: u32,
    pub(crate) acquire: Duration,
    pub(crate) connect: Duration,
    pub(crate) idle: Duration,
    pub(crate) statement: Duration,
}

/// A connection that nobody uses.
pub(crate) struct Idle {
    pub(crate) connection: PgConnection,
    pub(crate) identity: Arc<ServerIdentity>,
    pub(crate) backend: i32,
    pub(crate) since: Instant,
}

pub(crate) struct Pool {
    purpose: &'static str,
    options: PgConnectOptions,
    limits: Limits,
    slots: Arc<Semaphore>,
    /// Oldest first; taken from the end, so that what is not needed ages at the front.
    idle: Mutex<Vec<Idle>>,
    closed: AtomicBool,
    counted: Arc<Counted>,
}

impl Pool {
    pub(crate) fn new(
        purpose: &'static str,
        options: PgConnectOptions,
        limits: Limits,
        counted: Arc<Counted>,
    ) -> Arc<Self> {
        Arc::new(Self {
            purpose,
            options,
            limits,
            slots: Arc::new(Semaphore::new(limits.connections as usize)),
            idle: Mutex::default(),
            closed: AtomicBool::new(false),
            counted,
        })
    }

    pub(crate) fn statement_timeout(&self) -> Duration {
        self.limits.statement
    }

    pub(crate) fn counted(&self) -> &Counted {
        &self.counted
    }

    /// A connection, in the order of asking.
    ///
    /// # Errors
    ///
    /// `Unavailable`, or `Rejected` when user, password or database are wrong: nothing was sent.
    pub(crate) async fn acquire(self: &Arc<Self>) -> Result<Link> {
        self.acquire_from(None).await
    }

    /// A connection to this server, if one is named: kept ones that belong to another life of it are closed. A new one may still
    /// reach another server, which the caller finds out.
    ///
    /// # Errors
    ///
    /// As [`acquire`](Pool::acquire).
    pub(crate) async fn acquire_from(self: &Arc<Self>, server: Option<&ServerIdentity>) -> Result<Link> {
        self.still_open()?;
        let slot = tokio::time::timeout(self.limits.acquire, Arc::clone(&self.slots).acquire_owned());
        let permit = match slot.await {
            Ok(Ok(permit)) => permit,
            Ok(Err(_closed)) => return Err(closed()),
            Err(_elapsed) => {
                return Err(Error::unavailable(format!(
                    "none of the {} {} connections was free within {} s",
                    self.limits.connections,
                    self.purpose,
                    self.limits.acquire.as_secs_f32()
                ))
                .fix("try again, or allow more connections"));
            }
        };
        while let Some(mut idle) = self.take() {
            if server.is_some_and(|server| *server != *idle.identity) {
                continue;
            }
            if idle.since.elapsed() < TRUSTED_IDLE || self.lives(&mut idle.connection).await {
                return Ok(Link::new(idle, Arc::clone(self), permit));
            }
        }
        let fresh = self.connect().await?;
        Ok(Link::new(fresh, Arc::clone(self), permit))
    }

    async fn lives(&self, connection: &mut PgConnection) -> bool {
        matches!(tokio::time::timeout(self.limits.connect, connection.ping()).await, Ok(Ok(())))
    }

    /// A new connection, with the identity of its server.
    pub(crate) async fn connect(&self) -> Result<Idle> {
        let connecting = async {
            let mut connection = PgConnection::connect_with(&self.options).await?;
            self.counted.statement();
            let row = sqlx::query(sql::SERVER_IDENTITY).fetch_one(&mut connection).await?;
            Ok::<_, sqlx::Error>((read_identity(&row)?, row.try_get(3)?, connection))
        };
        let connected = tokio::time::timeout(self.limits.connect, connecting).await.map_err(|_elapsed| {
            Error::unavailable(format!("connecting took longer than {} s", self.limits.connect.as_secs_f32()))
                .fix("check that the server runs and can be reached")
        })?;
        let (identity, backend, connection) = connected.map_err(|refused| match refused {
            // Nothing was asked yet, so whatever went wrong, nothing happened.
            sqlx::Error::Database(_) => error::nothing_happened(refused),
            other => Error::unavailable(format!("cannot connect to postgresql: {other}"))
                .fix("check that the server runs and can be reached")
                .source(other),
        })?;
        tracing::debug!(purpose = self.purpose, backend, %identity, "connected");
        Ok(Idle { connection, identity: Arc::new(identity), backend, since: Instant::now() })
    }

    pub(crate) fn give_back(&self, idle: Idle) {
        if !self.closed.load(Ordering::Acquire) {
            self.idle().push(idle);
        }
    }

    /// Closes what nobody used for the idle time.
    pub(crate) async fn close_unused(&self) {
        let unused: Vec<Idle> = {
            let mut idle = self.idle();
            let first_young = idle.iter().position(|idle| idle.since.elapsed() < self.limits.idle);
            let old = first_young.unwrap_or(idle.len());
            idle.drain(..old).collect()
        };
        self.end(unused).await;
    }

    /// Refuses further calls, waits (a bounded time) for borrowed connections, and closes all.
    pub(crate) async fn close(&self) {
        self.closed.store(true, Ordering::Release);
        let all = self.slots.acquire_many(self.limits.connections);
        let _late = tokio::time::timeout(self.limits.acquire, all).await;
        self.slots.close();
        let rest = std::mem::take(&mut *self.idle());
        self.end(rest).await;
    }

    async fn end(&self, connections: Vec<Idle>) {
        for idle in connections {
            // Whether the good-bye arrives or not, the connection is gone.
            let _gone = tokio::time::timeout(self.limits.connect, idle.connection.close()).await;
        }
    }

    fn still_open(&self) -> Result<()> {
        if self.closed.load(Ordering::Acquire) { Err(closed()) } else { Ok(()) }
    }

    fn take(&self) -> Option<Idle> {
        self.idle().pop()
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Idle>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn closed() -> Error {
    Error::unavailable("the store was closed").fix("connect again")
}

/// The identity in a row of `server/identity.sql`.
pub(crate) fn read_identity(row: &sqlx::postgres::PgRow) -> Result<ServerIdentity, sqlx::Error> {
    let timeline: i32 = row.try_get(1)?;
    Ok(ServerIdentity {
        system: row.try_get(0)?,
        timeline: timeline.cast_unsigned(),
        started_at: Timestamp::from_micros(row.try_get(2)?),
    })
}
