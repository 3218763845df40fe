//! Every fault does what it says, and nothing else.

use std::time::Duration;

use bellwether_memory::{Answer, Commit, Memory};
use bellwether_storage::{
    AppendBatch, AppendOutcome, Build, Database, Discovery, DocumentKey, DocumentSet, DocumentWrite,
    Encoding, ErrorKind, EventLog, EventType, FenceClaim, FenceOutcome, FenceRequest, NewEvent, Owner,
    PageQuery, PageStart, PageStyle, Place, ProgressKey, ProjectionName, Projections, Sequence, StreamId,
    TenantAppend, TenantEntry, TenantId, Tenants, Version, ViewName, ViewNo,
};
use bytes::Bytes;
use uuid::Uuid;

const WAIT: Duration = Duration::from_secs(5);

async fn tenant(memory: &Memory) -> TenantEntry {
    memory.ensure_tenant(&TenantId::new("acme").unwrap()).await.unwrap()
}

fn event(version: u64) -> NewEvent {
    NewEvent {
        stream: StreamId::new("s").unwrap(),
        version: Version::new(version),
        id: Uuid::now_v7(),
        event_type: EventType::new("Happened").unwrap(),
        encoding: Encoding::MessagePack,
        body: Bytes::from_static(b"x"),
        headers: Bytes::new(),
    }
}

async fn append(
    memory: &Memory,
    tenant: &TenantEntry,
    head: u64,
) -> bellwether_storage::Result<AppendOutcome> {
    let entry = TenantAppend {
        tenant: tenant.number,
        expected_head: Sequence::new(head),
        place: tenant.place,
        events: vec![event(head + 1)],
    };
    let receipt = memory.append(&AppendBatch { tenants: vec![entry], ..AppendBatch::default() }).await?;
    Ok(receipt.outcomes[0].clone())
}

async fn head(memory: &Memory, tenant: &TenantEntry) -> u64 {
    memory.stream_versions(tenant.number, &[]).await.unwrap().head.get()
}

fn everything(tenant: &TenantEntry) -> PageQuery<'static> {
    PageQuery {
        tenant: tenant.number,
        after: Sequence::ZERO,
        up_to: None,
        types: None,
        events_max: 1000,
        bytes_max: 1 << 20,
    }
}

/// A positioned page and its view.
async fn page(memory: &Memory, tenant: &TenantEntry) -> (PageStart, ViewNo) {
    let projection = memory.ensure_projection(&ProjectionName::new("p").unwrap()).await.unwrap();
    let view = memory.ensure_view(&ViewName::new("v").unwrap(), 1).await.unwrap();
    let key = ProgressKey { tenant: tenant.number, projection, version: 1, build: Build::FIRST };
    let owner = Owner(Uuid::now_v7());
    let request = FenceRequest { key, claim: FenceClaim::TakeOver { seen: None } };
    match memory.fence(owner, &[request]).await.unwrap()[..] {
        [FenceOutcome::Positioned(row)] => {
            (PageStart { key, from: row.sequence, generation: row.generation, owner }, view)
        }
        ref other => panic!("{other:?}"),
    }
}

fn document(key: &str) -> DocumentWrite {
    DocumentWrite { key: DocumentKey::new(key).unwrap(), body: Some(Bytes::from_static(b"x")) }
}

#[tokio::test]
async fn a_lost_answer_is_unknown_before_and_after_the_effect() {
    for (answer, happened) in [(Answer::LostBefore, 0), (Answer::LostAfter, 1)] {
        let memory = Memory::new();
        let acme = tenant(&memory).await;
        memory.faults().lose_answer(Commit::Append, answer);
        assert_eq!(append(&memory, &acme, 0).await.unwrap_err().kind(), ErrorKind::Unknown);
        assert_eq!(head(&memory, &acme).await, happened);

        memory.faults().lose_answer(Commit::LockedAppend, answer);
        let lock = memory.lock_head(acme.number, WAIT).await.unwrap();
        let unknown = lock.append(&[event(happened + 1)], &[], None).await.unwrap_err();
        assert_eq!(unknown.kind(), ErrorKind::Unknown);
        assert_eq!(head(&memory, &acme).await, 2 * happened);

        memory.faults().lose_answer(Commit::Finish, answer);
        let (start, view) = page(&memory, &acme).await;
        let mut unit = memory.begin(&start).await.unwrap();
        unit.write(view, vec![document("d")]).await.unwrap();
        assert_eq!(unit.finish(Sequence::new(1), &[]).await.unwrap_err().kind(), ErrorKind::Unknown);
        let row = memory.progress(&[start.key]).await.unwrap()[0].unwrap();
        assert_eq!(row.sequence.get(), happened);
        let set = DocumentSet { view, tenant: acme.number, build: Build::FIRST };
        assert_eq!(memory.list(set, None, 10).await.unwrap().len() as u64, happened);
    }
}

