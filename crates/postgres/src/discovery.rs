//! Which heads moved, and the register of tenants.

use async_trait::async_trait;
use bellwether_storage::{
    Discovery, DiscoveryCursor, Moved, MovedHead, Place, Result, Sequence, TenantEntry, TenantId, TenantNo,
    Tenants,
};
use sqlx::postgres::PgRow;

use crate::error::{corrupt, maybe_happened, nothing_happened};
use crate::handle::Postgres;
use crate::log::no_tenant;
use crate::sql;
use crate::values::{Values, column, signed, unsigned};

#[async_trait]
impl Discovery for Postgres {
    async fn moved_heads(&self, cursor: Option<&DiscoveryCursor>) -> Result<Moved> {
        let mut link = self.shared.pools.read.acquire().await?;
        let position = match cursor.filter(|cursor| cursor.identity == *link.identity()) {
            Some(cursor) => signed(cursor.position, "cursor")?,
            None => 0,
        };
        self.shared.count_discovery();
        let values = Values::default().add(position)?.done();
        let rows = link.rows(sql::HEADS_MOVED, values).await.map_err(nothing_happened)?;
        let position = rows.first().map_or(Ok(0), |row| unsigned(row, 0))?;
        let heads = rows.iter().filter_map(|row| moved(row).transpose()).collect::<Result<_>>()?;
        Ok(Moved { heads, cursor: DiscoveryCursor { identity: link.identity().clone(), position } })
    }
}

/// One moved head; none in the row that only carries the cursor.
fn moved(row: &PgRow) -> Result<Option<MovedHead>> {
    let tenant: Option<i32> = column(row, 1)?;
    let Some(tenant) = tenant else { return Ok(None) };
    let id: String = column(row, 2)?;
    Ok(Some(MovedHead {
        tenant: TenantNo(tenant),
        id: tenant_id(id)?,
        head: Sequence::from_i64(column(row, 3)?)?,
    }))
}

#[async_trait]
impl Tenants for Postgres {
    async fn ensure_tenant(&self, id: &TenantId) -> Result<TenantEntry> {
        // Looking first spares numbers, and a write where there is nothing to write.
        if let Some(found) = self.find_tenant(id).await? {
            return Ok(found);
        }
        let mut link = self.shared.pools.control.acquire().await?;
        let values = Values::default().add(id.as_str())?.done();
        let rows = link.rows(sql::TENANTS_ENSURE, values).await.map_err(maybe_happened)?;
        drop(link);
        if let Some(row) = rows.first() {
            return entry(row);
        }
        // Somebody else registered it at this moment, and has committed.
        let found = self.find_tenant(id).await?;
        found.ok_or_else(|| no_tenant(TenantNo(0)))
    }

    async fn find_tenant(&self, id: &TenantId) -> Result<Option<TenantEntry>> {
        let mut link = self.shared.pools.read.acquire().await?;
        let values = Values::default().add(id.as_str())?.done();
        let rows = link.rows(sql::TENANTS_FIND, values).await.map_err(nothing_happened)?;
        rows.first().map(entry).transpose()
    }

    async fn list_tenants(&self, after: Option<TenantNo>, limit: u32) -> Result<Vec<TenantEntry>> {
        let mut link = self.shared.pools.read.acquire().await?;
        let after = after.map_or(i32::MIN, |after| after.0);
        let values = Values::default().add(after)?.add(i64::from(limit))?.done();
        let rows = link.rows(sql::TENANTS_LIST, values).await.map_err(nothing_happened)?;
        rows.iter().map(entry).collect()
    }
}

fn entry(row: &PgRow) -> Result<TenantEntry> {
    let id: String = column(row, 1)?;
    Ok(TenantEntry {
        id: tenant_id(id)?,
        number: TenantNo(column(row, 0)?),
        place: Place(column(row, 2)?),
        open: column(row, 3)?,
    })
}

fn tenant_id(id: String) -> Result<TenantId> {
    TenantId::new(id).map_err(|error| corrupt("tenant id", error))
}
