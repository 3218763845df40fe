//! What is wrong is found and named.

use std::path::Path;

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, Connection, SqliteConnection};

use crate::history::{HEADER, assert_agrees, history};
use crate::process::{Scene, report};

/// Runs a statement on the demo's SQLite file and returns how many rows it changed; `{view}` stands for the table of a view.
async fn alter(file: &Path, view: Option<&str>, sql: &str) -> u64 {
    let options = SqliteConnectOptions::new().filename(file);
    let mut connection = SqliteConnection::connect_with(&options).await.unwrap();
    let mut sql = sql.to_owned();
    if let Some(view) = view {
        let find = sqlx::query_scalar("SELECT view_no FROM views WHERE name = $1").bind(view);
        let number: i64 = find.fetch_one(&mut connection).await.unwrap();
        sql = sql.replace("{view}", &format!("view_{number}"));
    }
    let changed = sqlx::query(AssertSqlSafe(sql)).execute(&mut connection).await.unwrap().rows_affected();
    connection.close().await.unwrap();
    changed
}

/// Two files of one tenant, and one file of another.
fn small() -> String {
    format!(
        "{HEADER}c1\t1\ta1\t5\t0\tlib/one.ex\nc1\t1\ta1\t7\t0\tlib/two.ex\nc2\t90000\ta2\t1\t1\ttest/three.ex\n"
    )
}

#[tokio::test]
async fn a_document_altered_by_hand_is_named_by_check() {
    let scene = Scene::new();
    let input = scene.write("input.tsv", small());
    scene.verified("sqlite", &input);
    let file = scene.data().join("demo.sqlite");
    let copy = "UPDATE {view} SET body = (SELECT body FROM {view} WHERE key = 'lib/two.ex') WHERE key = 'lib/one.ex'";
    assert_eq!(alter(&file, Some("file-stats"), copy).await, 1);

    let json = scene.path("check.json");
    let check = scene.on("sqlite", &input, &["--check", "--json", json.to_str().unwrap()]);
    assert_eq!(check.code, 1, "{check}");
    let named = check.out.lines().find(|line| line.starts_with("difference: ")).expect("it is named");
    for part in ["\"lib\"", "file-stats", "\"lib/one.ex\"", "expected", "added: 5", "found", "added: 7"] {
        assert!(named.contains(part), "{part} is missing in {named}");
    }
    assert_eq!(check.out.matches("difference: ").count(), 1, "{check}");
    assert_eq!(report(&json)["verified"], false);

    // The run itself finds it as well: what is stored is what counts.
    let run = scene.on("sqlite", &input, &[]);
    assert_eq!(run.code, 1, "{run}");
}

#[tokio::test]
async fn missing_strange_and_unreadable_documents_are_named_by_check() {
    for (view, sql, words) in [
        (
            "author-activity",
            "DELETE FROM {view} WHERE key = 'a2'",
            ["author-activity \"a2\"", "found nothing"],
        ),
        (
            "file-heat",
            "INSERT INTO {view} SELECT tenant_no, build, 'lib/none.ex', body FROM {view} WHERE key = 'lib/one.ex'",
            ["file-heat \"lib/none.ex\"", "expected nothing"],
        ),
        (
            "tenant-totals",
            "UPDATE {view} SET body = X'FF' WHERE tenant_no = (SELECT min(tenant_no) FROM {view})",
            ["tenant-totals", "document totals"],
        ),
    ] {
        let scene = Scene::new();
        let input = scene.write("input.tsv", small());
        scene.verified("sqlite", &input);
        assert_eq!(alter(&scene.data().join("demo.sqlite"), Some(view), sql).await, 1, "{sql}");
        let check = scene.on("sqlite", &input, &["--check"]);
        assert_eq!(check.code, 1, "{check}");
        let named = check.out.lines().find(|line| line.starts_with("difference: ")).expect("it is named");
        assert!(words.iter().all(|word| named.contains(word)), "{words:?} are missing in {named}");
    }
}

