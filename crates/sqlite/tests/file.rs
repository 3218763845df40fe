//! What only a store in a file has to prove: foreign files, two processes' handles on one file, cancelled futures.

use std::future::Future;
use std::path::Path;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bellwether_sqlite::{Sqlite, SqliteConfig};
use bellwether_storage::{
    AppendBatch, AppendOutcome, Build, Database, Discovery, DocumentKey, DocumentSet, DocumentWrite,
    Encoding, ErrorKind, EventLog, EventType, FenceClaim, FenceOutcome, FenceRequest, NewEvent, Owner,
    PageQuery, PageStart, Place, ProgressKey, ProjectionName, Projections, Sequence, Statement, StreamId,
    StreamQuery, TenantAppend, TenantEntry, TenantId, Tenants, Timestamp, Version, ViewName, ViewNo,
};
use bytes::Bytes;
use sqlx::Connection;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use tempfile::TempDir;
use uuid::Uuid;

const WAIT: Duration = Duration::from_secs(5);

struct Subject {
    store: Sqlite,
    folder: TempDir,
}

async fn subject() -> Subject {
    let folder = tempfile::tempdir().unwrap();
    let store = Sqlite::open(folder.path().join("store.db")).await.unwrap();
    Subject { store, folder }
}

impl Subject {
    fn path(&self) -> std::path::PathBuf {
        self.folder.path().join("store.db")
    }

    async fn second(&self, busy_timeout: Duration) -> Sqlite {
        let mut config = SqliteConfig::new(self.path());
        config.busy_timeout = busy_timeout;
        Sqlite::open_with(config).await.unwrap()
    }
}

async fn tenant(store: &Sqlite, id: &str) -> TenantEntry {
    store.ensure_tenant(&TenantId::new(id).unwrap()).await.unwrap()
}

fn event(stream: &str, version: u64, event_type: &str, body: usize) -> NewEvent {
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

fn batch(tenant: &TenantEntry, head: u64, events: Vec<NewEvent>) -> AppendBatch {
    let entry = TenantAppend {
        tenant: tenant.number,
        expected_head: Sequence::new(head),
        place: tenant.place,
        events,
    };
    AppendBatch { tenants: vec![entry], now: None }
}

async fn append(store: &Sqlite, tenant: &TenantEntry, head: u64, events: Vec<NewEvent>) -> AppendOutcome {
    store.append(&batch(tenant, head, events)).await.unwrap().outcomes.remove(0)
}

fn all(tenant: &TenantEntry) -> PageQuery<'static> {
    PageQuery {
        tenant: tenant.number,
        after: Sequence::ZERO,
        up_to: None,
        types: None,
        events_max: 1000,
        bytes_max: u64::MAX,
    }
}

struct Page {
    start: PageStart,
    view: ViewNo,
    set: DocumentSet,
}

