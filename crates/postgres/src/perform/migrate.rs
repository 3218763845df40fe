//! Bringing a database's tables to what this version of the code expects.

use bellwether_storage::{Error, Result};
use sqlx::postgres::PgArguments;
use sqlx::{AssertSqlSafe, Row};

use crate::error::nothing_happened;
use crate::perform::link::Link;
use crate::sql;

/// Advisory lock of migrations and registrations: the letters of "bellweth" as a number.
pub(crate) const LOCK: &str = "SELECT pg_advisory_xact_lock(7090481019683701864)";

const VERSIONS: &str = "CREATE TABLE IF NOT EXISTS bellwether_schema (
    version    int4 PRIMARY KEY,
    applied_at timestamptz NOT NULL DEFAULT now()
)";

const LZ4: &str = "SELECT 'lz4' = ANY (enumvals) FROM pg_settings WHERE name = 'default_toast_compression'";

/// Whether this server can compress with lz4.
pub(crate) async fn has_lz4(link: &mut Link) -> Result<bool> {
    let rows = link.rows(LZ4, PgArguments::default()).await.map_err(nothing_happened)?;
    let found: Option<Option<bool>> =
        rows.first().map(|row| row.try_get(0)).transpose().map_err(nothing_happened)?;
    Ok(found.flatten().unwrap_or(false))
}

/// Applies what is missing, in one transaction. Programs that start together wait for each other here.
///
/// # Errors
///
/// `Unsupported` when a newer version of the code was here before.
pub(crate) async fn migrate(link: &mut Link, lz4: bool) -> Result<()> {
    if version(link).await? == Some(newest()) {
        return Ok(());
    }
    // A program that migrates a large database may take longer than a row lock is waited for.
    link.begin("SET LOCAL lock_timeout = 0;").await.map_err(nothing_happened)?;
    link.raw(LOCK).await.map_err(nothing_happened)?;
    link.raw(VERSIONS).await.map_err(nothing_happened)?;
    let found = version(link).await?.unwrap_or(0);
    if found > newest() {
        return Err(Error::unsupported(format!(
            "the tables are of version {found}, this program knows {}",
            newest()
        ))
        .fix("upgrade this program"));
    }
    for (number, text) in sql::MIGRATIONS.iter().filter(|(number, _)| *number > found) {
        let text = if lz4 { (*text).to_owned() } else { sql::without_lz4(text) };
        link.raw(AssertSqlSafe(text)).await.map_err(nothing_happened)?;
        link.raw(AssertSqlSafe(format!("INSERT INTO bellwether_schema (version) VALUES ({number})")))
            .await
            .map_err(nothing_happened)?;
        tracing::info!(version = number, "migrated");
    }
    link.commit().await
}

/// Version of the tables; `None` in a fresh database.
async fn version(link: &mut Link) -> Result<Option<i32>> {
    let exists = "SELECT to_regclass('bellwether_schema') IS NOT NULL";
    let rows = link.rows(exists, PgArguments::default()).await.map_err(nothing_happened)?;
    let exists: bool = rows.first().map_or(Ok(false), |row| row.try_get(0)).map_err(nothing_happened)?;
    if !exists {
        return Ok(None);
    }
    let newest = "SELECT max(version) FROM bellwether_schema";
    let rows = link.rows(newest, PgArguments::default()).await.map_err(nothing_happened)?;
    rows.first().map_or(Ok(None), |row| row.try_get(0)).map_err(nothing_happened)
}

fn newest() -> i32 {
    sql::MIGRATIONS.last().map_or(0, |(number, _)| *number)
}
