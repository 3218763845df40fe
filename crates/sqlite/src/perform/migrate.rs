//! Opening a file: refuse one that is not ours, create or migrate one that is.

use std::sync::Arc;
use std::time::Instant;

use bellwether_storage::{Error, Result};
use uuid::Uuid;

use super::file::{File, Use};
use super::link::{Link, column};
use crate::{SqliteConfig, error, sql};

/// What the header of our files says: "Bllw".
const APPLICATION_ID: i64 = 0x426c_6c77;

/// The version that this program's migrations lead to.
const LATEST: i64 = sql::MIGRATIONS[sql::MIGRATIONS.len() - 1].0;

/// Opens, creates or migrates the file.
///
/// # Errors
///
/// `Rejected` when the file is not ours or from a newer program, `Unavailable` when it cannot be opened or stays locked.
pub(crate) async fn open(config: SqliteConfig) -> Result<File> {
    let unknown = Arc::new(File::new(config, String::new()));
    let shown = unknown.config().path.display().to_string();
    let explain = |failed: sqlx::Error| match error::is_not_a_database(&failed) {
        true => foreign(&shown, "it is not a SQLite file"),
        false => {
            let failed = error::of(failed);
            Error::new(failed.kind(), format!("cannot open {shown}: {}", failed.message()))
                .fix("check that its folder exists, that it can be written to and that nobody else keeps it locked")
                .source(failed)
        }
    };

    let mut link = Link::connect(&unknown, Use::Open).await.map_err(explain)?;
    let header = read_header(&mut link).await.map_err(explain)?;
    let version = judge(&shown, header)?;
    switch_to_write_ahead_log(&mut link, &unknown, &shown).await?;
    if version < LATEST {
        migrate(&mut link, &shown).await?;
    }
    let system: String = link.one(sqlx::query(sql::SERVER_IDENTITY)).await?;
    link.close().await;
    Ok(File::new(unknown.config().clone(), system))
}

/// What a file says of itself.
#[derive(Debug, Clone, Copy)]
struct Header {
    application_id: i64,
    version: i64,
    /// Tables, indexes, views and triggers in it.
    objects: i64,
}

async fn read_header(link: &mut Link) -> sqlx::Result<Header> {
    const TEXT: &str = "SELECT a.application_id, v.user_version, (SELECT count(*) FROM sqlite_schema)
                          FROM pragma_application_id a, pragma_user_version v";
    let rows = link.up_to(sqlx::query(TEXT), 1).await?;
    let number = |index| rows.first().map_or(Ok(0), |row| sqlx::Row::try_get(row, index));
    Ok(Header { application_id: number(0)?, version: number(1)?, objects: number(2)? })
}

/// The version of a file of ours; zero for one that is empty.
fn judge(shown: &str, header: Header) -> Result<i64> {
    match header {
        Header { application_id: 0, version: 0, objects: 0 } => Ok(0),
        Header { application_id: APPLICATION_ID, version, .. } if version > LATEST => Err(Error::rejected(
            format!("{shown} has version {version}, this program knows versions up to {LATEST}"),
        )
        .fix("upgrade this program")),
        Header { application_id: APPLICATION_ID, version, .. } if version > 0 => Ok(version),
        _ => Err(foreign(shown, "it belongs to another application")),
    }
}

fn foreign(shown: &str, why: &str) -> Error {
    Error::rejected(format!("{shown} is not a Bellwether store: {why}"))
        .fix("choose another path; nothing was changed in it")
}

/// Switching needs the file for itself for a moment, and SQLite does not wait for that: ask until the deadline.
async fn switch_to_write_ahead_log(link: &mut Link, file: &File, shown: &str) -> Result<()> {
    let deadline = Instant::now() + file.config().busy_timeout;
    loop {
        match link.up_to(sqlx::query("PRAGMA journal_mode = WAL"), 1).await {
            Ok(rows) => {
                let mode: String = rows.first().map_or(Ok(String::new()), |row| column(row, 0))?;
                return match mode.as_str() {
                    "wal" => Ok(()),
                    _ => Err(Error::unsupported(format!(
                        "{shown} cannot have a write-ahead log, only {mode:?}"
                    ))
                    .fix("put the file on a local disk")),
                };
            }
            Err(failed) if error::is_busy(&failed) && Instant::now() < deadline => {
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
            Err(failed) => return Err(error::of(failed)),
        }
    }
}

/// Brings the file to [`LATEST`] in one transaction; whoever comes second finds nothing to do.
async fn migrate(link: &mut Link, shown: &str) -> Result<()> {
    link.execute(sqlx::query("BEGIN IMMEDIATE")).await.map_err(error::of)?;
    let header = read_header(link).await.map_err(error::of)?;
    let version = judge(shown, header)?;
    for (number, text) in sql::MIGRATIONS.iter().filter(|(number, _)| *number > version) {
        link.execute_all(text).await.map_err(error::of)?;
        tracing::info!(file = shown, version = number, "migrated");
    }
    if version == 0 {
        let system = Uuid::now_v7().simple().to_string();
        link.execute(sqlx::query("INSERT INTO server (only, system) VALUES (1, $1)").bind(system))
            .await
            .map_err(error::of)?;
    }
    let stamp = format!("PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {LATEST}");
    link.execute(sqlx::query(sqlx::AssertSqlSafe(stamp))).await.map_err(error::of)?;
    link.execute(sqlx::query("COMMIT")).await.map_err(error::of_commit)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use bellwether_storage::ErrorKind;

    use super::*;

    #[test]
    fn only_empty_files_and_our_own_are_accepted() {
        let header = |application_id, version, objects| Header { application_id, version, objects };
        assert_eq!(judge("f", header(0, 0, 0)).unwrap(), 0);
        assert_eq!(judge("f", header(APPLICATION_ID, LATEST, 12)).unwrap(), LATEST);
        for foreign in [
            header(0, 0, 1),
            header(0, 3, 0),
            header(1, 1, 9),
            header(APPLICATION_ID, 0, 3),
            header(APPLICATION_ID, LATEST + 1, 12),
        ] {
            assert_eq!(judge("f", foreign).unwrap_err().kind(), ErrorKind::Rejected, "{foreign:?}");
        }
    }
}