#[tokio::test]
async fn a_calendar_row_altered_by_hand_is_named_by_check() {
    let scene = Scene::new();
    let input = scene.write("input.tsv", small());
    scene.verified("sqlite", &input);
    let file = scene.data().join("demo.sqlite");
    assert_eq!(alter(&file, None, "UPDATE demo_calendar SET added = 6 WHERE added = 12").await, 1);
    assert_eq!(
        alter(&file, None, "INSERT INTO demo_calendar VALUES ('nobody', '1970-01-01', 1, 1, 1)").await,
        1
    );
    let check = scene.on("sqlite", &input, &["--check"]);
    assert_eq!(check.code, 1, "{check}");
    assert!(check.out.contains("calendar \"1970-01-01\": expected Day { changes: 2, added: 12"), "{check}");
    assert!(check.out.contains("tenant nobody, calendar"), "{check}");
    assert_eq!(check.out.matches("difference: ").count(), 2, "{check}");
}

#[test]
fn a_document_altered_by_hand_on_postgres_is_named_by_check() {
    let Some(server) = bellwether_launch::require("altering a document on PostgreSQL") else { return };
    let scene = Scene::new();
    let input = scene.write("input.tsv", small());
    let url = server.fresh_database().unwrap();
    let name = url.rsplit('/').next().unwrap();
    let arguments = ["--store", "postgres", "--url", &url, "--input", input.to_str().unwrap()];
    let run = scene.demo(arguments);
    assert_eq!(run.code, 0, "{run}");
    let view = server.sql(name, "SELECT view_no FROM views WHERE name = 'author-activity'").unwrap();
    let table = format!("view_{}", view.trim());
    let copy =
        format!("UPDATE {table} SET body = (SELECT body FROM {table} WHERE key = 'a1') WHERE key = 'a2'");
    server.sql(name, &copy).unwrap();

    let check = scene.demo(arguments.into_iter().chain(["--check"]));
    assert_eq!(check.code, 1, "{check}");
    let named = check.out.lines().find(|line| line.starts_with("difference: ")).expect("it is named");
    for part in ["\"test\"", "author-activity", "\"a2\"", "added: 1,", "added: 12,"] {
        assert!(named.contains(part), "{part} is missing in {named}");
    }
}

#[test]
fn other_input_and_another_depth_are_refused_and_change_nothing() {
    let scene = Scene::new();
    let rows = history(7, 300);
    let input = scene.write("input.tsv", &rows);
    scene.verified("sqlite", &input);

    let other = scene.write("other.tsv", rows.replacen("\ta0\t", "\ta1\t", 1));
    let run = scene.on("sqlite", &other, &[]);
    assert_eq!(run.code, 2, "{run}");
    assert!(run.errors.contains("another input"), "{run}");

    let arguments =
        ["--store", "sqlite", "--tenant-depth", "1", "--input", input.to_str().unwrap(), "--data"];
    let data = scene.data();
    let run = scene.demo(arguments.into_iter().chain([data.to_str().unwrap()]));
    assert_eq!(run.code, 2, "{run}");
    assert!(run.errors.contains("--tenant-depth 2"), "{run}");

    assert_agrees(&scene.verified("sqlite", &input), &rows, 2);
}

#[test]
fn a_second_run_on_the_same_data_repeats_nothing() {
    let scene = Scene::new();
    let rows = history(8, 300);
    let input = scene.write("input.tsv", &rows);
    scene.verified("sqlite", &input);
    let run = scene.on("sqlite", &input, &[]);
    assert_eq!(run.code, 0, "{run}");
    assert_eq!(run.out.matches("nothing to do").count(), 2, "import and catch-up: {run}");
}

#[test]
fn check_of_a_folder_without_a_store_is_refused() {
    let scene = Scene::new();
    let input = scene.write("input.tsv", small());
    let run = scene.on("sqlite", &input, &["--check"]);
    assert_eq!(run.code, 2, "{run}");
    assert!(!scene.data().exists(), "a check creates nothing");
    let run = scene.demo(["--check"]);
    assert_eq!(run.code, 2, "{run}");
}
