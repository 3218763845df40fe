//! The handle: its pools, and the small ports.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bellwether_storage::{
    Activity, Counters, Database, Error, PageStyle, Place, Result, ServerIdentity, SqlDialect, TenantNo,
    ViewNo,
};
use sqlx::postgres::{PgArguments, PgConnectOptions};
use sqlx::{ConnectOptions, Row};
use tokio::task::AbortHandle;
use uuid::Uuid;

use crate::PostgresConfig;
use crate::error::nothing_happened;
use crate::perform::blockers::NAME_PREFIX;
use crate::perform::migrate;
use crate::perform::pool::{Counted, Limits, Pool, read_identity};
use crate::sql;

/// Places that small tenants share.
const SHARED_PLACES: i32 = 16;

const ACTIVITY: &str = "SELECT datname::text, tup_inserted + tup_updated + tup_deleted
  FROM pg_stat_database
 WHERE datname IS NOT NULL";

/// One PostgreSQL database as a [`Database`]. Cheap to clone; clones share their connections.
///
/// Must be made and used inside a tokio runtime.
#[derive(Clone)]
pub struct Postgres {
    pub(crate) shared: Arc<Shared>,
}

pub(crate) struct Shared {
    name: String,
    pub(crate) config: PostgresConfig,
    pub(crate) lz4: bool,
    pub(crate) pools: Pools,
    counted: Arc<Counted>,
    /// Places that are not what a tenant's number says.
    places: Mutex<HashMap<TenantNo, Place>>,
    closer: AbortHandle,
}

/// A pool per purpose: who waits for one kind of work never keeps another kind waiting.
#[derive(Clone)]
pub(crate) struct Pools {
    pub(crate) append: Arc<Pool>,
    pub(crate) lock: Arc<Pool>,
    pub(crate) page: Arc<Pool>,
    pub(crate) read: Arc<Pool>,
    pub(crate) control: Arc<Pool>,
}

impl Postgres {
    /// Connects with the defaults and brings the tables up to date.
    ///
    /// # Errors
    ///
    /// `Rejected` when the URL, the user or the database are wrong; `Unavailable` when the server cannot be reached;
    /// `Unsupported` when a newer version of this program was here before.
    pub async fn connect(url: &str) -> Result<Self> {
        Self::connect_with(PostgresConfig::new(url)).await
    }

