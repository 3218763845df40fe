//! The tenants of one database.

use async_trait::async_trait;

use crate::{Place, Result, TenantId, TenantNo};

/// A tenant as registered in a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TenantEntry {
    /// Its name.
    pub id: TenantId,
    /// Its number in this database.
    pub number: TenantNo,
    /// Where its events lie.
    pub place: Place,
    /// Whether it accepts appends here.
    pub open: bool,
}

/// The register of tenants of one database.
#[async_trait]
pub trait Tenants: Send + Sync {
    /// Registers a tenant with an open head at zero, or returns the one that is there. Safe to race and to repeat.
    ///
    /// # Errors
    ///
    /// `Unavailable` when the database cannot be reached; repeat.
    async fn ensure_tenant(&self, id: &TenantId) -> Result<TenantEntry>;

    /// Looks a tenant up by name.
    ///
    /// # Errors
    ///
    /// `Unavailable` when the database cannot be reached; repeat.
    async fn find_tenant(&self, id: &TenantId) -> Result<Option<TenantEntry>>;

    /// Up to `limit` tenants whose number is above `after`, in ascending order of number.
    ///
    /// # Errors
    ///
    /// `Unavailable` when the database cannot be reached; repeat.
    async fn list_tenants(&self, after: Option<TenantNo>, limit: u32) -> Result<Vec<TenantEntry>>;
}
