//! The store sits the exam.

#[path = "server/proxy.rs"]
mod proxy;

use std::sync::Arc;

use async_trait::async_trait;
use bellwether_conformance::{Commit, Enrolment, Missing, NotApplicable, Prepared, Schemas, Subject};
use bellwether_launch::{LaunchError, test_server};
use bellwether_postgres::{Postgres, PostgresConfig, sql_files};
use bellwether_storage::{
    AppendBatch, AppendOutcome, Database, Encoding, EventLog, EventType, NewEvent, Place, Projections,
    Sequence, StreamId, TenantAppend, TenantNo, Version, ViewName,
};
use bytes::Bytes;
use sqlx::postgres::{PgArguments, PgConnection};
use sqlx::{Connection, Row};

use crate::proxy::Fuse;

struct Fresh {
    url: String,
    store: Postgres,
    first: Arc<dyn Database>,
    second: Arc<dyn Database>,
    fuse: Arc<Fuse>,
}

impl Fresh {
    /// Changes exactly one row behind the store's back.
    async fn change(&self, query: sqlx::query::Query<'_, sqlx::Postgres, PgArguments>) {
        let mut direct = connect(&self.url).await;
        let changed =
            query.execute(&mut direct).await.expect("a change behind the store's back").rows_affected();
        assert_eq!(changed, 1);
        direct.close().await.expect("closing in good order");
    }
}

async fn connect(url: &str) -> PgConnection {
    PgConnection::connect(url).await.expect("a connection of the test's own")
}

async fn fresh_database() -> Result<String, LaunchError> {
    tokio::task::spawn_blocking(|| test_server()?.fresh_database()).await.expect("a thread")
}

/// Patient enough for the case that holds an append open for half a minute without a word.
fn patient(url: &str) -> PostgresConfig {
    PostgresConfig { idle_in_transaction_timeout_ms: 120_000, ..PostgresConfig::new(url) }
}

/// An event for a tenant that does not exist.
fn intruder() -> NewEvent {
    NewEvent {
        stream: StreamId::new("s").expect("a stream"),
        version: Version::ZERO.next(),
        id: uuid::Uuid::now_v7(),
        event_type: EventType::new("Intruded").expect("a type"),
        encoding: Encoding::MessagePack,
        body: Bytes::new(),
        headers: Bytes::new(),
    }
}

/// Everything the catalog knows of the tables, columns, constraints, indexes and sequences of a database.
async fn describe(url: &str) -> String {
    let text = "
SELECT line FROM (
    SELECT format('relation %s %s %s %s', c.relname, c.relkind, c.reloptions, pg_get_expr(c.relpartbound, c.oid)) AS line
      FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace
    UNION ALL
    SELECT format('column %s.%s %s %s %s %s %s', c.relname, a.attname, a.attnum, format_type(a.atttypid, a.atttypmod),
                  a.attnotnull, a.attcompression, (SELECT collname FROM pg_collation WHERE oid = a.attcollation))
      FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
     WHERE c.relnamespace = 'public'::regnamespace AND a.attnum > 0
    UNION ALL
    SELECT format('constraint %s.%s %s', r.conrelid::regclass, r.conname, pg_get_constraintdef(r.oid))
      FROM pg_constraint r WHERE r.connamespace = 'public'::regnamespace
    UNION ALL
    SELECT format('index %s', pg_get_indexdef(i.indexrelid))
      FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid WHERE c.relnamespace = 'public'::regnamespace
    UNION ALL
    SELECT format('version %s', version) FROM bellwether_schema
) lines ORDER BY line";
    let mut direct = connect(url).await;
    let rows = sqlx::query(text).fetch_all(&mut direct).await.expect("the schema");
    let lines = rows.iter().map(|row| row.get::<String, _>(0) + "\n");
    let described = lines.collect();
    direct.close().await.expect("closing in good order");
    described
}

impl Enrolment for Fresh {
    type Subject = Fresh;

    fn not_applicable() -> &'static [NotApplicable] {
        &[]
    }

    async fn fresh() -> Result<Fresh, Missing> {
        let url = match fresh_database().await {
            Ok(url) => url,
            Err(missing @ LaunchError::NotInstalled) => return Err(Missing { reason: missing.to_string() }),
            Err(error) => panic!("no server for the exam: {error}"),
        };
        let server = url.rsplit_once('@').map_or("", |(_, rest)| rest);
        let (address, database) = server.split_once('/').expect("a url with a database");
        let port = address.rsplit_once(':').and_then(|(_, port)| port.parse().ok()).unwrap_or(5432);
        let fuse = Arc::new(Fuse::default());
        let wire = proxy::start(port, Arc::clone(&fuse)).await;
        let through = format!("postgres://postgres@127.0.0.1:{wire}/{database}");
        let store = Postgres::connect_with(patient(&through)).await.expect("a fresh database");
        let second = Postgres::connect_with(patient(&url)).await.expect("the same database again");
        Ok(Fresh { url, first: Arc::new(store.clone()), second: Arc::new(second), store, fuse })
    }
}

#[async_trait]
impl Subject for Fresh {
    fn first(&self) -> &Arc<dyn Database> {
        &self.first
    }

    fn second(&self) -> &Arc<dyn Database> {
        &self.second
    }

    async fn raise_head(&self, tenant: TenantNo, head: Sequence) {
        let text = "UPDATE heads SET head = $2, xid = pg_current_xact_id() WHERE tenant_no = $1";
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

    async fn disturb(&self, commit: Commit, step: u32) -> bool {
        let exchanges = match commit {
            Commit::Append => {
                // So that the connection is there and knows the statement: then an append is one exchange.
                let nobody = TenantAppend {
                    tenant: TenantNo(i32::MAX),
                    expected_head: Sequence::ZERO,
                    place: Place::default(),
                    events: vec![intruder()],
                };
                let receipt =
                    self.store.append(&AppendBatch { tenants: vec![nobody], ..AppendBatch::default() }).await;
                assert_eq!(receipt.expect("an answer").outcomes, [AppendOutcome::NoTenant]);
                1
            }
            // Two statements, each prepared (the connection is new after every break) and then sent, and COMMIT.
            Commit::LockedAppend | Commit::Finish => 5,
        };
        if step == exchanges * 2 {
            return false;
        }
        self.fuse.arm(step);
        true
    }

    async fn schemas(&self) -> Schemas {
        let migrated = fresh_database().await.expect("another database");
        let mut direct = connect(&migrated).await;
        let stamp = "CREATE TABLE bellwether_schema (version int4 PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now());
                     INSERT INTO bellwether_schema (version) VALUES (1)";
        let first_version = include_str!("../sql/migrations/0001_base.sql");
        sqlx::raw_sql(first_version).execute(&mut direct).await.expect("the first version");
        sqlx::raw_sql(stamp).execute(&mut direct).await.expect("its stamp");
        direct.close().await.expect("closing in good order");
        Postgres::connect(&migrated).await.expect("a migration").close().await;
        Schemas { fresh: describe(&self.url).await, migrated: describe(&migrated).await }
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

bellwether_conformance::exam!(postgres, Fresh);
