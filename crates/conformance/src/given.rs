//! What cases start from: tenants, events, rows, and the plain ways to look at a store.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bellwether_storage::{
    AppendBatch, AppendOutcome, Build, Database, Document, DocumentKey, DocumentSet, DocumentWrite, Encoding,
    ErrorKind, EventType, FenceClaim, FenceOutcome, FenceRequest, Generation, NewEvent, Owner, PageQuery,
    PageStart, Place, Progress, ProgressKey, ProjectionName, ProjectionNo, Result, Sequence, StoredEvent,
    StreamId, TenantAppend, TenantEntry, TenantId, TenantNo, Version, ViewName, ViewNo,
};
use bytes::Bytes;
use uuid::Uuid;

/// A handle.
pub(crate) type Db = Arc<dyn Database>;

/// How long a case waits for what must come at once, on a slow machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Room for any page of a case.
pub(crate) const PLENTY: u64 = 64 * 1024 * 1024;

pub(crate) fn seq(number: u64) -> Sequence {
    Sequence::new(number)
}

pub(crate) fn ver(number: u64) -> Version {
    Version::new(number)
}

pub(crate) fn stream(name: &str) -> StreamId {
    StreamId::new(name).expect("a stream name of the exam")
}

pub(crate) fn key(name: &str) -> DocumentKey {
    DocumentKey::new(name).expect("a document key of the exam")
}

pub(crate) async fn tenant(db: &Db, name: &str) -> TenantEntry {
    db.ensure_tenant(&TenantId::new(name).expect("a tenant id of the exam")).await.expect("a tenant")
}

pub(crate) fn event(stream_name: &str, version: u64) -> NewEvent {
    typed(stream_name, version, "Happened", format!("{stream_name}:{version}"))
}

pub(crate) fn typed(stream_name: &str, version: u64, event_type: &str, body: impl Into<Bytes>) -> NewEvent {
    NewEvent {
        stream: stream(stream_name),
        version: ver(version),
        id: Uuid::now_v7(),
        event_type: EventType::new(event_type).expect("an event type of the exam"),
        encoding: Encoding::MessagePack,
        body: body.into(),
        headers: Bytes::new(),
    }
}

/// Events of one stream, versions `from ..= to`.
pub(crate) fn events(stream_name: &str, from: u64, to: u64) -> Vec<NewEvent> {
    (from..=to).map(|version| event(stream_name, version)).collect()
}

pub(crate) fn entry(tenant: &TenantEntry, expected_head: u64, events: Vec<NewEvent>) -> TenantAppend {
    TenantAppend { tenant: tenant.number, expected_head: seq(expected_head), place: tenant.place, events }
}

pub(crate) fn batch(mut tenants: Vec<TenantAppend>) -> AppendBatch {
    tenants.sort_by_key(|entry| entry.tenant);
    AppendBatch { tenants, ..AppendBatch::default() }
}

/// Sends a batch of one tenant and returns its outcome.
pub(crate) async fn outcome(
    db: &Db,
    tenant: &TenantEntry,
    head: u64,
    events: Vec<NewEvent>,
) -> Result<AppendOutcome> {
    let receipt = db.append(&batch(vec![entry(tenant, head, events)])).await?;
    assert_eq!(receipt.outcomes.len(), 1, "one entry has one outcome");
    Ok(receipt.outcomes.into_iter().next().expect("an outcome"))
}

/// Appends where nobody else does. A lock that was just dropped may still be on its way out, so busy is waited out.
pub(crate) async fn append(db: &Db, tenant: &TenantEntry, head: u64, events: Vec<NewEvent>) {
    let patience = Patience::new();
    loop {
        match outcome(db, tenant, head, events.clone()).await.expect("an append nothing speaks against") {
            AppendOutcome::Done { .. } => return,
            AppendOutcome::Busy => patience.pause("the head to be free").await,
            other => panic!("append at head {head} of {}: {other:?}", tenant.id),
        }
    }
}

/// Kind of the refusal of an append whose rows cannot go in. What was refused a moment ago may still hold the head, so busy is
/// waited out.
pub(crate) async fn refusal(db: &Db, batch: &AppendBatch) -> Option<ErrorKind> {
    let patience = Patience::new();
    loop {
        match db.append(batch).await {
            Ok(receipt) if receipt.outcomes.contains(&AppendOutcome::Busy) => {
                patience.pause("the heads to be free").await
            }
            answered => return kind(&answered),
        }
    }
}

/// Waits for a condition, a bounded time.
pub(crate) struct Patience {
    since: Instant,
}

impl Patience {
    pub(crate) fn new() -> Self {
        Self { since: Instant::now() }
    }