/// A fenced progress row and a view, ready for a page.
async fn page(store: &Sqlite, tenant: &TenantEntry) -> Page {
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

fn documents(keys: std::ops::Range<usize>, bytes: usize) -> Vec<DocumentWrite> {
    keys.map(|n| DocumentWrite {
        key: DocumentKey::new(format!("key-{n:06}")).unwrap(),
        body: Some(Bytes::from(vec![n as u8; bytes])),
    })
    .collect()
}

/// Polls a future once, as a `select!` that goes another way does, and drops it.
async fn poll_once<F: Future>(future: F) -> bool {
    let future = pin!(future);
    matches!(future.poll(&mut Context::from_waker(Waker::noop())), Poll::Pending)
}

async fn raw(path: &Path) -> SqliteConnection {
    SqliteConnection::connect_with(&SqliteConnectOptions::new().filename(path).create_if_missing(true))
        .await
        .unwrap()
}

// X3
#[tokio::test]
async fn what_was_appended_is_read_back_by_tenant_and_by_stream() {
    let Subject { store, folder: _folder } = subject().await;
    let acme = tenant(&store, "acme").await;
    let events: Vec<_> = (1..=200_u64)
        .map(|n| event(&format!("s-{}", n % 2), n.div_ceil(2), "Happened", n as usize))
        .collect();
    assert!(matches!(append(&store, &acme, 0, events.clone()).await, AppendOutcome::Done { .. }));

    let page = store.read_page(&all(&acme)).await.unwrap();
    assert_eq!((page.head.get(), page.through.get(), page.events.len()), (200, 200, 200));
    for (read, written) in page.events.iter().zip(&events) {
        assert_eq!(
            (&read.id, &read.body, read.version, read.size()),
            (&written.id, &written.body, written.version, written.size())
        );
    }
    let stream = StreamId::new("s-1").unwrap();
    let query = StreamQuery {
        tenant: acme.number,
        stream: &stream,
        after: Version::new(98),
        events_max: 10,
        bytes_max: 1,
    };
    let read = store.read_stream(&query).await.unwrap();
    assert_eq!((read.version.get(), read.events.len(), read.events[0].version.get()), (100, 1, 99));
}

#[tokio::test]
async fn a_page_stops_at_its_bytes_and_says_how_large_the_first_event_is() {
    let Subject { store, folder: _folder } = subject().await;
    let acme = tenant(&store, "acme").await;
    let events = vec![event("s", 1, "Small", 10), event("s", 2, "Large", 5000), event("s", 3, "Small", 10)];
    append(&store, &acme, 0, events.clone()).await;
    let sizes: Vec<u64> = events.iter().map(|event| event.size() as u64).collect();

    let page =
        store.read_page(&PageQuery { bytes_max: sizes[0] + sizes[1] - 1, ..all(&acme) }).await.unwrap();
    assert_eq!((page.events.len(), page.through.get(), page.too_large), (1, 1, None));

    let after = PageQuery { after: Sequence::new(1), bytes_max: sizes[1] - 1, ..all(&acme) };
    let page = store.read_page(&after).await.unwrap();
    assert_eq!((page.events.len(), page.through.get()), (0, 1));
    assert_eq!(page.too_large, Some((Sequence::new(2), sizes[1])));

    let small = [EventType::new("Small").unwrap()];
    let page = store
        .read_page(&PageQuery { types: Some(&small), bytes_max: sizes[0] + sizes[2], ..all(&acme) })
        .await
        .unwrap();
    assert_eq!(page.events.iter().map(|event| event.sequence.get()).collect::<Vec<_>>(), [1, 3]);
}

#[tokio::test]
async fn a_page_without_a_match_still_moves_on_by_a_bounded_range() {
    let Subject { store, folder: _folder } = subject().await;
    let acme = tenant(&store, "acme").await;
    for head in (0..21_000).step_by(7_000) {
        let events = (1..=7_000).map(|n| event("s", head + n, "Other", 1)).collect();
        assert!(matches!(append(&store, &acme, head, events).await, AppendOutcome::Done { .. }));
    }
    let wanted = [EventType::new("Wanted").unwrap()];
    let query = PageQuery { types: Some(&wanted), ..all(&acme) };
    let first = store.read_page(&query).await.unwrap();
    assert_eq!((first.head.get(), first.through.get(), first.events.len()), (21_000, 20_000, 0));
    let second = store.read_page(&PageQuery { after: first.through, ..query }).await.unwrap();
    assert_eq!(second.through.get(), 21_000);
}

// T1
#[tokio::test]
async fn a_hole_is_corrupt_even_between_types_nobody_asked_for() {
    let subject = subject().await;
    let acme = tenant(&subject.store, "acme").await;
    let events = (1..=5).map(|n| event("s", n, if n == 5 { "Wanted" } else { "Other" }, 1)).collect();
    append(&subject.store, &acme, 0, events).await;
    let mut direct = raw(&subject.path()).await;
    sqlx::query("DELETE FROM events WHERE seq = 3").execute(&mut direct).await.unwrap();

    let wanted = [EventType::new("Wanted").unwrap()];
    for types in [None, Some(&wanted[..])] {
        let error = subject.store.read_page(&PageQuery { types, ..all(&acme) }).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    }
}

#[tokio::test]
async fn foreign_files_are_refused_and_not_changed() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("notes.txt");
    std::fs::write(&text, "not a database, and long enough to have a header of one hundred bytes".repeat(40))
        .unwrap();
    let other = folder.path().join("other.db");
    let mut direct = raw(&other).await;
    sqlx::raw_sql("CREATE TABLE t (a); INSERT INTO t VALUES (1)").execute(&mut direct).await.unwrap();
    direct.close().await.unwrap();

    for path in [text, other] {
        let before = std::fs::read(&path).unwrap();
        let error = Sqlite::open(&path).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Rejected, "{error}");
        assert!(error.to_string().contains("is not a Bellwether store"), "{error}");
        assert!(std::fs::read(&path).unwrap() == before, "{} was changed", path.display());
    }
    let newer = folder.path().join("newer.db");
    Sqlite::open(&newer).await.unwrap().close().await;
    sqlx::raw_sql("PRAGMA user_version = 99").execute(&mut raw(&newer).await).await.unwrap();
    let error = Sqlite::open(&newer).await.unwrap_err();
    assert_eq!((error.kind(), error.to_string().contains("upgrade")), (ErrorKind::Rejected, true));
    assert_eq!(Sqlite::open(":memory:").await.unwrap_err().kind(), ErrorKind::Rejected);
    assert_eq!(
        Sqlite::open(folder.path().join("no/such/folder.db")).await.unwrap_err().kind(),
        ErrorKind::Unavailable
    );
}

