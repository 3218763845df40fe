//! What the tests start from: a fresh database, handles, events, and direct connections.

use std::time::{Duration, Instant};

use bellwether_launch::require;
use bellwether_postgres::{Postgres, PostgresConfig};
use bellwether_storage::{
    AppendBatch, AppendOutcome, Build, Encoding, EventLog, EventType, FenceClaim, FenceOutcome, FenceRequest,
    NewEvent, Owner, PageQuery, PageStart, ProgressKey, ProjectionName, Projections, Result, Sequence,
    StoredEvent, StreamId, TenantAppend, TenantEntry, TenantId, TenantNo, Tenants, Version,
};
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection, Row};
use uuid::Uuid;

/// How long a test waits for what must come, on a slow machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// URL of a fresh database; `None` where this machine has no server.
pub(crate) async fn fresh(what: &'static str) -> Option<String> {
    let made =
        tokio::task::spawn_blocking(move || Some(require(what)?.fresh_database().expect("a fresh database")));
    made.await.expect("a thread")
}

/// A handle of its own incarnation.
pub(crate) async fn handle(url: &str) -> Postgres {
    Postgres::connect(url).await.expect("a handle")
}

/// A handle that loses its patience with locks soon, so that tests of waiting are short.
pub(crate) async fn impatient(url: &str) -> Postgres {
    let config = PostgresConfig { lock_timeout_ms: 200, ..PostgresConfig::new(url) };
    Postgres::connect_with(config).await.expect("a handle")
}

/// A connection past any handle.
pub(crate) async fn direct(url: &str) -> PgConnection {
    PgConnection::connect(url).await.expect("a direct connection")
}

/// Runs text over a direct connection.
pub(crate) async fn run(connection: &mut PgConnection, text: &str) {
    sqlx::raw_sql(AssertSqlSafe(text.to_owned()))
        .execute(connection)
        .await
        .unwrap_or_else(|error| panic!("{text}: {error}"));
}

/// The one number that a query answers.
pub(crate) async fn number(connection: &mut PgConnection, text: &str) -> i64 {
    let row = sqlx::raw_sql(AssertSqlSafe(text.to_owned())).fetch_one(connection).await;
    row.unwrap_or_else(|error| panic!("{text}: {error}")).get(0)
}

/// Waits until a query answers a number above zero.
pub(crate) async fn until(connection: &mut PgConnection, text: &str) {
    let since = Instant::now();
    while number(connection, text).await == 0 {
        assert!(since.elapsed() < PATIENCE, "waited {PATIENCE:?} for {text}");
        tokio::task::yield_now().await;
    }
}

pub(crate) async fn tenant(db: &Postgres, name: &str) -> TenantEntry {
    db.ensure_tenant(&TenantId::new(name).expect("an id")).await.expect("a tenant")
}

pub(crate) fn event(stream: &str, version: u64) -> NewEvent {
    NewEvent {
        stream: StreamId::new(stream).expect("a stream"),
        version: Version::new(version),
        id: Uuid::now_v7(),
        event_type: EventType::new("Happened").expect("a type"),
        encoding: Encoding::MessagePack,
        body: format!("{stream}:{version}").into(),
        headers: bytes::Bytes::new(),
    }
}

pub(crate) fn entry(tenant: &TenantEntry, head: u64, events: Vec<NewEvent>) -> TenantAppend {
    TenantAppend { tenant: tenant.number, expected_head: Sequence::new(head), place: tenant.place, events }
}

pub(crate) fn batch(mut tenants: Vec<TenantAppend>) -> AppendBatch {
    tenants.sort_by_key(|entry| entry.tenant);
    AppendBatch { tenants, ..AppendBatch::default() }
}

/// Outcome of a batch of one.
pub(crate) async fn append(
    db: &Postgres,
    tenant: &TenantEntry,
    head: u64,
    events: Vec<NewEvent>,
) -> Result<AppendOutcome> {
    Ok(db.append(&batch(vec![entry(tenant, head, events)])).await?.outcomes.remove(0))
}

pub(crate) async fn log(db: &Postgres, tenant: TenantNo) -> Vec<StoredEvent> {
    let query = PageQuery {
        tenant,
        after: Sequence::ZERO,
        up_to: None,
        types: None,
        events_max: 10_000,
        bytes_max: u64::MAX,
    };
    db.read_page(&query).await.expect("a page").events
}

pub(crate) fn owner() -> Owner {
    Owner(Uuid::now_v7())
}

pub(crate) async fn row(db: &Postgres, tenant: &TenantEntry) -> ProgressKey {
    let projection =
        db.ensure_projection(&ProjectionName::new("p").expect("a name")).await.expect("a projection");
    ProgressKey { tenant: tenant.number, projection, version: 1, build: Build::FIRST }
}

pub(crate) async fn take_over(db: &Postgres, owner: Owner, key: ProgressKey) -> Result<PageStart> {
    let claim = FenceRequest { key, claim: FenceClaim::TakeOver { seen: None } };
    match db.fence(owner, &[claim]).await?.remove(0) {
        FenceOutcome::Positioned(progress) => {
            Ok(PageStart { key, from: progress.sequence, generation: progress.generation, owner })
        }
        other => panic!("a take-over of whatever is there was answered {other:?}"),
    }
}
