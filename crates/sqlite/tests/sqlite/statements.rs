//! Every SQL file prepares, and none walks a whole table.

use bellwether_sqlite::{Sqlite, sql_files};
use bellwether_storage::{ErrorKind, Projections, ViewName};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{AssertSqlSafe, Connection, Row};

#[tokio::test]
async fn every_sql_file_prepares() {
    let folder = tempfile::tempdir().unwrap();
    let store = Sqlite::open(folder.path().join("store.db")).await.unwrap();
    let view = store.ensure_view(&ViewName::new("v").unwrap(), 1).await.unwrap();
    for (path, text) in sql_files() {
        store.prepare(text, view).await.unwrap_or_else(|error| panic!("{path}: {error}"));
    }
    let refused = store.prepare("SELECT nothing FROM nowhere", view).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Rejected);
}

/// The names under which the SQL files use tables that grow.
const GROWING: [&str; 18] = [
    "append_ids",
    "d",
    "dead_letters",
    "e",
    "events",
    "f",
    "h",
    "heads",
    "i",
    "l",
    "p",
    "progress",
    "projections",
    "streams",
    "t",
    "tenants",
    "views",
    "view_1",
];

#[tokio::test]
async fn no_statement_walks_a_whole_table_or_sorts_bodies() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let store = Sqlite::open(&path).await.unwrap();
    assert_eq!(store.ensure_view(&ViewName::new("v").unwrap(), 1).await.unwrap().0, 1);
    let mut direct =
        SqliteConnection::connect_with(&SqliteConnectOptions::new().filename(&path)).await.unwrap();

    for (path, text) in sql_files() {
        let text = format!("EXPLAIN QUERY PLAN {}", text.replace("{view}", "view_1"));
        let rows = sqlx::query(AssertSqlSafe(text)).fetch_all(&mut direct).await.unwrap();
        let plan: Vec<String> = rows.iter().map(|row| row.get("detail")).collect();
        for step in &plan {
            let mut words = step.split_whitespace();
            let walked = (words.next() == Some("SCAN")).then(|| words.next().unwrap_or_default());
            // `p` of events/page.sql is a page that was cut already.
            let allowed = *path == "events/page.sql" && walked == Some("p");
            assert!(
                allowed || !walked.is_some_and(|name| GROWING.contains(&name)),
                "{path} walks: {plan:#?}"
            );
        }
        if path.starts_with("events/") || path.starts_with("documents/") {
            let sorts = plan.iter().filter(|step| step.contains("TEMP B-TREE")).count();
            // The running sum over (sequence, size) of a page sorts numbers.
            assert!(sorts <= usize::from(path.starts_with("events/")), "{path} sorts: {plan:#?}");
        }
    }
}