#[tokio::test]
async fn a_file_keeps_its_identity_and_each_file_has_its_own() {
    let first = subject().await;
    let second = subject().await;
    let identity = first.store.identity().await.unwrap();
    assert_ne!(identity, second.store.identity().await.unwrap());
    first.store.close().await;
    let again = Sqlite::open(first.path()).await.unwrap();
    assert_eq!(again.identity().await.unwrap(), identity);
    assert_eq!(first.store.identity().await.unwrap_err().kind(), ErrorKind::Unavailable);
    assert_eq!(
        first.store.lock_head(bellwether_storage::TenantNo(1), WAIT).await.err().unwrap().kind(),
        ErrorKind::Unavailable
    );
}

#[tokio::test]
async fn eight_openers_of_a_new_file_agree_on_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let openers: Vec<_> = (0..8)
        .map(|_| {
            let path = path.clone();
            tokio::spawn(async move { Sqlite::open(path).await.unwrap().identity().await.unwrap() })
        })
        .collect();
    let mut identities = Vec::new();
    for opener in openers {
        identities.push(opener.await.unwrap());
    }
    identities.dedup();
    assert_eq!(identities.len(), 1);
}

#[tokio::test]
async fn two_handles_on_one_file_see_each_other() {
    let subject = subject().await;
    let other = subject.second(WAIT).await;
    let acme = tenant(&subject.store, "acme").await;
    assert_eq!(tenant(&other, "acme").await, acme);
    let cursor = other.moved_heads(None).await.unwrap().cursor;

    append(&subject.store, &acme, 0, vec![event("s", 1, "Happened", 1)]).await;
    let stale = append(&other, &acme, 0, vec![event("s", 1, "Happened", 1)]).await;
    assert_eq!(stale, AppendOutcome::Stale { head: Sequence::new(1), place: Place(0) });

    for store in [&other, &subject.store] {
        let moved = store.moved_heads(Some(&cursor)).await.unwrap();
        assert_eq!(moved.heads.iter().map(|head| head.head.get()).collect::<Vec<_>>(), [1]);
        assert!(store.moved_heads(Some(&moved.cursor)).await.unwrap().heads.is_empty());
    }
    append(&other, &acme, 1, vec![event("s", 2, "Happened", 1)]).await;
    assert_eq!(other.moved_heads(Some(&cursor)).await.unwrap().heads[0].head.get(), 2);
}

#[tokio::test]
async fn a_lock_of_another_process_is_busy_for_appends_and_unavailable_for_the_rest() {
    let subject = subject().await;
    let acme = tenant(&subject.store, "acme").await;
    let other = subject.second(Duration::from_millis(100)).await;
    let page = page(&subject.store, &acme).await;
    let lock = subject.store.lock_head(acme.number, WAIT).await.unwrap();

    assert_eq!(append(&other, &acme, 0, vec![event("s", 1, "Happened", 1)]).await, AppendOutcome::Busy);
    assert_eq!(other.begin(&page.start).await.err().unwrap().kind(), ErrorKind::Unavailable);
    assert_eq!(
        other.lock_head(acme.number, Duration::ZERO).await.err().unwrap().kind(),
        ErrorKind::Unavailable
    );
    drop(lock);
    assert!(matches!(
        append(&other, &acme, 0, vec![event("s", 1, "Happened", 1)]).await,
        AppendOutcome::Done { .. }
    ));
}