    /// Connects and brings the tables up to date. Safe to race: programs that start together wait for each other.
    ///
    /// # Errors
    ///
    /// As [`connect`](Postgres::connect), and `Rejected` when a limit is out of range.
    pub async fn connect_with(config: PostgresConfig) -> Result<Self> {
        config.validate()?;
        let options = PgConnectOptions::from_str(&config.url).map_err(|_unreadable| {
            // The reason may repeat parts of the URL, so it is not kept.
            Error::rejected("the url of the database cannot be read").fix(
                "write postgres://user:password@host:port/database, with special characters percent-encoded",
            )
        })?;
        let counted = Arc::new(Counted::default());
        let pools = Pools::new(&config, options, &counted);
        let mut link = pools.control.acquire().await?;
        let lz4 = migrate::has_lz4(&mut link).await?;
        migrate::migrate(&mut link, lz4).await?;
        let rows = link.rows(sql::SERVER_IDENTITY, PgArguments::default()).await.map_err(nothing_happened)?;
        let name = rows.first().map_or(Ok(String::new()), |row| row.try_get(4)).map_err(nothing_happened)?;
        drop(link);
        let closer = tokio::spawn(close_unused(pools.clone(), Duration::from_millis(config.idle_timeout_ms)));
        let shared = Shared {
            name,
            config,
            lz4,
            pools,
            counted,
            places: Mutex::default(),
            closer: closer.abort_handle(),
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Prepares a statement on the server without running it, as a check that it fits the tables. `view` is the view whose
    /// table stands in for `{view}`.
    ///
    /// # Errors
    ///
    /// `Rejected` when it does not fit; `Unavailable` when the database cannot be reached.
    pub async fn prepare(&self, text: &str, view: ViewNo) -> Result<()> {
        let mut link = self.shared.pools.control.acquire().await?;
        let text = sql::for_view(text, view).0;
        let text = if self.shared.lz4 { text } else { sql::without_lz4(&text) };
        link.prepare(text).await.map_err(nothing_happened)
    }
}

impl Pools {
    fn new(config: &PostgresConfig, options: PgConnectOptions, counted: &Arc<Counted>) -> Self {
        // One incarnation per handle. Two handles of one process know as little of each other's open pages as two processes
        // do, so each may end what the other left; a handle never ends its own, it drops them.
        let name = format!("{NAME_PREFIX}{}", Uuid::now_v7());
        let options = options.application_name(&name).disable_statement_logging().options([
            ("statement_timeout", config.statement_timeout_ms.to_string()),
            ("lock_timeout", config.lock_timeout_ms.to_string()),
            ("idle_in_transaction_session_timeout", config.idle_in_transaction_timeout_ms.to_string()),
            // Compiling a plan costs more than any statement here takes.
            ("jit", "off".to_owned()),
            // The server notices a client whose machine is gone.
            ("tcp_keepalives_idle", "30".to_owned()),
            ("tcp_keepalives_interval", "10".to_owned()),
            ("tcp_keepalives_count", "3".to_owned()),
        ]);
        // With the place as a constant, a plan looks at one partition; a generic plan locks all of them.
        let constant = options.clone().options([("plan_cache_mode", "force_custom_plan")]);
        let limits = |connections| Limits {
            connections,
            acquire: Duration::from_millis(config.acquire_timeout_ms),
            connect: Duration::from_millis(config.connect_timeout_ms),
            idle: Duration::from_millis(config.idle_timeout_ms),
            statement: config.statement_timeout(),
        };
        let pool = |purpose, options: &PgConnectOptions, connections| {
            Pool::new(purpose, options.clone(), limits(connections), Arc::clone(counted))
        };
        let read_only = constant.clone().options([("default_transaction_read_only", "on")]);
        Self {
            append: pool("append", &options, config.append_connections),
            lock: pool("head lock", &constant, config.lock_connections),
            page: pool("page", &options, config.page_connections),
            read: pool("read", &read_only, config.read_connections),
            control: pool("control", &options, config.control_connections),
        }
    }

    fn all(&self) -> [&Arc<Pool>; 5] {
        [&self.append, &self.lock, &self.page, &self.read, &self.control]
    }
}

impl Shared {
    /// Where a tenant's events most likely lie: what was seen last, else what its number says. A wrong guess costs one more
    /// read, which tells the right one.
    pub(crate) fn place(&self, tenant: TenantNo) -> Place {
        self.places().get(&tenant).copied().unwrap_or(shared_place(tenant))
    }

    /// Remembers where a tenant's events lie. Bounded by the tenants that do not lie where their number says.
    pub(crate) fn saw_place(&self, tenant: TenantNo, place: Place) {
        if place == shared_place(tenant) {
            self.places().remove(&tenant);
        } else {
            self.places().insert(tenant, place);
        }
    }

    fn places(&self) -> MutexGuard<'_, HashMap<TenantNo, Place>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn count_discovery(&self) {
        self.counted.discovery_read();
    }
}

/// Where `tenants/ensure.sql` puts a tenant.
fn shared_place(tenant: TenantNo) -> Place {
    Place(tenant.0 % SHARED_PLACES)
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.closer.abort();
    }
}

impl fmt::Debug for Postgres {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Postgres").field("database", &self.shared.name).finish_non_exhaustive()
    }
}

/// Runs until its handle is dropped or closed.
async fn close_unused(pools: Pools, idle: Duration) {
    let mut tick = tokio::time::interval((idle / 4).max(Duration::from_millis(10)));
    loop {
        tick.tick().await;
        for pool in pools.all() {
            pool.close_unused().await;
        }
    }
}

#[async_trait]
impl Database for Postgres {
    fn name(&self) -> &str {
        &self.shared.name
    }

    fn dialect(&self) -> Option<SqlDialect> {
        Some(SqlDialect::Postgres)
    }

    fn page_style(&self) -> PageStyle {
        PageStyle::Streaming
    }

    fn pages_max(&self) -> Option<u32> {
        Some(self.shared.config.page_connections)
    }

    async fn identity(&self) -> Result<ServerIdentity> {
        let mut link = self.shared.pools.read.acquire().await?;
        let rows = link.rows(sql::SERVER_IDENTITY, PgArguments::default()).await.map_err(nothing_happened)?;
        let row = rows.first().ok_or_else(|| nothing_happened(sqlx::Error::RowNotFound))?;
        read_identity(row).map_err(nothing_happened)
    }

    async fn activity(&self) -> Result<Option<Vec<Activity>>> {
        let mut link = self.shared.pools.read.acquire().await?;
        let rows = link.rows(ACTIVITY, PgArguments::default()).await.map_err(nothing_happened)?;
        let read = rows.iter().map(|row| {
            let changes: i64 = row.try_get(1)?;
            Ok(Activity { database: row.try_get(0)?, changes: changes.cast_unsigned() })
        });
        read.collect::<Result<_, sqlx::Error>>().map(Some).map_err(nothing_happened)
    }

    fn counters(&self) -> Counters {
        self.shared.counted.so_far()
    }

    async fn close(&self) {
        self.shared.closer.abort();
        for pool in self.shared.pools.all() {
            pool.close().await;
        }
    }
}
