//! What the tests start from.

use std::future::Future;
use std::path::Path;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bellwether_sqlite::{Sqlite, SqliteConfig};
use bellwether_storage::{
    AppendBatch, AppendOutcome, Build, DocumentKey, DocumentSet, DocumentWrite, Encoding, EventLog,
    EventType, FenceClaim, FenceOutcome, FenceRequest, NewEvent, Owner, PageQuery, PageStart, ProgressKey,
    ProjectionName, Projections, Sequence, StreamId, TenantAppend, TenantEntry, TenantId, Tenants, Version,
    ViewName, ViewNo,
};
use bytes::Bytes;
use sqlx::Connection;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use tempfile::TempDir;
use uuid::Uuid;

pub(crate) const WAIT: Duration = Duration::from_secs(5);

pub(crate) struct Subject {
    pub(crate) store: Sqlite,
    pub(crate) folder: TempDir,
}

pub(crate) async fn subject() -> Subject {
    let folder = tempfile::tempdir().unwrap();
    let store = Sqlite::open(folder.path().join("store.db")).await.unwrap();
    Subject { store, folder }
}

impl Subject {
    pub(crate) fn path(&self) -> std::path::PathBuf {
        self.folder.path().join("store.db")
    }

    pub(crate) async fn second(&self, busy_timeout: Duration) -> Sqlite {
        let mut config = SqliteConfig::new(self.path());
        config.busy_timeout = busy_timeout;
        Sqlite::open_with(config).await.unwrap()
    }
}

pub(crate) async fn tenant(store: &Sqlite, id: &str) -> TenantEntry {
    store.ensure_tenant(&TenantId::new(id).unwrap()).await.unwrap()
}

pub(crate) fn event(stream: &str, version: u64, event_type: &str, body: usize) -> NewEvent {
    NewEvent {
        stream: StreamId::new(stream).unwrap(),
        version: Version::new(version),
        id: Uuid::now_v7(),
        event_type: EventType::new(event_type).unwrap(),
        encoding: Encoding::MessagePack,
        body: Bytes::from(vec![7; body]),
        headers: Bytes::new(),
    }
}

pub(crate) fn batch(tenant: &TenantEntry, head: u64, events: Vec<NewEvent>) -> AppendBatch {
    let entry = TenantAppend {
        tenant: tenant.number,
        expected_head: Sequence::new(head),
        place: tenant.place,
        events,
    };
    AppendBatch { tenants: vec![entry], ..AppendBatch::default() }
}

pub(crate) async fn append(
    store: &Sqlite,
    tenant: &TenantEntry,
    head: u64,
    events: Vec<NewEvent>,
) -> AppendOutcome {
    store.append(&batch(tenant, head, events)).await.unwrap().outcomes.remove(0)
}

pub(crate) fn all(tenant: &TenantEntry) -> PageQuery<'static> {
    PageQuery {
        tenant: tenant.number,
        after: Sequence::ZERO,
        up_to: None,
        types: None,
        events_max: 1000,
        bytes_max: u64::MAX,
    }
}

pub(crate) struct Page {
    pub(crate) start: PageStart,
    pub(crate) view: ViewNo,
    pub(crate) set: DocumentSet,
}

/// A fenced progress row and a view, ready for a page.
pub(crate) async fn page(store: &Sqlite, tenant: &TenantEntry) -> Page {
    let projection = store.ensure_projection(&ProjectionName::new("totals").unwrap()).await.unwrap();
    let view = store.ensure_view(&ViewName::new("totals").unwrap(), 1).await.unwrap();
    let key = ProgressKey { tenant: tenant.number, projection, version: 1, build: Build::FIRST };
    let owner = Owner(Uuid::now_v7());
    let claim = FenceRequest { key, claim: FenceClaim::TakeOver { seen: None } };
    let outcome = store.fence(owner, &[claim]).await.unwrap().remove(0);
    let FenceOutcome::Positioned(progress) = outcome else { panic!("{outcome:?}") };
    let start = PageStart { key, from: progress.sequence, generation: progress.generation, owner };
    Page { start, view, set: DocumentSet { view, tenant: tenant.number, build: key.build } }
}

pub(crate) fn documents(keys: std::ops::Range<usize>, bytes: usize) -> Vec<DocumentWrite> {
    keys.map(|n| DocumentWrite {
        key: DocumentKey::new(format!("key-{n:06}")).unwrap(),
        body: Some(Bytes::from(vec![n as u8; bytes])),
    })
    .collect()
}

/// Polls a future once, as a `select!` that goes another way does, and drops it.
pub(crate) async fn poll_once<F: Future>(future: F) -> bool {
    let future = pin!(future);
    matches!(future.poll(&mut Context::from_waker(Waker::noop())), Poll::Pending)
}

pub(crate) async fn raw(path: &Path) -> SqliteConnection {
    SqliteConnection::connect_with(&SqliteConnectOptions::new().filename(path).create_if_missing(true))
        .await
        .unwrap()
}