#[tokio::test]
async fn dropped_futures_leave_nothing_and_the_next_one_works() {
    let Subject { store, folder: _folder } = subject().await;
    let acme = tenant(&store, "acme").await;
    let page = page(&store, &acme).await;

    // Each is dropped at its first wait: in the line, in BEGIN, in a statement.
    assert!(poll_once(store.append(&batch(&acme, 0, vec![event("s", 1, "Happened", 1)]))).await);
    assert!(poll_once(store.begin(&page.start)).await);
    let lock = store.lock_head(acme.number, WAIT).await.unwrap();
    assert!(poll_once(store.begin(&page.start)).await);
    assert!(poll_once(store.lock_head(acme.number, WAIT)).await);
    assert!(poll_once(lock.append(&[event("s", 1, "Happened", 1)], &[], None)).await);

    let mut unit = store.begin(&page.start).await.unwrap();
    unit.write(page.view, documents(0..10, 100)).await.unwrap();
    assert!(poll_once(unit.write(page.view, documents(10..2000, 1000))).await);
    drop(unit);
    assert!(store.list(page.set, None, 10).await.unwrap().is_empty());

    let mut unit = store.begin(&page.start).await.unwrap();
    unit.write(page.view, documents(0..3, 10)).await.unwrap();
    unit.finish(Sequence::new(0), &[]).await.unwrap();
    assert_eq!(store.list(page.set, None, 10).await.unwrap().len(), 3);
    let head = store.read_page(&all(&acme)).await.unwrap().head;
    assert!(matches!(
        append(&store, &acme, head.get(), vec![event("t", 1, "Happened", 1)]).await,
        AppendOutcome::Done { .. }
    ));
}

