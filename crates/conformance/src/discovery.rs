//! Discovery: what moved is found, always; what did not move is not asked for.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bellwether_storage::{DiscoveryCursor, Moved, TenantNo};

use crate::Subject;
use crate::given::{Db, PATIENCE, Patience, append, event, events, head, tenant};

async fn look(db: &Db, cursor: Option<&DiscoveryCursor>) -> Moved {
    let moved = db.moved_heads(cursor).await.expect("a discovery read");
    let mut numbers: Vec<_> = moved.heads.iter().map(|head| head.tenant).collect();
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), moved.heads.len(), "a tenant comes at most once in an answer");
    moved
}

fn heads(moved: &Moved) -> BTreeMap<TenantNo, u64> {
    moved.heads.iter().map(|head| (head.tenant, head.head.get())).collect()
}

pub async fn all_heads_come_without_a_cursor(subject: &dyn Subject) {
    let db = subject.first();
    assert_eq!(look(db, None).await.heads, []);
    let mut expected = BTreeMap::new();
    for index in 0..30u64 {
        let made = tenant(db, &format!("t{index}")).await;
        if index > 0 {
            append(db, &made, 0, events("s", 1, index)).await;
        }
        expected.insert(made.number, index);
    }
    for handle in [db, subject.second()] {
        let moved = look(handle, None).await;
        assert_eq!(heads(&moved), expected);
        assert_eq!(moved.cursor.identity, handle.identity().await.unwrap());
        for head in moved.heads {
            assert_eq!(
                tenant(db, head.id.as_str()).await.number,
                head.tenant,
                "a head comes with its tenant's name"
            );
        }
    }
}

pub async fn only_moved_heads_come_with_a_cursor(subject: &dyn Subject) {
    let db = subject.first();
    let mut tenants = Vec::new();
    for index in 0..20 {
        tenants.push(tenant(db, &format!("t{index}")).await);
    }
    let mut cursor = look(db, None).await.cursor;
    for round in 0..3u64 {
        let mover = &tenants[3 + round as usize];
        append(subject.second(), mover, 0, vec![event("s", 1)]).await;
        let moved = look(db, Some(&cursor)).await;
        assert_eq!(heads(&moved).get(&mover.number), Some(&1), "the moved head is found at once");
        // It may repeat while older transactions are in flight, but not for ever.
        cursor = moved.cursor;
        let patience = Patience::new();
        loop {
            let again = look(db, Some(&cursor)).await;
            cursor = again.cursor;
            if again.heads.is_empty() {
                break;
            }
            patience.pause("a quiet database to be quiet").await;
        }
    }
}

pub async fn an_append_that_commits_late_is_found(subject: &dyn Subject) {
    let db = subject.first();
    let (late, early) = (tenant(db, "late").await, tenant(db, "early").await);
    let mut cursor = look(db, None).await.cursor;
    for round in 0..5u64 {
        // Begun before the others, committed after them and after the reads that saw them.
        let mut lock = subject.second().lock_head(late.number, PATIENCE).await.unwrap();
        lock.versions(&[]).await.unwrap();
        let third = tenant_beside(subject, round, &early).await;
        let moved = look(db, Some(&cursor)).await;
        assert!(third.is_none_or(|expected| heads(&moved).get(&early.number) == Some(&expected)));
        let moved = look(db, Some(&moved.cursor)).await;
        lock.append(&[event("s", round + 1)], &[], None).await.unwrap();
        let moved = look(db, Some(&moved.cursor)).await;
        assert_eq!(
            heads(&moved).get(&late.number),
            Some(&(round + 1)),
            "round {round}: the late commit is missed"
        );
        cursor = moved.cursor;
    }
}

/// Appends to another tenant while a head is held, where the store stands two writers; its head afterwards.
async fn tenant_beside(
    subject: &dyn Subject,
    round: u64,
    early: &bellwether_storage::TenantEntry,
) -> Option<u64> {
    use bellwether_storage::AppendOutcome::{Busy, Done};
    match crate::given::outcome(subject.first(), early, round, vec![event("s", round + 1)]).await {
        Ok(Done { .. }) => Some(round + 1),
        Ok(Busy) => None,
        other => panic!("an append beside a held head was answered {other:?}"),
    }
}

pub async fn a_new_tenant_is_found_at_head_zero(subject: &dyn Subject) {
    let db = subject.first();
    tenant(db, "old").await;
    let cursor = look(db, None).await.cursor;
    let new = tenant(subject.second(), "new").await;
    let moved = look(db, Some(&cursor)).await;
    let found = moved.heads.iter().find(|head| head.tenant == new.number).expect("a new tenant is found");
    assert_eq!((&found.id, found.head.get()), (&new.id, 0));
}

pub async fn a_cursor_of_another_server_starts_from_the_beginning(subject: &dyn Subject) {
    let db = subject.first();
    for index in 0..5u64 {
        let made = tenant(db, &format!("t{index}")).await;
        append(db, &made, 0, events("s", 1, 1 + index)).await;
    }
    let all = look(db, None).await;
    let mut elsewhere = all.cursor.clone();
    elsewhere.identity.system.push_str("-before-the-failover");
    elsewhere.position = u64::MAX >> 1;
    let moved = look(db, Some(&elsewhere)).await;
    assert_eq!(heads(&moved), heads(&all));
    assert_eq!(moved.cursor.identity, all.cursor.identity, "the new cursor is of the server that answered");
    let mut promoted = all.cursor.clone();
    promoted.identity.timeline += 1;
    assert_eq!(heads(&look(db, Some(&promoted)).await), heads(&all));
}

pub async fn no_commit_is_missed_under_load(subject: &dyn Subject) {
    let mut tenants = Vec::new();
    for index in 0..12 {
        tenants.push(tenant(subject.first(), &format!("t{index}")).await);
    }
    let done = Arc::new(AtomicBool::new(false));
    let (db, ended) = (subject.second().clone(), done.clone());
    let follower = tokio::spawn(async move {
        let mut known = BTreeMap::new();
        let mut cursor = None;
        loop {
            let last_round = ended.load(Ordering::Acquire);
            let moved = look(&db, cursor.as_ref()).await;
            for (tenant, head) in heads(&moved) {
                let before = known.insert(tenant, head);
                assert!(before <= Some(head), "the head of {tenant:?} went from {before:?} back to {head}");
            }
            cursor = Some(moved.cursor);
            if last_round {
                return known;
            }
            tokio::task::yield_now().await;
        }
    });
    let writers = tenants.chunks(3).map(|chunk| {
        let (db, chunk) = (subject.first().clone(), chunk.to_vec());
        tokio::spawn(async move {
            for round in 0..25u64 {
                for tenant in &chunk {
                    append(&db, tenant, round, vec![event("s", round + 1)]).await;
                }
            }
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap();
    }
    done.store(true, Ordering::Release);
    let known = follower.await.unwrap();
    for tenant in &tenants {
        let stored = head(subject.first(), tenant.number).await;
        assert_eq!(
            (stored, known.get(&tenant.number)),
            (25, Some(&25)),
            "what the follower knows of {}",
            tenant.id
        );
    }
}
