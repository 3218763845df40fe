//! The projection port: registering, fencing, progress, documents outside a page.

use async_trait::async_trait;
use bellwether_storage::{
    Build, DeadLetter, Document, DocumentKey, DocumentSet, Error, EventType, FenceOutcome, FenceRequest,
    Generation, Owner, PageStart, Progress, ProgressKey, ProjectionName, ProjectionNo, Projections, Result,
    Row, Sequence, Statement, TenantNo, Timestamp, UnitOfWork, ViewName, ViewNo,
};
use bytes::Bytes;
use sqlx::AssertSqlSafe;
use sqlx::postgres::{PgArguments, PgRow};
use uuid::Uuid;

use crate::error::{corrupt, nothing_happened};
use crate::fence::{bind_keys, fence};
use crate::handle::Postgres;
use crate::perform::link::Link;
use crate::perform::migrate::LOCK;
use crate::sql;
use crate::unit::PostgresUnit;
use crate::user;
use crate::values::{Values, column};

/// Keys of one read, as the port allows.
const KEYS_MAX: usize = 10_000;

#[async_trait]
impl Projections for Postgres {
    async fn ensure_projection(&self, name: &ProjectionName) -> Result<ProjectionNo> {
        let mut link = self.shared.pools.control.acquire().await?;
        link.begin(LOCK).await.map_err(nothing_happened)?;
        let values = Values::default().add(name.as_str())?.done();
        let rows = link.rows(sql::PROJECTIONS_ENSURE, values).await.map_err(nothing_happened)?;
        let number = ProjectionNo(number(&rows)?);
        link.commit().await?;
        Ok(number)
    }

    async fn ensure_view(&self, name: &ViewName, version: u32) -> Result<ViewNo> {
        let mut link = self.shared.pools.control.acquire().await?;
        link.begin(LOCK).await.map_err(nothing_happened)?;
        let values = Values::default().add(name.as_str())?.add(i64::from(version))?.done();
        let rows = link.rows(sql::VIEWS_ENSURE, values).await.map_err(nothing_happened)?;
        let view = ViewNo(number(&rows)?);
        let create = sql::for_view(sql::VIEWS_CREATE, view);
        let create = if self.shared.lz4 { create } else { AssertSqlSafe(sql::without_lz4(&create.0)) };
        link.raw(create).await.map_err(nothing_happened)?;
        link.commit().await?;
        Ok(view)
    }

    async fn fence(&self, owner: Owner, requests: &[FenceRequest]) -> Result<Vec<FenceOutcome>> {
        fence(self, owner, requests).await
    }

    async fn progress(&self, keys: &[ProgressKey]) -> Result<Vec<Option<Progress>>> {
        let mut link = self.shared.pools.read.acquire().await?;
        let values = bind_keys(Values::default(), keys)?.done();
        let rows = link.rows(sql::PROGRESS_READ, values).await.map_err(nothing_happened)?;
        rows.iter().map(read_progress).collect()
    }

    async fn begin(&self, start: &PageStart) -> Result<Box<dyn UnitOfWork>> {
        let link = self.shared.pools.page.acquire().await?;
        Ok(Box::new(PostgresUnit::begin(link, *start).await?))
    }

    async fn load(&self, set: DocumentSet, keys: &[DocumentKey]) -> Result<Vec<Document>> {
        let mut link = self.shared.pools.read.acquire().await?;
        load(&mut link, set, keys).await
    }

    async fn list(&self, set: DocumentSet, after: Option<&DocumentKey>, limit: u32) -> Result<Vec<Document>> {
        let mut link = self.shared.pools.read.acquire().await?;
        let values = Values::default()
            .add(set.tenant.0)?
            .add(set.build.0)?
            .add(after.map_or("", DocumentKey::as_str))?
            .add(i64::from(limit))?
            .done();
        let rows = link
            .rows(sql::for_view(sql::DOCUMENTS_LIST, set.view), values)
            .await
            .map_err(nothing_happened)?;
        documents(&mut link, rows)
    }

    async fn dead_letters(&self, tenant: TenantNo, limit: u32) -> Result<Vec<DeadLetter>> {
        let mut link = self.shared.pools.read.acquire().await?;
        let values = Values::default().add(tenant.0)?.add(i64::from(limit))?.done();
        let rows = link.rows(sql::DEAD_LETTERS_LIST, values).await.map_err(nothing_happened)?;
        rows.iter().map(|row| dead_letter(tenant, row)).collect()
    }

