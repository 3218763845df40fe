//! A database to test on, and what a store does on it.

use std::sync::Arc;
use std::time::Duration;

use bellwether_daemon::{Daemon, DaemonBuilder, DaemonConfig, Readable};
use bellwether_events::Event;
use bellwether_memory::Memory;
use bellwether_storage::{
    AppendBatch, AppendOutcome, Build, Database, DeadLetter, DocumentKey, DocumentSet, Encoding, EventType,
    NewEvent, PageStyle, ProgressKey, ProjectionName, StreamId, TenantAppend, TenantEntry, TenantId,
    ViewName,
};
use bytes::Bytes;
use uuid::Uuid;

use crate::bank::Money;

/// Both page styles, on memory.
pub(crate) fn grounds() -> Vec<Ground> {
    let streaming = Memory::new();
    let compute_first = Memory::new().with_page_style(PageStyle::ComputeFirst);
    [streaming, compute_first]
        .map(|memory| Ground { database: Arc::new(memory.clone()), again: Again::Memory, memory })
        .into()
}

/// Memory, SQLite, and PostgreSQL where it is installed.
pub(crate) async fn all_grounds() -> Vec<Ground> {
    let mut all = grounds();
    // Nobody uses the memory of these; faults are injected only where `grounds` are asked for.
    let file = Arc::new(tempfile::tempdir().unwrap());
    all.push(Ground::open(Again::Sqlite(file)).await);
    if let Some(server) = bellwether_launch::require("the daemon on PostgreSQL") {
        all.push(Ground::open(Again::Postgres(server.fresh_database().unwrap())).await);
    }
    all
}

/// A database to test on.
#[derive(Clone)]
pub(crate) struct Ground {
    database: Arc<dyn Database>,
    again: Again,
    pub(crate) memory: Memory,
}

/// How another process opens it.
#[derive(Clone)]
enum Again {
    Memory,
    Sqlite(Arc<tempfile::TempDir>),
    Postgres(String),
}

impl Ground {
    async fn open(again: Again) -> Self {
        let database: Arc<dyn Database> = match &again {
            Again::Memory => unreachable!("opened by its handle"),
            Again::Sqlite(folder) => {
                Arc::new(bellwether_sqlite::Sqlite::open(folder.path().join("daemon.db")).await.unwrap())
            }
            Again::Postgres(url) => Arc::new(bellwether_postgres::Postgres::connect(url).await.unwrap()),
        };
        Self { database, again, memory: Memory::new() }
    }

    /// The database as another process sees it.
    pub(crate) async fn another_process(&self) -> Self {
        match &self.again {
            Again::Memory => {
                let memory = self.memory.another_handle();
                Self { database: Arc::new(memory.clone()), again: Again::Memory, memory }
            }
            again => Self::open(again.clone()).await,
        }
    }

    pub(crate) fn database(&self) -> Arc<dyn Database> {
        self.database.clone()
    }

    /// A daemon that hears of events from discovery alone, and looks often.
    pub(crate) fn daemon(&self) -> DaemonBuilder {
        Daemon::over(vec![self.database()]).config(quick())
    }

    pub(crate) async fn tenant(&self, name: &str) -> TenantEntry {
        self.database.ensure_tenant(&TenantId::new(name).unwrap()).await.unwrap()
    }

    /// Appends events to one stream.
    pub(crate) async fn append(&self, tenant: &str, stream: &str, events: &[Money]) {
        append(self.database().as_ref(), tenant, stream, events).await;
    }

    /// Appends an event of this type whose content no code can read.
    pub(crate) async fn append_garbage(&self, tenant: &str, stream: &str, event_type: &str) {
        let body = Bytes::from_static(b"\xc1 not MessagePack");
        append_raw(self.database().as_ref(), tenant, stream, &[(event_type.to_owned(), body)]).await;
    }

    /// Appends an event of so many bytes that no projection declares.
    pub(crate) async fn append_unheard(&self, tenant: &str, stream: &str, bytes: usize) {
        let body = Bytes::from(vec![b'x'; bytes]);
        append_raw(self.database().as_ref(), tenant, stream, &[("Unheard".to_owned(), body)]).await;
    }

