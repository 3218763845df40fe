//! A held head: what is decided under it is exact, and what is dropped leaves nothing.

use std::time::{Duration, Instant};

use bellwether_storage::{AppendId, ErrorKind, HeadLock, TenantEntry};
use uuid::Uuid;

use crate::Subject;
use crate::given::{Db, Patience, append, event, events, head, kind, log, seq, stream, tenant, ver};

/// Locks a head that is free, or about to be.
async fn locked(db: &Db, tenant: &TenantEntry) -> Box<dyn HeadLock> {
    let patience = Patience::new();
    loop {
        match db.lock_head(tenant.number, Duration::from_secs(10)).await {
            Ok(lock) => return lock,
            Err(error) if error.kind() == ErrorKind::Unavailable => patience.pause("the head").await,
            Err(error) => panic!("locking a head failed: {error:?}"),
        }
    }
}

pub async fn a_dropped_lock_leaves_nothing(subject: &dyn Subject) {
    let db = subject.first();
    let acme = tenant(db, "acme").await;
    append(db, &acme, 0, events("s", 1, 2)).await;
    for round in 0..5 {
        let mut lock = locked(db, &acme).await;
        assert_eq!((lock.state().head, lock.state().place, lock.state().open), (seq(2), acme.place, true));
        if round % 2 == 1 {
            lock.versions(&[stream("s")]).await.unwrap();
            lock.append_ids(&[Uuid::now_v7()]).await.unwrap();
        }
        drop(lock);
    }
    assert_eq!(log(subject.second(), acme.number).await.len(), 2);
    append(subject.second(), &acme, 2, vec![event("s", 3)]).await;
}

pub async fn lockers_take_turns(subject: &dyn Subject) {
    let acme = tenant(subject.first(), "acme").await;
    let lockers = (0..8u64).map(|index| {
        let db = if index % 2 == 0 { subject.first() } else { subject.second() }.clone();
        let acme = acme.clone();
        tokio::spawn(async move {
            for round in 0..5 {
                let mut lock = locked(&db, &acme).await;
                let head = lock.state().head;
                let seen = lock.versions(&[stream("shared")]).await.unwrap();
                assert_eq!(seen.head, head, "nobody moves a locked head");
                assert_eq!(seen.streams[0].version.get(), head.get(), "every event is in one stream");
                if round == 2 {
                    continue;
                }
                lock.append(&[event("shared", head.get() + 1)], &[], None).await.unwrap();
            }
        })
    });
    for locker in lockers.collect::<Vec<_>>() {
        locker.await.unwrap();
    }
    let found = log(subject.first(), acme.number).await;
    assert_eq!(found.len(), 8 * 4);
    assert!(found.iter().all(|event| event.version.get() == event.sequence.get()));
}

pub async fn a_locker_waits_no_longer_than_asked(subject: &dyn Subject) {
    let acme = tenant(subject.first(), "acme").await;
    let lock = locked(subject.first(), &acme).await;
    let since = Instant::now();
    let refused = subject.second().lock_head(acme.number, Duration::from_millis(200)).await;
    assert_eq!(kind(&refused), Some(ErrorKind::Unavailable));
    assert!(since.elapsed() < Duration::from_secs(20), "waited {:?} instead of 200 ms", since.elapsed());
    lock.append(&[event("s", 1)], &[], None).await.unwrap();
    assert_eq!(locked(subject.second(), &acme).await.state().head, seq(1));
}