    async fn set_up(&self, statements: &[Statement]) -> Result<()> {
        let mut link = self.shared.pools.control.acquire().await?;
        link.begin(LOCK).await.map_err(nothing_happened)?;
        for statement in statements {
            let (text, values) = match user::prepare(statement) {
                Ok(prepared) => prepared,
                Err(refused) => {
                    link.roll_back().await;
                    return Err(refused);
                }
            };
            if let Err(refused) = link.execute(text, values).await {
                link.roll_back().await;
                return Err(nothing_happened(refused));
            }
        }
        link.commit().await
    }

    async fn query(&self, statement: &Statement) -> Result<Vec<Row>> {
        let (text, values) = user::prepare(statement)?;
        // The connections of this pool refuse to write, whatever the statement is.
        let mut link = self.shared.pools.read.acquire().await?;
        query(&mut link, text, values).await
    }
}

/// Runs a user's query over this link.
pub(crate) async fn query(
    link: &mut Link,
    text: AssertSqlSafe<String>,
    values: PgArguments,
) -> Result<Vec<Row>> {
    let rows = link.rows_up_to(text, values, user::ROWS_MAX).await.map_err(user::refused)?;
    let rows = rows.ok_or_else(|| {
        Error::rejected(format!("a query answered more than {} rows", user::ROWS_MAX))
            .fix("add a LIMIT and page through")
    })?;
    rows.iter().map(user::neutral).collect()
}

/// Documents of these keys, over this link.
pub(crate) async fn load(link: &mut Link, set: DocumentSet, keys: &[DocumentKey]) -> Result<Vec<Document>> {
    if keys.len() > KEYS_MAX {
        return Err(Error::rejected(format!("{} keys in one read, at most {KEYS_MAX}", keys.len()))
            .fix("read in parts"));
    }
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    let names: Vec<&str> = keys.iter().map(DocumentKey::as_str).collect();
    let values = Values::default().add(set.tenant.0)?.add(set.build.0)?.add(names)?.done();
    let rows =
        link.rows(sql::for_view(sql::DOCUMENTS_LOAD, set.view), values).await.map_err(nothing_happened)?;
    documents(link, rows)
}

/// Takes the rows, so that each is given back as soon as its content is copied.
fn documents(link: &mut Link, rows: Vec<PgRow>) -> Result<Vec<Document>> {
    let mut bytes = 0;
    let mut read = Vec::with_capacity(rows.len());
    for row in rows {
        let key: &str = column(&row, 0)?;
        let body: &[u8] = column(&row, 1)?;
        bytes += body.len();
        let key = DocumentKey::new(key).map_err(|error| corrupt("document key", error))?;
        read.push(Document { key, body: Bytes::copy_from_slice(body) });
    }
    link.shrink(bytes);
    Ok(read)
}

/// A progress row; none where it is not there.
pub(crate) fn read_progress(row: &PgRow) -> Result<Option<Progress>> {
    let sequence: Option<i64> = column(row, 0)?;
    let Some(sequence) = sequence else { return Ok(None) };
    let owner: Option<Uuid> = column(row, 2)?;
    Ok(Some(Progress {
        sequence: Sequence::from_i64(sequence)?,
        generation: Generation(column(row, 1)?),
        owner: owner.map(Owner),
    }))
}

fn dead_letter(tenant: TenantNo, row: &PgRow) -> Result<DeadLetter> {
    let version: i64 = column(row, 1)?;
    let event_type: &str = column(row, 6)?;
    let projection = ProjectionNo(column(row, 0)?);
    let version = u32::try_from(version).map_err(|error| corrupt("version", error))?;
    Ok(DeadLetter {
        key: ProgressKey { tenant, projection, version, build: Build(column(row, 2)?) },
        sequence: Sequence::from_i64(column(row, 3)?)?,
        member: column(row, 4)?,
        event_id: column(row, 5)?,
        event_type: EventType::new(event_type).map_err(|error| corrupt("event type", error))?,
        class: column(row, 7)?,
        reason: column(row, 8)?,
        at: Timestamp::from_micros(column(row, 9)?),
    })
}

fn number(rows: &[PgRow]) -> Result<i32> {
    rows.first().map_or_else(|| Err(nothing_happened(sqlx::Error::RowNotFound)), |row| column(row, 0))
}
