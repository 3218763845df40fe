//! The store: databases, the directory of their tenants, and one writer per database.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bellwether_storage::{Database, DatabaseNo, Directory, Error, ErrorKind, Location, Result, TenantId};

use crate::decide::{Append, AppendKey, Bounds, Part, Reply, Seen};
use crate::perform::{Listeners, Room, Submission, WriterHandle};
use crate::{HeadListener, StoreConfig, Tenant};

/// Places an append tries when its tenant has just moved.
const MOVES_MAX: u32 = 3;

/// How often the directory is asked by an append while a database cannot be reached: about six seconds.
const LOCATE_TRIES: u32 = 8;

/// An event store over some databases. Cheap to clone; all clones are the same store.
///
/// Nothing is read or written without a tenant: [`Store::tenant`] is the only way in.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

struct Inner {
    databases: Vec<Arc<dyn Database>>,
    directory: Arc<dyn Directory>,
    config: StoreConfig,
    listeners: Arc<Listeners>,
    /// Started by the first append to each database.
    writers: Vec<OnceLock<WriterHandle>>,
    closed: AtomicBool,
}

impl Store {
    /// A store over these databases, numbered 0, 1, 2 … in this order; the directory says which tenant lives where.
    pub fn new(databases: Vec<Arc<dyn Database>>, directory: Arc<dyn Directory>) -> Self {
        Self::with_config(databases, directory, StoreConfig::default())
    }

    /// As [`Store::new`], with numbers of your own.
    ///
    /// # Panics
    ///
    /// When [`StoreConfig::validate`] refuses the configuration; it says which field and how to fix it.
    pub fn with_config(
        databases: Vec<Arc<dyn Database>>,
        directory: Arc<dyn Directory>,
        config: StoreConfig,
    ) -> Self {
        if let Err(error) = config.validate() {
            panic!("the configuration of the store cannot work: {error}");
        }
        let writers = databases.iter().map(|_| OnceLock::new()).collect();
        Self {
            inner: Arc::new(Inner {
                databases,
                directory,
                config,
                listeners: Arc::default(),
                writers,
                closed: AtomicBool::new(false),
            }),
        }
    }

    /// A tenant of this store. Checks the name only: no I/O. An unknown tenant shows when it is first used.
    ///
    /// # Errors
    ///
    /// `Rejected` when the name is not 1 to 63 characters of `a-z`, `0-9`, `_`, `-`, starting with a letter or digit.
    pub fn tenant(&self, id: impl AsRef<str>) -> Result<Tenant> {
        Ok(Tenant::new(self.clone(), TenantId::new(id)?))
    }

    /// All tenants, ordered by name. One read per database and 1,000 tenants.
    ///
    /// # Errors
    ///
    /// `Unavailable` when a database cannot be reached: try again.
    ///
    /// # Cancel safety
    ///
    /// Safe: it only reads.
    pub async fn tenants(&self) -> Result<Vec<TenantId>> {
        Ok(self.inner.directory.list().await?.into_iter().map(|(id, _)| id).collect())
    }

    /// The databases, in the order of their numbers.
    pub fn databases(&self) -> &[Arc<dyn Database>] {
        &self.inner.databases
    }

    /// The directory: which tenant lives where.
    pub fn directory(&self) -> &Arc<dyn Directory> {
        &self.inner.directory
    }

    /// The numbers it was opened with.
    pub fn config(&self) -> &StoreConfig {
        &self.inner.config
    }

    /// Tells `listener` after each commit of this store. It stays for as long as the store.
    pub fn on_head_moved(&self, listener: Arc<dyn HeadListener>) {
        self.inner.listeners.add(listener);
    }

    /// Takes no more appends, commits those that were taken, then closes the connections. For all clones.
    ///
    /// Appends to a tenant whose head somebody else holds are waited for, about a minute at most; then their callers are told.
    ///
    /// # Cancel safety
    ///
    /// Safe to call again.
    pub async fn close(&self) {
        self.inner.closed.store(true, Ordering::Release);
        for (number, database) in (0..).map(DatabaseNo).zip(&self.inner.databases) {
            // One that was never needed is started to be closed: a late append then finds it closed.
            if let Some(writer) = self.writer(database, number) {
                writer.drain().await;
            }
            database.close().await;
        }
    }

    /// Where a tenant lives, and the database itself.
    pub(crate) async fn locate(&self, tenant: &TenantId) -> Result<(Location, &Arc<dyn Database>)> {
        let location = self.inner.directory.locate(tenant).await?;
        Ok((location, self.database(tenant, location.database)?))
    }

    /// As [`Store::locate`], but waits a while for a database that cannot be reached, as the writer does.
    async fn locate_patiently(&self, tenant: &TenantId) -> Result<(Location, &Arc<dyn Database>)> {
        for tried in 1..LOCATE_TRIES {
            match self.locate(tenant).await {
                Err(error) if error.kind() == ErrorKind::Unavailable && !self.is_closed() => {
                    tokio::time::sleep(Duration::from_millis(25 << tried)).await;
                }
                located => return located,
            }
        }
        self.locate(tenant).await
    }

    fn is_closed(&self) -> bool {
        self.inner.closed.load(Ordering::Acquire)
    }

    fn database(&self, tenant: &TenantId, number: DatabaseNo) -> Result<&Arc<dyn Database>> {
        self.inner.databases.get(number.0 as usize).ok_or_else(|| {
            Error::corrupt(format!(
                "the directory places tenant {tenant} in database {number}, this store has {}",
                self.inner.databases.len()
            ))
            .fix("open the store and its directory with the same list of databases")
        })
    }

    fn writer(&self, database: &Arc<dyn Database>, number: DatabaseNo) -> Option<&WriterHandle> {
        let config = &self.inner.config;
        let writer = self.inner.writers.get(number.0 as usize)?;
        Some(writer.get_or_init(|| {
            let bounds = Bounds { versions: config.versions_cached, ..Bounds::default() };
            let room = Room::new(config.queue_bytes, config.tenant_queue_bytes);
            WriterHandle::start(Arc::clone(database), number, bounds, room, Arc::clone(&self.inner.listeners))
        }))
    }

    /// Hands an append to the writer of its tenant's database; follows the tenant when it has moved.
    pub(crate) async fn append(
        &self,
        tenant: &TenantId,
        mut parts: Vec<Part>,
        mut events: Vec<bellwether_storage::NewEvent>,
        key: Option<AppendKey>,
        mut seen: Option<Seen>,
    ) -> Result<Reply> {
        for _ in 0..MOVES_MAX {
            let (location, database) = self.locate_patiently(tenant).await?;
            let Some(writer) = self.writer(database, location.database) else { break };
            let mut append = Append::new((), parts, events);
            append.key = key;
            append.seen = seen.take();
            let submission =
                Submission { tenant: location.tenant, id: tenant, place: location.place, append };
            match writer.submit(submission).await? {
                Reply::Moved { parts: same, events: content } => {
                    (parts, events) = (same, content);
                    self.inner.directory.forget(tenant);
                }
                reply => return Ok(reply),
            }
        }
        Err(Error::new(ErrorKind::Rejected, format!("tenant {tenant} takes no appends"))
            .fix("it is closed, moving or gone; open it, or ask the directory where it lives"))
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let databases: Vec<_> = self.inner.databases.iter().map(|database| database.name()).collect();
        f.debug_struct("Store")
            .field("databases", &databases)
            .field("config", &self.inner.config)
            .finish_non_exhaustive()
    }
}