    /// Appends a deposit of nothing whose content is padded to this many bytes.
    pub(crate) async fn append_sized(&self, tenant: &str, stream: &str, bytes: usize) {
        let padded = Padded { padding: "x".repeat(bytes), cents: 0 };
        let body = bellwether_events::encode(
            "Money",
            Encoding::MessagePack,
            &[("Deposited", padded)].into_iter().collect::<std::collections::BTreeMap<_, _>>(),
        );
        append_raw(
            self.database().as_ref(),
            tenant,
            stream,
            &[("Deposited".to_owned(), body.unwrap().into())],
        )
        .await;
    }

    pub(crate) async fn progress_key(&self, tenant: &str, projection: &str) -> ProgressKey {
        let tenant = self.tenant(tenant).await.number;
        let projection =
            self.database.ensure_projection(&ProjectionName::new(projection).unwrap()).await.unwrap();
        ProgressKey { tenant, projection, version: 1, build: Build::FIRST }
    }

    pub(crate) async fn load<V: Readable<K>, K>(&self, tenant: &str, key: &str) -> Option<V> {
        load(self.database().as_ref(), tenant, key).await
    }

    pub(crate) async fn dead_letters(&self, tenant: &str) -> Vec<DeadLetter> {
        let tenant = self.tenant(tenant).await.number;
        self.database.dead_letters(tenant, 1_000).await.unwrap()
    }
}

/// Short intervals, so that tests wait for conditions and not for ticks.
pub(crate) fn quick() -> DaemonConfig {
    DaemonConfig {
        discovery_min_ms: 5,
        discovery_max_ms: 20,
        standby_poll_ms: 10,
        back_off_min_ms: 1,
        back_off_max_ms: 20,
        ..DaemonConfig::default()
    }
}

pub(crate) const SOON: Duration = Duration::from_secs(30);

#[derive(serde::Serialize)]
struct Padded {
    padding: String,
    cents: i64,
}

pub(crate) async fn append(database: &dyn Database, tenant: &str, stream: &str, events: &[Money]) {
    let encoded = |event: &Money| {
        (event.type_name().to_owned(), Bytes::from(event.encode(Encoding::MessagePack).unwrap()))
    };
    let events: Vec<_> = events.iter().map(encoded).collect();
    append_raw(database, tenant, stream, &events).await;
}

async fn append_raw(database: &dyn Database, tenant: &str, stream: &str, events: &[(String, Bytes)]) {
    let tenant = database.ensure_tenant(&TenantId::new(tenant).unwrap()).await.unwrap();
    let stream = StreamId::new(stream).unwrap();
    for events in events.chunks(1_000) {
        loop {
            let state = database.stream_versions(tenant.number, std::slice::from_ref(&stream)).await.unwrap();
            let mut version = state.streams[0].version;
            let events = events
                .iter()
                .map(|(event_type, body)| {
                    version = version.next();
                    NewEvent {
                        stream: stream.clone(),
                        version,
                        id: Uuid::now_v7(),
                        event_type: EventType::new(event_type).unwrap(),
                        encoding: Encoding::MessagePack,
                        body: body.clone(),
                        headers: Bytes::new(),
                    }
                })
                .collect();
            let tenants = vec![TenantAppend {
                tenant: tenant.number,
                expected_head: state.head,
                place: state.place,
                events,
            }];
            let receipt = database.append(&AppendBatch { tenants, ..AppendBatch::default() }).await.unwrap();
            match &receipt.outcomes[0] {
                AppendOutcome::Done { .. } => break,
                AppendOutcome::Stale { .. } | AppendOutcome::Busy => tokio::task::yield_now().await,
                other => panic!("{other:?}"),
            }
        }
    }
}

pub(crate) async fn load<V: Readable<K>, K>(database: &dyn Database, tenant: &str, key: &str) -> Option<V> {
    let tenant = database.ensure_tenant(&TenantId::new(tenant).unwrap()).await.unwrap().number;
    let view = database.ensure_view(&ViewName::new(V::NAME).unwrap(), V::VERSION).await.unwrap();
    let set = DocumentSet { view, tenant, build: Build::FIRST };
    let documents = database.load(set, &[DocumentKey::new(key).unwrap()]).await.unwrap();
    documents.first().map(|document| bellwether_events::decode(V::NAME, V::ENCODING, &document.body).unwrap())
}
