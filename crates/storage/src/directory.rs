//! Which tenant lives where.

use std::fmt;

use async_trait::async_trait;

use crate::{Place, Result, TenantId, TenantNo};

/// Number of a database in the fleet: 0, 1, 2 …, an index into the list a store was opened with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DatabaseNo(pub u32);

impl fmt::Display for DatabaseNo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Where a tenant lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Location {
    /// The database.
    pub database: DatabaseNo,
    /// Its number there.
    pub tenant: TenantNo,
    /// Where its events lie there, as last seen.
    pub place: Place,
}

/// Answers where a tenant lives.
#[async_trait]
pub trait Directory: Send + Sync {
    /// Where the tenant lives; creates it where the directory's rule says so.
    ///
    /// # Errors
    ///
    /// `Rejected` when the tenant is not known and the rule does not create it: place it first. `Unavailable` when a database
    /// cannot be reached.
    async fn locate(&self, tenant: &TenantId) -> Result<Location>;

    /// Drops what is cached of a tenant, so that the next [`locate`](Directory::locate) asks the databases.
    fn forget(&self, tenant: &TenantId);

    /// All tenants, ordered by name.
    ///
    /// # Errors
    ///
    /// `Unavailable` when a database cannot be reached.
    async fn list(&self) -> Result<Vec<(TenantId, Location)>>;
}
