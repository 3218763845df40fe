//! A handle: who answers, how much work it did, and how it ends.

use bellwether_storage::{Error, ErrorKind, StreamQuery};

use crate::Subject;
use crate::given::{
    PATIENCE, PLENTY, append, batch, entry, event, everything, head, kind, owner, position, row, set, stream,
    tenant, ver, view,
};

pub async fn a_closed_handle_refuses_calls_and_another_goes_on(subject: &dyn Subject) {
    let (db, other) = (subject.first(), subject.second());
    let acme = tenant(db, "acme").await;
    append(db, &acme, 0, vec![event("s", 1)]).await;
    let page = position(db, owner(), row(db, &acme, "p").await).await;
    let view = view(db, "v", 1).await;
    db.close().await;
    let name = stream("s");
    let query =
        StreamQuery { tenant: acme.number, stream: &name, after: ver(0), events_max: 1, bytes_max: PLENTY };
    let answers: Vec<(&str, Result<(), Error>)> = vec![
        ("append", db.append(&batch(vec![entry(&acme, 1, vec![event("s", 2)])])).await.map(drop)),
        ("lock_head", db.lock_head(acme.number, PATIENCE).await.map(drop)),
        ("stream_versions", db.stream_versions(acme.number, &[]).await.map(drop)),
        ("read_page", db.read_page(&everything(acme.number, 0)).await.map(drop)),
        ("read_stream", db.read_stream(&query).await.map(drop)),
        ("moved_heads", db.moved_heads(None).await.map(drop)),
        ("ensure_tenant", db.ensure_tenant(&acme.id).await.map(drop)),
        ("find_tenant", db.find_tenant(&acme.id).await.map(drop)),
        ("list_tenants", db.list_tenants(None, 1).await.map(drop)),
        ("progress", db.progress(&[page.key]).await.map(drop)),
        ("begin", db.begin(&page).await.map(drop)),
        ("load", db.load(set(view, page.key), &[crate::given::key("d")]).await.map(drop)),
        ("list", db.list(set(view, page.key), None, 1).await.map(drop)),
        ("dead_letters", db.dead_letters(acme.number, 1).await.map(drop)),
        ("identity", db.identity().await.map(drop)),
    ];
    for (call, answer) in answers {
        assert_eq!(kind(&answer), Some(ErrorKind::Unavailable), "{call} on a closed handle: {answer:?}");
    }
    db.close().await;
    append(other, &acme, 1, vec![event("s", 2)]).await;
    assert_eq!(head(other, acme.number).await, 2);
    other.begin(&page).await.unwrap().finish(page.from, &[]).await.unwrap();
}

pub async fn counters_rise_with_the_work(subject: &dyn Subject) {
    let db = subject.first();
    let acme = tenant(db, "acme").await;
    let other_before = subject.second().counters();
    let mut last = db.counters();
    for round in 0..5u64 {
        append(db, &acme, round, vec![event("s", round + 1)]).await;
        let appended = db.counters();
        assert!(appended.statements > last.statements, "an append is at least one statement");
        db.read_page(&everything(acme.number, 0)).await.unwrap();
        let read = db.counters();
        assert!(read.statements > appended.statements, "a page is at least one statement");
        assert_eq!(read.discovery_reads, last.discovery_reads, "neither is a discovery read");
        db.moved_heads(None).await.unwrap();
        let discovered = db.counters();
        assert_eq!(discovered.discovery_reads, read.discovery_reads + 1);
        assert!(discovered.statements > read.statements, "a discovery read is a statement");
        last = discovered;
    }
    assert_eq!(
        subject.second().counters().discovery_reads,
        other_before.discovery_reads,
        "a handle counts its own work"
    );
}

pub async fn every_answer_carries_the_servers_identity(subject: &dyn Subject) {
    let (db, other) = (subject.first(), subject.second());
    let identity = db.identity().await.unwrap();
    assert_eq!(other.identity().await.unwrap(), identity, "both processes talk to one server");
    assert!(!identity.system.is_empty());
    let acme = tenant(db, "acme").await;
    let receipt = db.append(&batch(vec![entry(&acme, 0, vec![event("s", 1)])])).await.unwrap();
    assert_eq!(receipt.identity, identity);
    let lock = other.lock_head(acme.number, PATIENCE).await.unwrap();
    assert_eq!(lock.state().identity, identity);
    lock.append(&[event("s", 2)], &[], None).await.unwrap();
    let name = stream("s");
    let query =
        StreamQuery { tenant: acme.number, stream: &name, after: ver(0), events_max: 10, bytes_max: PLENTY };
    assert_eq!(db.read_page(&everything(acme.number, 0)).await.unwrap().identity, identity);
    assert_eq!(
        db.read_page(&everything(acme.number, 2)).await.unwrap().identity,
        identity,
        "an empty page as well"
    );
    assert_eq!(db.read_stream(&query).await.unwrap().identity, identity);
    assert_eq!(db.stream_versions(acme.number, &[name]).await.unwrap().identity, identity);
    assert_eq!(db.moved_heads(None).await.unwrap().cursor.identity, identity);
    assert_eq!(db.identity().await.unwrap(), identity, "and it stays");
    assert!(!db.name().is_empty() && !db.name().contains("://"), "a name, not an address: {:?}", db.name());
    if let Some(activity) = db.activity().await.unwrap() {
        assert!(
            activity.iter().any(|activity| activity.database == db.name()),
            "this database is among {activity:?}"
        );
    }
}
