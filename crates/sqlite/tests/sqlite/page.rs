//! Pages of projections: what a dropped future, a crash, a stale owner and the user's own SQL leave behind.

use std::path::Path;

use bellwether_sqlite::Sqlite;
use bellwether_storage::{
    AppendOutcome, ErrorKind, EventLog, PageStart, Projections, Sequence, Statement, Value,
};

use crate::given::{Subject, WAIT, all, append, batch, documents, event, page, poll_once, subject, tenant};

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
async fn an_append_goes_before_a_page_that_waited_longer() {
    let Subject { store, folder: _folder } = subject().await;
    let acme = tenant(&store, "acme").await;
    let ready = page(&store, &acme).await;
    let lock = store.lock_head(acme.number, WAIT).await.unwrap();
    let one = batch(&acme, 0, vec![event("s", 1, "Happened", 1)]);
    let mut begun = store.begin(&ready.start);
    let mut appended = store.append(&one);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(begun.as_mut().poll(&mut context).is_pending());
    assert!(appended.as_mut().poll(&mut context).is_pending());
    drop(lock);
    // The page is not polled meanwhile: had it been called first, it would keep the writer and the append would be busy.
    assert!(matches!(appended.await.unwrap().outcomes[0], AppendOutcome::Done { .. }));
    begun.await.unwrap().roll_back().await;
}