#[tokio::test]
async fn failed_commits_and_unreachable_calls_are_counted_down() {
    let memory = Memory::new();
    let acme = tenant(&memory).await;
    memory.faults().fail_commits(2);
    for expected in [Some(ErrorKind::Unavailable), Some(ErrorKind::Unavailable), None] {
        assert_eq!(append(&memory, &acme, 0).await.err().map(|error| error.kind()), expected);
    }
    assert_eq!(head(&memory, &acme).await, 1);
    memory.faults().unavailable(3);
    for expected in [true, true, true, false] {
        assert_eq!(memory.another_handle().moved_heads(None).await.is_err(), expected, "of all handles");
    }
    memory.faults().unavailable(3);
    memory.faults().clear();
    assert_eq!(head(&memory, &acme).await, 1);
}

#[tokio::test]
async fn a_held_head_is_busy_until_it_is_let_go() {
    let memory = Memory::new();
    let acme = tenant(&memory).await;
    let held = memory.faults().hold_head(acme.number).expect("a free head");
    assert!(memory.faults().hold_head(acme.number).is_none(), "it is held already");
    assert_eq!(append(&memory, &acme, 0).await.unwrap(), AppendOutcome::Busy);
    let refused = memory.lock_head(acme.number, Duration::from_millis(1)).await.map(drop).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unavailable);
    drop(held);
    assert!(matches!(append(&memory, &acme, 0).await.unwrap(), AppendOutcome::Done { .. }));
}

#[tokio::test]
async fn a_failover_loses_the_last_commits_and_ends_what_was_open() {
    let memory = Memory::new();
    let acme = tenant(&memory).await;
    append(&memory, &acme, 0).await.unwrap();
    memory.faults().keep_history(2);
    let (mut start, _) = page(&memory, &acme).await;
    for head in 1..4 {
        append(&memory, &acme, head).await.unwrap();
    }
    memory.begin(&start).await.unwrap().finish(Sequence::new(4), &[]).await.unwrap();
    start.from = Sequence::new(4);
    let before = memory.moved_heads(None).await.unwrap().cursor;
    let mut lock = memory.lock_head(acme.number, WAIT).await.unwrap();
    let mut unit = memory.begin(&start).await.unwrap();

    // The page and one append are lost, no more than was kept.
    assert_eq!(memory.faults().fail_over(9), 2);
    assert_eq!(head(&memory, &acme).await, 3);
    assert_eq!(memory.read_page(&everything(&acme)).await.unwrap().events.len(), 3);
    assert_eq!(memory.progress(&[start.key]).await.unwrap()[0].unwrap().sequence, Sequence::ZERO);

    let identity = memory.identity().await.unwrap();
    assert_ne!(identity, before.identity);
    assert!(identity.timeline > before.identity.timeline && identity.system == before.identity.system);
    assert_eq!(memory.moved_heads(Some(&before)).await.unwrap().heads.len(), 1, "an old cursor starts anew");

    assert_eq!(lock.versions(&[]).await.unwrap_err().kind(), ErrorKind::Unavailable);
    assert_eq!(lock.append(&[event(9)], &[], None).await.unwrap_err().kind(), ErrorKind::Unavailable);
    assert_eq!(unit.load(ViewNo(1), &[]).await.unwrap_err().kind(), ErrorKind::Unavailable);
    assert_eq!(unit.finish(Sequence::new(9), &[]).await.unwrap_err().kind(), ErrorKind::Unavailable);
    assert_eq!(
        memory.begin(&start).await.map(drop).unwrap_err().kind(),
        ErrorKind::Fenced,
        "the position was lost"
    );
    append(&memory, &acme, 3).await.unwrap();
    assert_eq!(memory.faults().fail_over(1), 1);
    assert_eq!(head(&memory, &acme).await, 3);
}

#[tokio::test]
async fn a_restart_changes_the_identity_and_loses_nothing() {
    let memory = Memory::new();
    let acme = tenant(&memory).await;
    append(&memory, &acme, 0).await.unwrap();
    let before = memory.identity().await.unwrap();
    let (start, _) = page(&memory, &acme).await;
    let unit = memory.begin(&start).await.unwrap();
    memory.faults().change_identity();
    assert_ne!(memory.identity().await.unwrap(), before);
    assert_eq!(head(&memory, &acme).await, 1);
    let again = memory.begin(&start).await.unwrap();
    assert_eq!(unit.finish(Sequence::new(1), &[]).await.unwrap_err().kind(), ErrorKind::Unavailable);
    again.finish(Sequence::new(1), &[]).await.unwrap();
}

