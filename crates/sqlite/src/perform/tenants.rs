//! The register of tenants.

use std::sync::Arc;

use bellwether_storage::{Error, Place, Result, TenantEntry, TenantId, TenantNo};
use sqlx::sqlite::SqliteRow;

use super::file::File;
use super::gate::Gate;
use super::link::{Link, column};
use super::readers::Readers;
use crate::decide::turns::Turn;
use crate::{error, sql};

/// See [`Tenants::ensure_tenant`](bellwether_storage::Tenants::ensure_tenant).
pub(crate) async fn ensure(
    file: &File,
    gate: &Arc<Gate>,
    readers: &Arc<Readers>,
    id: &TenantId,
) -> Result<TenantEntry> {
    // Nearly always it is there: look before the write lock is taken.
    let mut reader = readers.get().await?;
    let found = find(&mut reader.link, id).await?;
    reader.done();
    if let Some(entry) = found {
        return Ok(entry);
    }
    let mut transaction = gate.begin(Turn::Short, file.config().busy_timeout).await?;
    let link = transaction.link();
    let query = sqlx::query(sql::TENANTS_ENSURE).bind(id.as_str());
    let entry = match link.execute(query).await {
        Ok(_) => find(link, id).await,
        Err(failed) => Err(error::of(failed)),
    };
    let missing = || Error::corrupt(format!("tenant {id} was registered and is not there"));
    transaction.end(entry.and_then(|entry| entry.ok_or_else(missing))).await
}

/// See [`Tenants::find_tenant`](bellwether_storage::Tenants::find_tenant).
pub(crate) async fn find(link: &mut Link, id: &TenantId) -> Result<Option<TenantEntry>> {
    let row = link.optional(sqlx::query(sql::TENANTS_FIND).bind(id.as_str())).await?;
    row.map(|row| entry(&row)).transpose()
}

/// See [`Tenants::list_tenants`](bellwether_storage::Tenants::list_tenants).
pub(crate) async fn list(link: &mut Link, after: Option<TenantNo>, limit: u32) -> Result<Vec<TenantEntry>> {
    let after = after.map_or(i64::MIN, |after| i64::from(after.0));
    let mut entries = Vec::new();
    link.each(sqlx::query(sql::TENANTS_LIST).bind(after).bind(limit), |row| {
        entries.push(entry(row)?);
        Ok(())
    })
    .await?;
    Ok(entries)
}

fn entry(row: &SqliteRow) -> Result<TenantEntry> {
    Ok(TenantEntry {
        number: TenantNo(column(row, 0)?),
        id: stored_id(column(row, 1)?)?,
        place: Place(column(row, 2)?),
        open: column(row, 3)?,
    })
}

/// A tenant's id as stored.
pub(crate) fn stored_id(id: &str) -> Result<TenantId> {
    TenantId::new(id).map_err(|error| {
        Error::corrupt(error.message()).fix("check who else writes to this file").source(error)
    })
}
