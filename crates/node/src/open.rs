//! From an address to an open database, and from databases to a store.

use std::sync::Arc;

use bellwether_events::Store;
use bellwether_storage::{Database, Directory, Error, Result};
use bellwether_tenants::{Placed, Rule};

/// A store over several databases, and the directory that says which tenant lives where.
#[derive(Clone)]
pub struct Fleet {
    /// The store.
    pub store: Store,
    /// Its directory; place a tenant here before it is first used.
    pub directory: Arc<Placed>,
}

/// Opens a store over one database; an unknown tenant is created when it is first used.
///
/// Addresses: `memory:`, `sqlite:PATH`, `postgres://USER@HOST:PORT/DATABASE`. A missing SQLite file is created; the schema is
/// brought up to date.
///
/// # Errors
///
/// `Rejected` when the address is of no known form or this build lacks the adapter; `Unavailable` when the database cannot
/// be reached. Errors never repeat a password.
///
/// # Cancel safety
///
/// Safe: open again.
pub async fn open(address: &str) -> Result<Store> {
    let databases = vec![open_database(address).await?];
    let directory: Arc<dyn Directory> = Arc::new(Placed::new(databases.clone(), Rule::Single));
    Ok(Store::new(databases, directory))
}

/// Opens a store over several databases, numbered 0, 1, 2 … in this order; tenants are placed by name.
///
/// # Errors
///
/// As [`open`]; `Rejected` also when there is no address.
///
/// # Cancel safety
///
/// Safe: open again.
pub async fn open_fleet<'a>(addresses: impl IntoIterator<Item = &'a str>) -> Result<Fleet> {
    let mut databases = Vec::new();
    for address in addresses {
        databases.push(open_database(address).await?);
    }
    if databases.is_empty() {
        return Err(
            Error::rejected("a fleet needs at least one database").fix("pass one address per database")
        );
    }
    let directory = Arc::new(Placed::new(databases.clone(), Rule::Explicit));
    let store = Store::new(databases, Arc::clone(&directory) as Arc<dyn Directory>);
    Ok(Fleet { store, directory })
}

/// Opens one database by its address.
///
/// # Errors
///
/// As [`open`].
///
/// # Cancel safety
///
/// Safe: open again.
pub async fn open_database(address: &str) -> Result<Arc<dyn Database>> {
    let (scheme, rest) = address.split_once(':').unwrap_or((address, ""));
    match scheme {
        "memory" => open_memory(),
        "sqlite" => open_sqlite(rest.strip_prefix("//").unwrap_or(rest)).await,
        "postgres" | "postgresql" => open_postgres(address).await,
        _ => {
            // Only the scheme is shown: what follows may hold a password.
            let shown: String = scheme.chars().take(20).collect();
            Err(Error::rejected(format!("no store has addresses that start with {shown:?}"))
                .fix("use memory:, sqlite:PATH or postgres://USER@HOST:PORT/DATABASE"))
        }
    }
}

#[cfg(feature = "memory")]
fn open_memory() -> Result<Arc<dyn Database>> {
    Ok(Arc::new(bellwether_memory::Memory::new()))
}

#[cfg(feature = "sqlite")]
async fn open_sqlite(path: &str) -> Result<Arc<dyn Database>> {
    if path.is_empty() {
        return Err(
            Error::rejected("the SQLite address names no file").fix("write sqlite:PATH, or memory: for none")
        );
    }
    Ok(Arc::new(bellwether_sqlite::Sqlite::open(path).await?))
}

#[cfg(feature = "postgres")]
async fn open_postgres(address: &str) -> Result<Arc<dyn Database>> {
    Ok(Arc::new(bellwether_postgres::Postgres::connect(address).await?))
}

#[cfg(not(feature = "memory"))]
fn open_memory() -> Result<Arc<dyn Database>> {
    Err(missing("memory"))
}

#[cfg(not(feature = "sqlite"))]
async fn open_sqlite(_path: &str) -> Result<Arc<dyn Database>> {
    Err(missing("sqlite"))
}

#[cfg(not(feature = "postgres"))]
async fn open_postgres(_address: &str) -> Result<Arc<dyn Database>> {
    Err(missing("postgres"))
}

#[cfg(not(all(feature = "memory", feature = "sqlite", feature = "postgres")))]
fn missing(feature: &str) -> Error {
    Error::rejected(format!("this build has no {feature} store"))
        .fix(format!("enable the feature `{feature}`"))
}
