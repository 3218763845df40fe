//! The file: foreign ones, identity, several openers, two processes' handles.

use std::time::Duration;

use bellwether_sqlite::Sqlite;
use bellwether_storage::{
    AppendOutcome, Database, Discovery, ErrorKind, EventLog, Place, Projections, Sequence, TenantNo,
};
use sqlx::Connection;

use crate::given::{WAIT, all, append, event, page, raw, subject, tenant};

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
    assert_eq!(first.store.lock_head(TenantNo(1), WAIT).await.err().unwrap().kind(), ErrorKind::Unavailable);
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

#[tokio::test]
async fn a_path_means_itself_whatever_characters_it_holds() {
    let folder = tempfile::tempdir().unwrap();
    for name in
        ["a b.db", "a?mode=memory&cache=shared", "a%41.db", "a#b.db", "ä😀.db", "file:a.db", "-a'\"$x.db"]
    {
        let path = folder.path().join(name);
        let store = Sqlite::open(&path).await.unwrap();
        tenant(&store, "acme").await;
        store.close().await;
        assert!(path.metadata().unwrap().len() > 0, "{name}");
    }
}

#[tokio::test]
async fn a_file_replaced_under_an_open_store_is_noticed() {
    let subject = subject().await;
    let acme = tenant(&subject.store, "acme").await;
    let other = crate::given::subject().await;
    other.store.close().await;
    for suffix in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(subject.folder.path().join(format!("store.db{suffix}")));
    }
    std::fs::copy(other.path(), subject.path()).unwrap();
    // The writer's connection is given up, so the next one has to connect anew.
    drop(subject.store.lock_head(acme.number, WAIT).await.unwrap());
    let error = subject.store.lock_head(acme.number, WAIT).await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
}