pub async fn versions_under_the_lock_are_the_last_committed(subject: &dyn Subject) {
    let (db, other) = (subject.first(), subject.second());
    let acme = tenant(db, "acme").await;
    append(other, &acme, 0, events("a", 1, 3)).await;
    append(other, &acme, 3, events("b", 1, 1)).await;
    let asked = ["b", "none", "a", "b"].map(stream);
    let mut lock = locked(db, &acme).await;
    let seen = lock.versions(&asked).await.unwrap();
    assert_eq!(seen.streams.iter().map(|state| state.version.get()).collect::<Vec<_>>(), [1, 0, 3, 1]);
    assert!(seen.streams.iter().all(|state| !state.archived));
    assert_eq!((seen.head, seen.place), (seq(4), acme.place));
    assert_eq!(seen.identity, lock.state().identity);
    lock.append(&events("a", 4, 5), &[], None).await.unwrap();
    let without_lock = other.stream_versions(acme.number, &asked).await.unwrap();
    assert_eq!((without_lock.head, without_lock.streams[2].version), (seq(6), ver(5)));
}

pub async fn a_locked_append_that_is_refused_leaves_nothing(subject: &dyn Subject) {
    let db = subject.first();
    let acme = tenant(db, "acme").await;
    append(db, &acme, 0, vec![event("s", 1)]).await;
    let id = AppendId { id: Uuid::now_v7(), digest: [7; 16], first: seq(2), count: 2 };
    let lock = locked(db, &acme).await;
    let refused = lock.append(&[event("t", 1), event("s", 1)], std::slice::from_ref(&id), None).await;
    assert_eq!(kind(&refused), Some(ErrorKind::Rejected), "{:?}", refused.err());
    assert_eq!((head(subject.second(), acme.number).await, log(db, acme.number).await.len()), (1, 1));
    assert_eq!(locked(db, &acme).await.append_ids(&[id.id]).await.unwrap(), []);
    append(subject.second(), &acme, 1, vec![event("t", 1)]).await;
}

pub async fn append_ids_are_found_under_the_lock(subject: &dyn Subject) {
    let db = subject.first();
    let acme = tenant(db, "acme").await;
    let ids = [1u8, 2].map(|digest| AppendId {
        id: Uuid::now_v7(),
        digest: [digest; 16],
        first: seq(u64::from(digest)),
        count: 1,
    });
    let absent = Uuid::now_v7();
    let asked = [ids[1].id, absent, ids[0].id];
    let mut lock = locked(db, &acme).await;
    assert_eq!(lock.append_ids(&asked).await.unwrap(), []);
    assert_eq!(lock.append_ids(&[]).await.unwrap(), []);
    lock.append(&events("s", 1, 2), &ids, None).await.unwrap();
    let mut lock = locked(subject.second(), &acme).await;
    let mut found = lock.append_ids(&asked).await.unwrap();
    found.sort_by_key(|id| id.first);
    assert_eq!(found, ids);
    drop(lock);
    // Recorded once: the same id again is refused, whatever it says.
    let lock = locked(db, &acme).await;
    let again = AppendId { first: seq(3), ..ids[0].clone() };
    let refused = lock.append(&[event("s", 3)], &[again], None).await;
    assert_eq!(kind(&refused), Some(ErrorKind::Rejected), "{:?}", refused.err());
    assert_eq!(log(db, acme.number).await.len(), 2);
}

pub async fn append_ids_of_tenants_are_kept_apart(subject: &dyn Subject) {
    let db = subject.first();
    let (a, b) = (tenant(db, "a").await, tenant(db, "b").await);
    let shared = Uuid::now_v7();
    for (index, owner) in [&a, &b].into_iter().enumerate() {
        let id = AppendId { id: shared, digest: [index as u8; 16], first: seq(1), count: 1 };
        let mut lock = locked(db, owner).await;
        assert_eq!(lock.append_ids(&[shared]).await.unwrap(), [], "another tenant's id is not this one's");
        lock.append(&[event("s", 1)], &[id], None).await.unwrap();
    }
    for (index, owner) in [&a, &b].into_iter().enumerate() {
        let found = locked(subject.second(), owner).await.append_ids(&[shared]).await.unwrap();
        assert_eq!(found.iter().map(|id| id.digest).collect::<Vec<_>>(), [[index as u8; 16]]);
    }
}