#[tokio::test]
async fn poison_rows_are_refused_and_their_neighbours_are_not() {
    let memory = Memory::new();
    let acme = tenant(&memory).await;
    memory.faults().refuse_stream(&StreamId::new("s").unwrap());
    assert_eq!(append(&memory, &acme, 0).await.unwrap_err().kind(), ErrorKind::Rejected);
    let lock = memory.lock_head(acme.number, WAIT).await.unwrap();
    assert_eq!(lock.append(&[event(1)], &[], None).await.unwrap_err().kind(), ErrorKind::Rejected);
    let lock = memory.lock_head(acme.number, WAIT).await.unwrap();
    let innocent = NewEvent { stream: StreamId::new("t").unwrap(), ..event(1) };
    lock.append(&[innocent], &[], None).await.unwrap();

    memory.faults().refuse_document(&DocumentKey::new("bad").unwrap());
    let (start, view) = page(&memory, &acme).await;
    let mut unit = memory.begin(&start).await.unwrap();
    unit.write(view, vec![document("good")]).await.unwrap();
    assert_eq!(unit.write(view, vec![document("bad")]).await.unwrap_err().kind(), ErrorKind::Rejected);
    assert!(unit.finish(Sequence::new(1), &[]).await.is_err(), "the unit is gone");
    let set = DocumentSet { view, tenant: acme.number, build: Build::FIRST };
    assert_eq!(memory.list(set, None, 10).await.unwrap(), []);
}

#[tokio::test]
async fn a_row_is_waited_for_no_longer_than_asked() {
    let memory = Memory::new().with_row_wait(Duration::from_millis(1));
    let acme = tenant(&memory).await;
    let (start, _) = page(&memory, &acme).await;
    let unit = memory.begin(&start).await.unwrap();
    assert_eq!(memory.begin(&start).await.map(drop).unwrap_err().kind(), ErrorKind::Unavailable);
    let request = FenceRequest { key: start.key, claim: FenceClaim::TakeOver { seen: None } };
    let refused = memory.fence(Owner(Uuid::now_v7()), &[request]).await;
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Unavailable);
    unit.finish(Sequence::new(1), &[]).await.unwrap();
}

#[tokio::test]
async fn a_handle_says_how_it_is_written_and_the_database_is_shared() {
    let memory = Memory::named("shop");
    assert_eq!(
        (memory.name(), memory.page_style(), memory.pages_max()),
        ("shop", PageStyle::Streaming, None)
    );
    let first = memory.with_page_style(PageStyle::ComputeFirst);
    assert_eq!(
        (first.name(), first.page_style(), first.pages_max()),
        ("shop", PageStyle::ComputeFirst, Some(1))
    );
    assert_eq!(tenant(&first).await, tenant(&memory).await);
    first.close().await;
    assert!(
        memory.find_tenant(&TenantId::new("acme").unwrap()).await.unwrap().is_some(),
        "each handle closes alone"
    );
}

#[tokio::test]
async fn what_no_caller_should_send_is_refused_without_a_panic() {
    let memory = Memory::new();
    let acme = tenant(&memory).await;
    let entry = |events| TenantAppend {
        tenant: acme.number,
        expected_head: Sequence::ZERO,
        place: Place::default(),
        events,
    };
    for batch in [
        vec![entry(vec![])],
        vec![entry(vec![event(1)]), entry(vec![event(2)])],
        vec![entry(vec![NewEvent { version: Version::ZERO, ..event(1) }])],
        vec![entry(vec![NewEvent {
            body: vec![0; bellwether_storage::EVENT_BYTES_MAX + 1].into(),
            ..event(1)
        }])],
        vec![entry(vec![NewEvent {
            headers: vec![0; bellwether_storage::HEADERS_BYTES_MAX + 1].into(),
            ..event(1)
        }])],
    ] {
        let refused =
            memory.append(&AppendBatch { tenants: batch, ..AppendBatch::default() }).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Rejected);
    }
    assert!(memory.append(&AppendBatch::default()).await.unwrap().outcomes.is_empty());
    // Numbers beyond what a database holds, which only a decoder can make.
    let beyond: Sequence = serde_json::from_str(&u64::MAX.to_string()).unwrap();
    let query = PageQuery { after: beyond, up_to: Some(beyond), events_max: 0, ..everything(&acme) };
    assert_eq!(memory.read_page(&query).await.unwrap().events, []);
    let (start, view) = page(&memory, &acme).await;
    let mut unit = memory.begin(&start).await.unwrap();
    unit.load(view, &[]).await.unwrap();
    assert_eq!(unit.finish(beyond, &[]).await.unwrap_err().kind(), ErrorKind::Rejected);
    let mut unit = memory.begin(&start).await.unwrap();
    assert_eq!(unit.write(ViewNo(99), vec![document("d")]).await.unwrap_err().kind(), ErrorKind::Rejected);
    drop(unit);
    assert!(!memory.faults().raise_head(acme.number, beyond));
    assert!(memory.faults().raise_head(acme.number, Sequence::MAX));
    let end = memory.lock_head(acme.number, Duration::MAX).await.unwrap();
    assert_eq!(end.append(&[event(1)], &[], None).await.unwrap_err().kind(), ErrorKind::Rejected);
    let row =
        FenceRequest { key: start.key, claim: FenceClaim::Granted(bellwether_storage::Generation(i64::MAX)) };
    memory.fence(start.owner, &[row]).await.unwrap();
    let over = FenceRequest { key: start.key, claim: FenceClaim::TakeOver { seen: None } };
    assert_eq!(memory.fence(start.owner, &[over]).await.unwrap_err().kind(), ErrorKind::Rejected);
    assert_eq!(memory.fence(start.owner, &[row, row]).await.unwrap_err().kind(), ErrorKind::Rejected);
}
