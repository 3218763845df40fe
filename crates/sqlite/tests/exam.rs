//! The store sits the exam.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use bellwether_conformance::{Enrolment, Missing, NotApplicable, Prepared, Schemas, Subject};
use bellwether_sqlite::{Sqlite, sql_files};
use bellwether_storage::{Database, Projections, Sequence, TenantNo, ViewName};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{Connection, Row};
use tempfile::TempDir;

/// One transaction that writes holds the whole file; no two are ever open side by side.
const ONE_WRITER: &str =
    "a file has one writer at a time: an open transaction holds every head and every progress row of it";

/// The answer of a commit cannot get lost between a process and itself.
const NO_WIRE: &str = "COMMIT is a function call in this process: there is no connection between it and its answer that a test \
                       could break, only a disk";

struct File {
    folder: TempDir,
    store: Sqlite,
    first: Arc<dyn Database>,
    second: Arc<dyn Database>,
}

impl File {
    fn path(&self) -> PathBuf {
        self.folder.path().join("exam.db")
    }

    /// Changes exactly one row behind the store's back.
    async fn change(&self, query: sqlx::query::Query<'_, sqlx::Sqlite, sqlx::sqlite::SqliteArguments>) {
        let mut direct = connect(&self.path()).await;
        let changed =
            query.execute(&mut direct).await.expect("a change behind the store's back").rows_affected();
        assert_eq!(changed, 1);
        direct.close().await.expect("closing in good order");
    }
}

async fn connect(path: &Path) -> SqliteConnection {
    let options = SqliteConnectOptions::new().filename(path).create_if_missing(true);
    SqliteConnection::connect_with(&options).await.expect("a connection of the test's own")
}

/// Everything SQLite knows of the tables, indexes and versions in a file.
async fn describe(path: &Path) -> String {
    let mut direct = connect(path).await;
    let text = "SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_schema
                UNION ALL SELECT 'pragma', 'user_version', '', user_version FROM pragma_user_version
                UNION ALL SELECT 'pragma', 'application_id', '', application_id FROM pragma_application_id
                ORDER BY 1, 2";
    let rows = sqlx::query(text).fetch_all(&mut direct).await.expect("the schema");
    let lines =
        rows.iter().map(|row| [0, 1, 2, 3].map(|n| row.get_unchecked::<String, _>(n)).join(" | ") + "\n");
    lines.collect()
}

impl Enrolment for File {
    type Subject = File;

    fn not_applicable() -> &'static [NotApplicable] {
        &[
            NotApplicable { case: "the_others_of_a_batch_go_in_beside_a_busy_one", reason: ONE_WRITER },
            NotApplicable { case: "an_append_held_open_delays_no_other_tenant", reason: ONE_WRITER },
            NotApplicable { case: "pages_of_two_tenants_are_open_side_by_side", reason: ONE_WRITER },
            NotApplicable { case: "a_disturbed_append_is_answered_truly", reason: NO_WIRE },
            NotApplicable { case: "a_disturbed_locked_append_is_answered_truly", reason: NO_WIRE },
            NotApplicable { case: "a_disturbed_page_is_answered_truly", reason: NO_WIRE },
        ]
    }

    async fn fresh() -> Result<File, Missing> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("exam.db");
        let store = Sqlite::open(&path).await.expect("a new file");
        let second = Sqlite::open(&path).await.expect("the same file again");
        Ok(File { folder, first: Arc::new(store.clone()), second: Arc::new(second), store })
    }
}

#[async_trait]
impl Subject for File {
    fn first(&self) -> &Arc<dyn Database> {
        &self.first
    }

    fn second(&self) -> &Arc<dyn Database> {
        &self.second
    }

    async fn raise_head(&self, tenant: TenantNo, head: Sequence) {
        let text =
            "UPDATE heads SET head = $2, moved = (SELECT max(moved) + 1 FROM heads) WHERE tenant_no = $1";
        self.change(sqlx::query(text).bind(tenant.0).bind(head.as_i64())).await;
    }

    async fn remove_event(&self, tenant: TenantNo, sequence: Sequence) {
        let text = "DELETE FROM events WHERE tenant_no = $1 AND seq = $2";
        self.change(sqlx::query(text).bind(tenant.0).bind(sequence.as_i64())).await;
    }

    async fn set_open(&self, tenant: TenantNo, open: bool) {
        self.change(sqlx::query("UPDATE heads SET open = $2 WHERE tenant_no = $1").bind(tenant.0).bind(open))
            .await;
    }

    async fn schemas(&self) -> Schemas {
        let migrated = self.folder.path().join("migrated.db");
        let mut direct = connect(&migrated).await;
        let first_version = include_str!("../sql/migrations/0001_base.sql");
        sqlx::raw_sql(first_version).execute(&mut direct).await.expect("the first version");
        let stamp = "PRAGMA application_id = 1114401911; PRAGMA user_version = 1; INSERT INTO server VALUES (1, 'first')";
        sqlx::raw_sql(stamp).execute(&mut direct).await.expect("its stamp");
        direct.close().await.expect("closing in good order");
        Sqlite::open(&migrated).await.expect("a migration").close().await;
        Schemas { fresh: describe(&self.path()).await, migrated: describe(&migrated).await }
    }

    async fn prepare_all(&self) -> Vec<Prepared> {
        let view = self.store.ensure_view(&ViewName::new("exam").expect("a name"), 1).await.expect("a view");
        let mut prepared = Vec::new();
        for (file, text) in sql_files() {
            let refused = self.store.prepare(text, view).await.err().map(|error| error.to_string());
            prepared.push(Prepared { file: (*file).to_owned(), refused });
        }
        prepared
    }
}

bellwether_conformance::exam!(sqlite, File);