#[tokio::test]
async fn a_crash_between_chunks_leaves_nothing() {
    let subject = subject().await;
    let acme = tenant(&subject.store, "acme").await;
    let page = page(&subject.store, &acme).await;
    let mut unit = subject.store.begin(&page.start).await.unwrap();
    // Far more than the writer's cache, so that the transaction has spilled into the log.
    for chunk in 0..8 {
        unit.write(page.view, documents(chunk * 128..(chunk + 1) * 128, 8192)).await.unwrap();
    }
    // What a crash leaves: the files as they are, and no process that would clean up.
    let copy = subject.folder.path().join("copy.db");
    std::fs::copy(subject.path(), &copy).unwrap();
    let log = |path: &Path| path.with_extension("db-wal");
    assert!(
        std::fs::copy(log(&subject.path()), log(&copy)).unwrap() > 4 * 1024 * 1024,
        "nothing was spilled"
    );

    let after = Sqlite::open(&copy).await.unwrap();
    assert!(after.list(page.set, None, 10).await.unwrap().is_empty());
    let mut again = after.begin(&page.start).await.unwrap();
    again.write(page.view, documents(0..1, 1)).await.unwrap();
    again.finish(Sequence::new(1), &[]).await.unwrap();
    unit.roll_back().await;
    assert!(subject.store.list(page.set, None, 10).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_stale_page_is_fenced_and_leaves_nothing() {
    let Subject { store, folder: _folder } = subject().await;
    let acme = tenant(&store, "acme").await;
    let old = page(&store, &acme).await;
    let new = page(&store, &acme).await;
    assert_eq!(store.begin(&old.start).await.err().unwrap().kind(), ErrorKind::Fenced);
    let wrong = PageStart { from: Sequence::new(5), ..new.start };
    assert_eq!(store.begin(&wrong).await.err().unwrap().kind(), ErrorKind::Fenced);
    let mut unit = store.begin(&new.start).await.unwrap();
    unit.write(new.view, documents(0..2, 10)).await.unwrap();
    unit.finish(Sequence::new(2), &[]).await.unwrap();
    assert_eq!(store.begin(&new.start).await.err().unwrap().kind(), ErrorKind::Fenced);
}

#[tokio::test]
async fn user_statements_run_in_the_page_and_cannot_end_it() {
    let Subject { store, folder: _folder } = subject().await;
    let acme = tenant(&store, "acme").await;
    let page = page(&store, &acme).await;
    store
        .set_up(&[Statement::new(
            "CREATE TABLE IF NOT EXISTS calendar (day TEXT PRIMARY KEY, n INTEGER, f REAL, b BLOB) STRICT",
        )])
        .await
        .unwrap();
    let insert = |day: &str| {
        Statement::new("INSERT INTO calendar VALUES ($1, $2, $3, $4)")
            .bind(day)
            .bind(7)
            .bind(0.5)
            .bind(Option::<Vec<u8>>::None)
    };

    for refused in
        ["COMMIT", "ROLLBACK", "SELECT 1; COMMIT", "INSERT OR ROLLBACK INTO calendar VALUES ('a', 'x', 1, 1)"]
    {
        let mut unit = store.begin(&page.start).await.unwrap();
        assert_eq!(unit.execute(&insert("a")).await.unwrap(), 1);
        assert_eq!(
            unit.execute(&Statement::new(refused)).await.unwrap_err().kind(),
            ErrorKind::Rejected,
            "{refused}"
        );
        assert_eq!(
            unit.execute(&insert("b")).await.unwrap_err().kind(),
            ErrorKind::Unavailable,
            "the unit is gone"
        );
        assert!(unit.finish(Sequence::new(1), &[]).await.is_err());
    }
    let count = Statement::new("SELECT count(*) FROM calendar");
    assert_eq!(store.query(&count).await.unwrap()[0].int(0).unwrap(), 0);

    let mut unit = store.begin(&page.start).await.unwrap();
    unit.execute(&insert("a")).await.unwrap();
    let row = unit.query(&Statement::new("SELECT day, n, f, b FROM calendar")).await.unwrap().remove(0);
    use bellwether_storage::Value;
    assert_eq!(row.0, [Value::Text("a".into()), Value::Int(7), Value::Float(0.5), Value::Null]);
    unit.finish(Sequence::new(1), &[]).await.unwrap();
    assert_eq!(store.query(&count).await.unwrap()[0].int(0).unwrap(), 1);
    assert_eq!(
        store.query(&Statement::new("DELETE FROM calendar")).await.unwrap_err().kind(),
        ErrorKind::Rejected
    );
    let many =
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10001) SELECT i FROM n";
    assert_eq!(store.query(&Statement::new(many)).await.unwrap_err().kind(), ErrorKind::Rejected);
}

#[tokio::test]
async fn a_refused_row_rejects_the_whole_batch() {
    let Subject { store, folder: _folder } = subject().await;
    let acme = tenant(&store, "acme").await;
    let twice = vec![event("s", 1, "Happened", 1), event("s", 1, "Happened", 1)];
    assert_eq!(store.append(&batch(&acme, 0, twice)).await.unwrap_err().kind(), ErrorKind::Rejected);
    let page = store.read_page(&all(&acme)).await.unwrap();
    assert_eq!((page.head, page.events.len()), (Sequence::ZERO, 0));
}

#[tokio::test]
async fn times_never_run_backwards() {
    let Subject { store, folder: _folder } = subject().await;
    let acme = tenant(&store, "acme").await;
    let late = Timestamp::from_micros(4_000_000_000_000_000);
    let mut entry = batch(&acme, 0, vec![event("s", 1, "Happened", 1)]);
    entry.now = Some(late);
    assert_eq!(store.append(&entry).await.unwrap().outcomes[0], AppendOutcome::Done { at: late });
    let mut entry = batch(&acme, 1, vec![event("s", 2, "Happened", 1)]);
    entry.now = Some(Timestamp::from_micros(5));
    assert_eq!(store.append(&entry).await.unwrap().outcomes[0], AppendOutcome::Done { at: late });
    assert_eq!(store.read_page(&all(&acme)).await.unwrap().events[1].at, late);
}

#[tokio::test]
async fn sixteen_writers_over_two_handles_leave_no_hole() {
    let subject = subject().await;
    let acme = tenant(&subject.store, "acme").await;
    let other = subject.second(WAIT).await;
    let writers: Vec<_> = (0..16)
        .map(|n| {
            let (store, acme) =
                (if n % 2 == 0 { subject.store.clone() } else { other.clone() }, acme.clone());
            tokio::spawn(async move {
                for k in 1..=5 {
                    let lock = store.lock_head(acme.number, Duration::from_secs(60)).await.unwrap();
                    lock.append(&[event(&format!("s-{n}"), k, "Happened", 50)], &[], None).await.unwrap();
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
    let page = other.read_page(&all(&acme)).await.unwrap();
    let sequences: Vec<_> = page.events.iter().map(|event| event.sequence.get()).collect();
    assert_eq!(sequences, (1..=80).collect::<Vec<_>>());
}
