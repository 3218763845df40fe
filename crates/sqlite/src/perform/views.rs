//! Projections and views by number, and their documents outside a page.

use std::sync::Arc;

use bellwether_storage::{
    Build, DeadLetter, Document, DocumentKey, Error, EventType, ProgressKey, ProjectionName, ProjectionNo,
    Result, Sequence, TenantNo, Timestamp, ViewName, ViewNo,
};
use bytes::Bytes;
use sqlx::AssertSqlSafe;
use sqlx::sqlite::SqliteRow;
use uuid::Uuid;

use super::append::json;
use super::file::File;
use super::gate::Gate;
use super::link::{Link, column};
use crate::decide::turns::Turn;
use crate::{error, sql};

/// See [`Projections::ensure_projection`](bellwether_storage::Projections::ensure_projection).
pub(crate) async fn ensure_projection(
    file: &File,
    gate: &Arc<Gate>,
    name: &ProjectionName,
) -> Result<ProjectionNo> {
    let mut transaction = gate.begin(Turn::Short, file.config().busy_timeout).await?;
    let number = transaction.link().one(sqlx::query(sql::PROJECTIONS_ENSURE).bind(name.as_str())).await;
    transaction.end(number.map(ProjectionNo)).await
}

/// See [`Projections::ensure_view`](bellwether_storage::Projections::ensure_view).
pub(crate) async fn ensure_view(
    file: &File,
    gate: &Arc<Gate>,
    name: &ViewName,
    version: u32,
) -> Result<ViewNo> {
    let mut transaction = gate.begin(Turn::Short, file.config().busy_timeout).await?;
    let number = create_view(transaction.link(), name, version).await;
    transaction.end(number).await
}

async fn create_view(link: &mut Link, name: &ViewName, version: u32) -> Result<ViewNo> {
    let view = ViewNo(link.one(sqlx::query(sql::VIEWS_ENSURE).bind(name.as_str()).bind(version)).await?);
    link.execute(sqlx::query(AssertSqlSafe(sql::for_view(sql::VIEWS_CREATE, view))))
        .await
        .map_err(error::of)?;
    Ok(view)
}

/// Keys of one read outside a page, as the port allows.
const KEYS_MAX: usize = 10_000;

/// See [`Projections::load`](bellwether_storage::Projections::load).
pub(crate) fn check_keys(keys: &[DocumentKey]) -> Result<()> {
    match keys.len() {
        0..=KEYS_MAX => Ok(()),
        count => {
            Err(Error::rejected(format!("{count} keys in one read, at most {KEYS_MAX}")).fix("read in parts"))
        }
    }
}

/// Documents by key; on a connection inside a page it sees the page's own writes.
pub(crate) async fn load(
    link: &mut Link,
    view: ViewNo,
    tenant: TenantNo,
    build: Build,
    keys: &[DocumentKey],
) -> Result<Vec<Document>> {
    let names: Vec<&str> = keys.iter().map(DocumentKey::as_str).collect();
    let text = AssertSqlSafe(sql::for_view(sql::DOCUMENTS_LOAD, view));
    let query = sqlx::query(text).bind(tenant.0).bind(build.0).bind(json(&names));
    let mut documents = Vec::new();
    link.each(query, |row| {
        documents.push(document(row)?);
        Ok(())
    })
    .await?;
    Ok(documents)
}

/// See [`Projections::list`](bellwether_storage::Projections::list).
pub(crate) async fn list(
    link: &mut Link,
    (view, tenant, build): (ViewNo, TenantNo, Build),
    after: Option<&DocumentKey>,
    limit: u32,
) -> Result<Vec<Document>> {
    let text = AssertSqlSafe(sql::for_view(sql::DOCUMENTS_LIST, view));
    let after = after.map_or("", DocumentKey::as_str);
    let query = sqlx::query(text).bind(tenant.0).bind(build.0).bind(after).bind(limit);
    let mut documents = Vec::new();
    link.each(query, |row| {
        documents.push(document(row)?);
        Ok(())
    })
    .await?;
    Ok(documents)
}

/// See [`Projections::dead_letters`](bellwether_storage::Projections::dead_letters).
pub(crate) async fn dead_letters(link: &mut Link, tenant: TenantNo, limit: u32) -> Result<Vec<DeadLetter>> {
    let mut letters = Vec::new();
    link.each(sqlx::query(sql::DEAD_LETTERS_LIST).bind(tenant.0).bind(limit), |row| {
        letters.push(DeadLetter {
            key: ProgressKey {
                tenant,
                projection: ProjectionNo(column(row, 0)?),
                version: column(row, 1)?,
                build: Build(column(row, 2)?),
            },
            sequence: Sequence::from_i64(column(row, 3)?)?,
            member: column(row, 4)?,
            event_id: Uuid::from_slice(column(row, 5)?).map_err(|_| unreadable("dead letter's event id"))?,
            event_type: EventType::new(column::<&str>(row, 6)?)
                .map_err(|_| unreadable("dead letter's event type"))?,
            class: column(row, 7)?,
            reason: column(row, 8)?,
            at: Timestamp::from_micros(column(row, 9)?),
        });
        Ok(())
    })
    .await?;
    Ok(letters)
}

fn document(row: &SqliteRow) -> Result<Document> {
    let key = DocumentKey::new(column::<&str>(row, 0)?).map_err(|_| unreadable("document's key"))?;
    Ok(Document { key, body: Bytes::from(column::<Vec<u8>>(row, 1)?) })
}

fn unreadable(what: &str) -> Error {
    Error::corrupt(format!("a {what} cannot be read")).fix("check who else writes to this file")
}