    /// Gives others a moment before the condition is looked at again.
    pub(crate) async fn pause(&self, what: &str) {
        assert!(self.since.elapsed() < PATIENCE, "waited {PATIENCE:?} for {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

pub(crate) fn everything(tenant: TenantNo, after: u64) -> PageQuery<'static> {
    PageQuery { tenant, after: seq(after), up_to: None, types: None, events_max: 10_000, bytes_max: PLENTY }
}

/// The whole log of a tenant, checked to be 1, 2, 3 … up to its head.
pub(crate) async fn log(db: &Db, tenant: TenantNo) -> Vec<StoredEvent> {
    let mut log: Vec<StoredEvent> = Vec::new();
    loop {
        let page = db.read_page(&everything(tenant, log.len() as u64)).await.expect("a page of the log");
        for event in page.events {
            assert_eq!(event.sequence.get(), log.len() as u64 + 1, "sequences are 1, 2, 3 …");
            log.push(event);
        }
        assert_eq!(page.through.get(), log.len() as u64, "a page of all types goes through its last event");
        if page.through == page.head {
            return log;
        }
    }
}

/// Head of a tenant.
pub(crate) async fn head(db: &Db, tenant: TenantNo) -> u64 {
    db.stream_versions(tenant, &[]).await.expect("the head").head.get()
}

/// Kind of the refusal; `None` when it was none.
pub(crate) fn kind<T>(result: &Result<T>) -> Option<ErrorKind> {
    result.as_ref().err().map(bellwether_storage::Error::kind)
}

pub(crate) fn owner() -> Owner {
    Owner(Uuid::now_v7())
}

pub(crate) async fn projection(db: &Db, name: &str) -> ProjectionNo {
    db.ensure_projection(&ProjectionName::new(name).expect("a projection name of the exam"))
        .await
        .expect("a projection")
}

pub(crate) async fn view(db: &Db, name: &str, version: u32) -> ViewNo {
    db.ensure_view(&ViewName::new(name).expect("a view name of the exam"), version).await.expect("a view")
}

/// The first version and build of a projection for a tenant.
pub(crate) async fn row(db: &Db, tenant: &TenantEntry, projection_name: &str) -> ProgressKey {
    let projection = projection(db, projection_name).await;
    ProgressKey { tenant: tenant.number, projection, version: 1, build: Build::FIRST }
}

/// One claim on one row.
pub(crate) async fn fence(
    db: &Db,
    owner: Owner,
    key: ProgressKey,
    claim: FenceClaim,
) -> Result<FenceOutcome> {
    let outcomes = db.fence(owner, &[FenceRequest { key, claim }]).await?;
    assert_eq!(outcomes.len(), 1, "one request has one outcome");
    Ok(outcomes[0])
}

/// Takes a row over, whatever is there, and says where a page starts.
pub(crate) async fn position(db: &Db, owner: Owner, key: ProgressKey) -> PageStart {
    let patience = Patience::new();
    loop {
        match fence(db, owner, key, FenceClaim::TakeOver { seen: None }).await {
            Ok(FenceOutcome::Positioned(progress)) => return start(key, progress),
            Ok(other) => panic!("a take-over of whatever is there was answered {other:?}"),
            // A page that was just dropped may still be on its way out.
            Err(error) if error.kind() == ErrorKind::Unavailable => {
                patience.pause("the row to be free").await
            }
            Err(error) => panic!("a take-over failed: {error:?}"),
        }
    }
}

pub(crate) fn start(key: ProgressKey, progress: Progress) -> PageStart {
    let owner = progress.owner.expect("a positioned row has an owner");
    PageStart { key, from: progress.sequence, generation: progress.generation, owner }
}

pub(crate) fn progress_of(start: &PageStart, sequence: u64) -> Progress {
    Progress { sequence: seq(sequence), generation: start.generation, owner: Some(start.owner) }
}

/// The row as stored.
pub(crate) async fn progress(db: &Db, key: ProgressKey) -> Option<Progress> {
    let rows = db.progress(&[key]).await.expect("progress");
    assert_eq!(rows.len(), 1, "one key has one answer");
    rows[0]
}

pub(crate) fn write(name: &str, body: impl Into<Bytes>) -> DocumentWrite {
    DocumentWrite { key: key(name), body: Some(body.into()) }
}

pub(crate) fn delete(name: &str) -> DocumentWrite {
    DocumentWrite { key: key(name), body: None }
}

pub(crate) fn set(view: ViewNo, key: ProgressKey) -> DocumentSet {
    DocumentSet { view, tenant: key.tenant, build: key.build }
}

/// All documents of a set, by key, each checked to be loadable as well.
pub(crate) async fn documents(db: &Db, set: DocumentSet) -> Vec<(String, Bytes)> {
    let listed = db.list(set, None, 10_000).await.expect("a list of documents");
    let keys: Vec<DocumentKey> = listed.iter().map(|document| document.key.clone()).collect();
    let mut loaded = db.load(set, &keys).await.expect("documents by key");
    loaded.sort_by(|a, b| a.key.cmp(&b.key));
    assert_eq!(listed, loaded, "listing and loading agree");
    listed.into_iter().map(|Document { key, body }| (key.as_str().to_owned(), body)).collect()
}

/// An entry of a tenant that is nowhere.
pub(crate) fn nobody() -> TenantEntry {
    TenantEntry {
        id: TenantId::new("nobody").expect("a tenant id"),
        number: TenantNo(i32::MAX),
        place: Place::default(),
        open: true,
    }
}

/// Generation by number.
pub(crate) fn generation(number: i64) -> Generation {
    Generation(number)
}
