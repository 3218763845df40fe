//! The directory: the sum of the databases' registers.

use std::sync::Arc;

use async_trait::async_trait;
use bellwether_storage::{Database, DatabaseNo, Directory, Error, Location, Result, TenantEntry, TenantId};
use dashmap::DashMap;

use crate::decide::residence::residence;

/// Tenants read from a register per statement.
const LIST_PAGE: u32 = 1_000;

/// What happens to a tenant nobody knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rule {
    /// One database: an unknown tenant is created there when it is first used.
    Single,
    /// Several databases: an unknown tenant is refused until [`Placed::place`] says where it lives.
    Explicit,
}

/// The directory of the tenants of some databases.
pub struct Placed {
    databases: Vec<Arc<dyn Database>>,
    rule: Rule,
    known: DashMap<TenantId, Location>,
}

impl Placed {
    /// A directory over these databases, numbered 0, 1, 2 … in this order.
    ///
    /// # Panics
    ///
    /// When there is no database, or [`Rule::Single`] meets more than one.
    pub fn new(databases: Vec<Arc<dyn Database>>, rule: Rule) -> Self {
        assert!(!databases.is_empty(), "a directory needs at least one database");
        assert!(rule != Rule::Single || databases.len() == 1, "Rule::Single takes exactly one database");
        Self { databases, rule, known: DashMap::new() }
    }

    /// Places a tenant into a database and creates it there. Repeating the same placement is fine.
    ///
    /// # Errors
    ///
    /// `Rejected` when there is no such database; `Conflict` when the tenant already lives in another one; `Corrupt` when it
    /// lives in two; `Unavailable` when a database cannot be reached: repeat.
    ///
    /// # Cancel safety
    ///
    /// Safe: repeat it.
    pub async fn place(&self, tenant: &TenantId, database: DatabaseNo) -> Result<Location> {
        let target = self.databases.get(database.0 as usize).ok_or_else(|| {
            Error::rejected(format!("there is no database {database}"))
                .fix(format!("this fleet has databases 0 to {}", self.databases.len() - 1))
        })?;
        if let Some(found) = self.search(tenant).await? {
            return match found.database == database {
                true => Ok(self.remember(tenant, found)),
                false => Err(Error::conflict(format!(
                    "tenant {tenant} already lives in database {}",
                    found.database
                ))
                .fix("use it there; moving a tenant is another operation")),
            };
        }
        let entry = target.ensure_tenant(tenant).await?;
        let found = self.search(tenant).await?.unwrap_or_else(|| location(database, &entry));
        Ok(self.remember(tenant, found))
    }

    /// Asks every register.
    async fn search(&self, tenant: &TenantId) -> Result<Option<Location>> {
        let mut registers = Vec::with_capacity(self.databases.len());
        for (number, database) in (0u32..).zip(&self.databases) {
            registers.push((DatabaseNo(number), database.find_tenant(tenant).await?));
        }
        residence(tenant, registers)
    }

    fn remember(&self, tenant: &TenantId, location: Location) -> Location {
        self.known.insert(tenant.clone(), location);
        location
    }
}

fn location(database: DatabaseNo, entry: &TenantEntry) -> Location {
    Location { database, tenant: entry.number, place: entry.place }
}

#[async_trait]
impl Directory for Placed {
    async fn locate(&self, tenant: &TenantId) -> Result<Location> {
        if let Some(known) = self.known.get(tenant) {
            return Ok(*known);
        }
        match self.rule {
            Rule::Single => {
                let entry = self.databases[0].ensure_tenant(tenant).await?;
                Ok(self.remember(tenant, location(DatabaseNo(0), &entry)))
            }
            Rule::Explicit => match self.search(tenant).await? {
                Some(found) => Ok(self.remember(tenant, found)),
                None => Err(Error::rejected(format!("tenant {tenant} is not placed in any database"))
                    .fix("place it first: which database should it live in?")),
            },
        }
    }

    fn forget(&self, tenant: &TenantId) {
        self.known.remove(tenant);
    }

    async fn list(&self) -> Result<Vec<(TenantId, Location)>> {
        let mut all = Vec::new();
        for (number, database) in (0u32..).zip(&self.databases) {
            let mut after = None;
            loop {
                let entries = database.list_tenants(after, LIST_PAGE).await?;
                let Some(last) = entries.last() else { break };
                after = Some(last.number);
                let more = entries.len() == LIST_PAGE as usize;
                all.extend(
                    entries.into_iter().map(|entry| (entry.id.clone(), location(DatabaseNo(number), &entry))),
                );
                if !more {
                    break;
                }
            }
        }
        all.sort_by(|a, b| a.0.cmp(&b.0));
        if let Some(twice) = all.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(Error::corrupt(format!(
                "tenant {} lives in databases {} and {} at once",
                twice[0].0, twice[0].1.database, twice[1].1.database
            ))
            .fix("keep the one whose events are right and remove the tenant from the other"));
        }
        Ok(all)
    }
}
