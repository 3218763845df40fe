//! Projections in the user's own SQL.

use std::ops::Deref;

use bellwether_events::{Event, Recorded};
use bellwether_storage::{BoxError, Error, Result, Row, SqlDialect, Statement, TenantId, UnitOfWork};

/// A projection that writes tables of its own, in the same transaction as its progress.
///
/// The tables are the user's: created by [`setup`](SqlProjection::setup), keyed by tenant like everything else.
pub trait SqlProjection: Send + Sync + 'static {
    /// Name of the projection; stable, unique in a daemon.
    const NAME: &'static str;
    /// Raise it when the code changes what the tables hold, and write other tables then.
    const VERSION: u32 = 1;
    /// The dialects its statements are written in. A database that speaks another one, or none, is refused at start.
    const DIALECTS: &'static [SqlDialect] = &[SqlDialect::Sqlite, SqlDialect::Postgres];
    /// The events it works on; only their types are loaded.
    type Event: Event;

    /// Statements run once per database when the daemon starts, in one transaction. Write them so that they can be repeated
    /// (`CREATE TABLE IF NOT EXISTS`).
    fn setup(&self, dialect: SqlDialect) -> Vec<Statement>;

    /// Works on a page: at least one event, in order.
    ///
    /// All statements go through `tx`: what is done elsewhere is not undone when the page is done again.
    ///
    /// # Errors
    ///
    /// Pass an error of `tx` on with `?`: its transaction is gone. The daemon knows which are worth another try, whatever is
    /// made of them here. Any other error makes the page be done again in smaller parts until the event is found that causes
    /// it; that one becomes a dead letter.
    fn project(
        &self,
        page: Page<'_, Self::Event>,
        tx: &mut Tx<'_>,
    ) -> impl Future<Output = Result<(), BoxError>> + Send;
}

/// Events of one tenant, in order; reads like a slice of [`Recorded`].
#[derive(Debug)]
pub struct Page<'a, E> {
    tenant: &'a TenantId,
    events: &'a [Recorded<E>],
}

impl<'a, E> Page<'a, E> {
    pub(crate) fn new(tenant: &'a TenantId, events: &'a [Recorded<E>]) -> Self {
        Self { tenant, events }
    }

    /// The tenant all events belong to.
    pub fn tenant(&self) -> &'a TenantId {
        self.tenant
    }

    /// The events.
    pub fn events(&self) -> &'a [Recorded<E>] {
        self.events
    }
}

impl<E> Clone for Page<'_, E> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<E> Copy for Page<'_, E> {}

impl<E> Deref for Page<'_, E> {
    type Target = [Recorded<E>];

    fn deref(&self) -> &Self::Target {
        self.events
    }
}

impl<'a, E> IntoIterator for Page<'a, E> {
    type Item = &'a Recorded<E>;
    type IntoIter = std::slice::Iter<'a, Recorded<E>>;

    fn into_iter(self) -> Self::IntoIter {
        self.events.iter()
    }
}

/// The page's transaction, for statements of the user's own.
pub struct Tx<'a> {
    unit: &'a mut dyn UnitOfWork,
    dialect: SqlDialect,
    /// The first error, which ended the transaction; however the user's code puts it, or passes over it.
    ended: Option<Error>,
}

impl<'a> Tx<'a> {
    pub(crate) fn new(unit: &'a mut dyn UnitOfWork, dialect: SqlDialect) -> Self {
        Self { unit, dialect, ended: None }
    }

    /// The SQL this database speaks.
    pub fn dialect(&self) -> SqlDialect {
        self.dialect
    }

    /// Runs a statement; returns the number of rows it changed.
    ///
    /// # Errors
    ///
    /// Pass it on with `?`: the transaction is gone and the page is done again.
    pub async fn execute(&mut self, statement: &Statement) -> Result<u64> {
        let changed = self.unit.execute(statement).await;
        self.heard(changed)
    }

    /// Runs a query; at most 10,000 rows. Sees the page's own writes.
    ///
    /// # Errors
    ///
    /// As [`execute`](Tx::execute).
    pub async fn query(&mut self, statement: &Statement) -> Result<Vec<Row>> {
        let rows = self.unit.query(statement).await;
        self.heard(rows)
    }

    /// What ended the transaction, if anything did.
    pub(crate) fn ended(&mut self) -> Option<Error> {
        self.ended.take()
    }

    fn heard<T>(&mut self, answer: Result<T>) -> Result<T> {
        if let Err(error) = &answer
            && self.ended.is_none()
        {
            self.ended = Some(Error::new(error.kind(), error.to_string()));
        }
        answer
    }
}
