//! Every race that the protocols name for this adapter, on a real server.

#[allow(dead_code, reason = "each test file takes what it needs")]
#[path = "server/scene.rs"]
mod scene;
#[path = "server/wire.rs"]
mod wire;

use std::sync::Arc;
use std::time::{Duration, Instant};

use bellwether_postgres::{Postgres, sql_files};
use bellwether_storage::{
    AppendOutcome, Discovery, DocumentWrite, ErrorKind, EventLog, Projections, Sequence, TenantNo, Tenants,
    ViewName,
};
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Row};

use crate::scene::{
    PATIENCE, append, batch, direct, entry, event, fresh, handle, impatient, log, number, owner, row, run,
    take_over, tenant, until,
};

/// Key of the advisory lock behind which a statement waits between its snapshot and its first row.
const GATE: i64 = 4_711;

/// The append statement for one event, held between its snapshot and its row locks until [`GATE`] is free.
async fn gated_append(
    mut connection: PgConnection,
    tenant: TenantNo,
    place: i32,
    head: i64,
) -> (Option<i64>, Option<i64>) {
    let (_, text) = sql_files().iter().find(|(path, _)| *path == "append/batch.sql").expect("the append");
    let first_row = "WHERE tenant_no = ANY ($1::int4[])";
    assert!(text.contains(first_row), "the gate no longer fits the statement");
    let gate = format!("{first_row} AND (SELECT pg_advisory_xact_lock_shared({GATE}) IS NOT NULL)");
    let row = sqlx::query(AssertSqlSafe(text.replace(first_row, &gate)))
        .bind(vec![tenant.0])
        .bind(vec![head])
        .bind(vec![place])
        .bind(vec![1i64])
        .bind(None::<i64>)
        .bind(vec![tenant.0])
        .bind(vec![head + 1])
        .bind(vec!["gated"])
        .bind(vec![1i64])
        .bind(vec![uuid::Uuid::now_v7()])
        .bind(vec!["Gated"])
        .bind(vec![0i16])
        .bind(vec![100i32])
        .bind(vec![Vec::<u8>::new()])
        .bind(vec![Vec::<u8>::new()])
        .fetch_one(&mut connection)
        .await
        .expect("a clean answer, not an error");
    (row.get(1), row.get(4))
}

/// Lets a gated append take its snapshot, commits an append of somebody else, and lets the gated one go on. What the gated one
/// found as head, and when it appended, if it did.
async fn overtaken(url: &str, db: &Postgres, expected: i64) -> (Option<i64>, Option<i64>, TenantNo) {
    let acme = tenant(db, "acme").await;
    let mut gate = direct(url).await;
    run(&mut gate, &format!("SELECT pg_advisory_lock({GATE})")).await;
    let gated = tokio::spawn(gated_append(direct(url).await, acme.number, acme.place.0, expected));
    let waits = "SELECT count(*) FROM pg_locks JOIN pg_database d ON d.oid = database
                 WHERE locktype = 'advisory' AND NOT granted AND datname = current_database()";
    until(&mut gate, waits).await;
    let other = append(db, &acme, 0, vec![event("s", 1)]).await.unwrap();
    assert!(matches!(other, AppendOutcome::Done { .. }), "{other:?}");
    run(&mut gate, &format!("SELECT pg_advisory_unlock({GATE})")).await;
    let (head, at) = gated.await.unwrap();
    (head, at, acme.number)
}

// X2, T1: the snapshot of the statement is older than the head that it locks.
#[tokio::test]
async fn an_append_follows_the_head_to_the_version_it_locks() {
    let Some(url) = fresh("an_append_follows_the_head_to_the_version_it_locks").await else { return };
    let db = handle(&url).await;
    let (head, at, acme) = overtaken(&url, &db, 1).await;
    assert_eq!(head, Some(1), "it saw the head of the append that overtook it");
    assert!(at.is_some(), "its expectation was that head, so it went in");
    let streams: Vec<_> = log(&db, acme).await.iter().map(|event| event.stream.as_str().to_owned()).collect();
    assert_eq!(streams, ["s", "gated"]);
    assert_eq!(db.stream_versions(acme, &[]).await.unwrap().head, Sequence::new(2));
}

// X2: in one statement that read the streams this was a unique violation, which aborts everybody's batch.
#[tokio::test]
async fn an_overtaken_append_is_a_clean_conflict() {
    let Some(url) = fresh("an_overtaken_append_is_a_clean_conflict").await else { return };
    let db = handle(&url).await;
    let (head, at, acme) = overtaken(&url, &db, 0).await;
    assert_eq!((head, at), (Some(1), None), "stale, and it says what it found");
    assert_eq!(log(&db, acme).await.len(), 1);
}

// T1
#[tokio::test]
async fn a_batch_with_one_held_tenant_appends_the_others_at_once() {
    let Some(url) = fresh("a_batch_with_one_held_tenant_appends_the_others_at_once").await else { return };
    let db = handle(&url).await;
    let mut tenants = Vec::new();
    for name in ["a", "b", "c", "d"] {
        tenants.push(tenant(&db, name).await);
    }
    let mut user = direct(&url).await;
    run(&mut user, &format!("BEGIN; SELECT FROM heads WHERE tenant_no = {} FOR UPDATE", tenants[1].number.0))
        .await;
    let sent = batch(tenants.iter().map(|tenant| entry(tenant, 0, vec![event("s", 1)])).collect());
    let since = Instant::now();
    let outcomes = db.append(&sent).await.unwrap().outcomes;
    assert!(since.elapsed() < Duration::from_millis(1_900), "it waited for the head: {:?}", since.elapsed());
    for (index, outcome) in outcomes.iter().enumerate() {
        match outcome {
            AppendOutcome::Busy if index == 1 => {}
            AppendOutcome::Done { .. } if index != 1 => {}
            other => panic!("tenant {index}: {other:?}"),
        }
    }
    run(&mut user, "ROLLBACK").await;
    assert!(matches!(
        append(&db, &tenants[1], 0, vec![event("s", 1)]).await.unwrap(),
        AppendOutcome::Done { .. }
    ));
}

// X2
#[tokio::test]
async fn four_writers_of_forty_random_heads_never_deadlock() {
    const WRITERS: u64 = 4;
    const BATCHES: u64 = 150;
    let Some(url) = fresh("four_writers_of_forty_random_heads_never_deadlock").await else { return };
    let db = handle(&url).await;
    let mut tenants = Vec::new();
    for n in 0..100 {
        tenants.push(tenant(&db, &format!("t{n}")).await);
    }
    let tenants = Arc::new(tenants);
    let writers = (0..WRITERS).map(|writer| {
        let (db, tenants) = (db.clone(), Arc::clone(&tenants));
        tokio::spawn(async move {
            let mut heads = vec![0u64; tenants.len()];
            let mut state = writer + 1;
            let mut done = 0u64;
            for _ in 0..BATCHES {
                let mut chosen = std::collections::BTreeSet::new();
                while chosen.len() < 40 {
                    state =
                        state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    chosen.insert((state >> 33) as usize % tenants.len());
                }
                let entries = chosen.iter().map(|n| {
                    let stream = format!("w{writer}-{}", heads[*n]);
                    entry(&tenants[*n], heads[*n], vec![event(&stream, 1)])
                });
                let sent = batch(entries.collect());
                let outcomes = db.append(&sent).await.expect("no deadlock").outcomes;
                for (n, outcome) in chosen.iter().zip(outcomes) {
                    match outcome {
                        AppendOutcome::Done { .. } => {
                            heads[*n] += 1;
                            done += 1;
                        }
                        AppendOutcome::Stale { head, .. } => heads[*n] = head.get(),
                        AppendOutcome::Busy => {}
                        other => panic!("{other:?}"),
                    }
                }
            }
            done
        })
    });
    let mut done = 0;
    for writer in writers.collect::<Vec<_>>() {
        done += writer.await.unwrap();
    }
    let mut direct = direct(&url).await;
    assert_eq!(
        number(&mut direct, "SELECT count(*) FROM events").await as u64,
        done,
        "what was done is there, once"
    );
    assert_eq!(number(&mut direct, "SELECT sum(head)::int8 FROM heads").await as u64, done);
    assert!(done > BATCHES * 40, "{done} appends of {} went in", WRITERS * BATCHES * 40);
}

// T3: the race that loses work to a cursor made of times.
#[tokio::test]
async fn a_late_commit_is_found_where_a_time_cursor_loses_it() {
    let Some(url) = fresh("a_late_commit_is_found_where_a_time_cursor_loses_it").await else { return };
    let db = handle(&url).await;
    let (late, early) = (tenant(&db, "late").await, tenant(&db, "early").await);
    let mut open = direct(&url).await;
    let stamp = format!(
        "BEGIN; UPDATE heads SET head = 1, xid = pg_current_xact_id(), at = (extract(epoch FROM clock_timestamp()) * 1000000)::int8
         WHERE tenant_no = {}",
        late.number.0
    );
    run(&mut open, &stamp).await;
    append(&db, &early, 0, vec![event("s", 1)]).await.unwrap();
    let first = db.moved_heads(None).await.unwrap();
    let head_of = |moved: &bellwether_storage::Moved, of: TenantNo| {
        moved.heads.iter().find(|head| head.tenant == of).map(|head| head.head.get())
    };
    assert_eq!((head_of(&first, early.number), head_of(&first, late.number)), (Some(1), Some(0)));
    let mut reader = direct(&url).await;
    let time_cursor = number(&mut reader, "SELECT max(at) FROM heads").await;
    run(&mut open, "COMMIT").await;
    let second = db.moved_heads(Some(&first.cursor)).await.unwrap();
    assert_eq!(head_of(&second, late.number), Some(1), "the late commit is found");
    let by_time = format!("SELECT count(*) FROM heads WHERE at > {time_cursor}");
    assert_eq!(number(&mut reader, &by_time).await, 0, "a cursor of times would have lost it");
    // Other databases of the server have transactions too, and the oldest of them holds the cursor.
    let since = Instant::now();
    let mut cursor = second.cursor;
    loop {
        let next = db.moved_heads(Some(&cursor)).await.unwrap();
        cursor = next.cursor.clone();
        if head_of(&next, late.number).is_none() {
            break;
        }
        assert!(since.elapsed() < PATIENCE, "it is found for ever");
        tokio::task::yield_now().await;
    }
}

// X4
#[tokio::test]
async fn a_zombie_with_an_open_page_is_ended_by_the_fence() {
    let Some(url) = fresh("a_zombie_with_an_open_page_is_ended_by_the_fence").await else { return };
    let (zombie, db) = (handle(&url).await, impatient(&url).await);
    let acme = tenant(&db, "acme").await;
    let key = row(&db, &acme).await;
    let view = db.ensure_view(&ViewName::new("v").unwrap(), 1).await.unwrap();
    let start = take_over(&zombie, owner(), key).await.unwrap();
    let mut page = zombie.begin(&start).await.unwrap();
    let document = || DocumentWrite {
        key: bellwether_storage::DocumentKey::new("d").unwrap(),
        body: Some("from the grave".into()),
    };
    page.write(view, vec![document()]).await.unwrap();

    let since = Instant::now();
    let taken = take_over(&db, owner(), key).await.unwrap();
    assert!(
        since.elapsed() < Duration::from_secs(9),
        "it was left to idle_in_transaction: {:?}",
        since.elapsed()
    );
    assert_eq!((taken.from, taken.generation.0), (start.from, start.generation.0 + 1));

    let finished = page.finish(Sequence::new(1), &[]).await;
    assert_eq!(
        finished.unwrap_err().kind(),
        ErrorKind::Unavailable,
        "its page is gone, and nothing was in doubt"
    );
    assert_eq!(zombie.begin(&start).await.err().map(|error| error.kind()), Some(ErrorKind::Fenced));
    let set = bellwether_storage::DocumentSet { view, tenant: acme.number, build: key.build };
    assert_eq!(db.list(set, None, 10).await.unwrap(), [], "nothing of it stays");
}

// X4: between the messages of a pipeline neither timeout of the server fires.
#[tokio::test]
async fn a_zombie_between_two_messages_is_ended_by_the_fence() {
    let Some(url) = fresh("a_zombie_between_two_messages_is_ended_by_the_fence").await else { return };
    let db = impatient(&url).await;
    let acme = tenant(&db, "acme").await;
    let key = row(&db, &acme).await;
    take_over(&db, owner(), key).await.unwrap();
    let mut zombie = wire::Client::connect(&url, "bellwether/zombie").await;
    zombie.query("SET idle_in_transaction_session_timeout = '100ms'; SET statement_timeout = '100ms'").await;
    zombie.query("BEGIN").await;
    let lock = format!("SELECT seq FROM progress WHERE tenant_no = {} FOR NO KEY UPDATE", acme.number.0);
    zombie.query_then_parse_without_sync(&lock).await;
    let mut reader = direct(&url).await;
    let stuck = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'bellwether/zombie'
                 AND state = 'active' AND wait_event = 'ClientRead'";
    until(&mut reader, stuck).await;

    take_over(&db, owner(), key).await.unwrap();
    let left = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'bellwether/zombie'";
    assert_eq!(number(&mut reader, left).await, 0, "its backend was ended");
    drop(zombie);
}

// X4: only what is ours is ended.
#[tokio::test]
async fn a_fence_never_ends_a_session_that_is_not_ours() {
    let Some(url) = fresh("a_fence_never_ends_a_session_that_is_not_ours").await else { return };
    let db = impatient(&url).await;
    let acme = tenant(&db, "acme").await;
    let key = row(&db, &acme).await;
    let start = take_over(&db, owner(), key).await.unwrap();
    let mut user = direct(&url).await;
    run(&mut user, &format!("BEGIN; SELECT FROM progress WHERE tenant_no = {} FOR UPDATE", acme.number.0))
        .await;
    let refused = take_over(&db, owner(), key).await;
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Unavailable);
    run(&mut user, "COMMIT").await;
    assert_eq!(
        db.progress(&[key]).await.unwrap()[0].unwrap().generation,
        start.generation,
        "nothing was positioned"
    );
    take_over(&db, owner(), key).await.unwrap();
}

// X4: a handle ends its own pages by dropping them; its fence only waits.
#[tokio::test]
async fn a_fence_never_ends_a_page_of_its_own_handle() {
    let Some(url) = fresh("a_fence_never_ends_a_page_of_its_own_handle").await else { return };
    let db = impatient(&url).await;
    let acme = tenant(&db, "acme").await;
    let key = row(&db, &acme).await;
    let start = take_over(&db, owner(), key).await.unwrap();
    let page = db.begin(&start).await.unwrap();
    assert_eq!(take_over(&db, owner(), key).await.unwrap_err().kind(), ErrorKind::Unavailable);
    page.finish(Sequence::new(3), &[]).await.expect("the page was left alone");
    assert_eq!(take_over(&db, owner(), key).await.unwrap().from, Sequence::new(3));
}

// X2, X4
#[tokio::test]
async fn an_append_whose_backend_is_ended_is_unknown_and_is_resolved_by_sending_it_again() {
    let Some(url) =
        fresh("an_append_whose_backend_is_ended_is_unknown_and_is_resolved_by_sending_it_again").await
    else {
        return;
    };
    let db = handle(&url).await;
    let acme = tenant(&db, "acme").await;
    // Somebody else's open transaction holds the number that the append wants, so that it stops in its middle, head in hand.
    let mut other = direct(&url).await;
    let squat = format!(
        "BEGIN; INSERT INTO events (place, tenant_no, seq, version, at, id, size, encoding, stream, type, headers, body)
         VALUES ({}, {}, 999, 1, 0, gen_random_uuid(), 0, 0, 's', 'Squat', '', '')",
        acme.place.0, acme.number.0
    );
    run(&mut other, &squat).await;
    let sent = batch(vec![entry(&acme, 0, vec![event("s", 1), event("s", 2)])]);
    let appending = {
        let (db, sent) = (db.clone(), sent.clone());
        tokio::spawn(async move { db.append(&sent).await })
    };
    let mut killer = direct(&url).await;
    let ended = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
                 WHERE wait_event_type = 'Lock' AND datname = current_database()";
    until(&mut killer, ended).await;
    let answered = appending.await.unwrap();
    assert_eq!(answered.unwrap_err().kind(), ErrorKind::Unknown);
    run(&mut other, "ROLLBACK").await;

    // The same batch under the same head: it goes in, so the first never will.
    let again = db.append(&sent).await.unwrap();
    assert!(matches!(again.outcomes[..], [AppendOutcome::Done { .. }]), "{:?}", again.outcomes);
    // And once more: stale, and the own events are found after the expected head.
    let third = db.append(&sent).await.unwrap();
    assert!(matches!(third.outcomes[..], [AppendOutcome::Stale { .. }]), "{:?}", third.outcomes);
    let ids: Vec<_> = log(&db, acme.number).await.iter().map(|event| event.id).collect();
    assert_eq!(ids, sent.tenants[0].events.iter().map(|event| event.id).collect::<Vec<_>>());
}

// X4
#[tokio::test]
async fn a_locker_sees_the_head_left_by_the_one_it_waited_for() {
    let Some(url) = fresh("a_locker_sees_the_head_left_by_the_one_it_waited_for").await else { return };
    let (first, second) = (handle(&url).await, handle(&url).await);
    let acme = tenant(&first, "acme").await;
    let lock = first.lock_head(acme.number, PATIENCE).await.unwrap();
    let waiting = tokio::spawn(async move { second.lock_head(acme.number, PATIENCE).await });
    let mut reader = direct(&url).await;
    until(&mut reader, "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()").await;
    lock.append(&[event("s", 1), event("s", 2)], &[], None).await.unwrap();
    let mut lock = waiting.await.unwrap().unwrap();
    assert_eq!(lock.state().head, Sequence::new(2));
    let versions = lock.versions(&[event("s", 1).stream]).await.unwrap();
    assert_eq!((versions.head, versions.streams[0].version.get()), (Sequence::new(2), 2));
}

// X3
#[tokio::test]
async fn programs_that_open_a_fresh_database_together_migrate_it_once() {
    let Some(url) = fresh("programs_that_open_a_fresh_database_together_migrate_it_once").await else {
        return;
    };
    let opening: Vec<_> = (0..4)
        .map(|_| {
            let url = url.clone();
            tokio::spawn(async move { Postgres::connect(&url).await })
        })
        .collect();
    for opened in opening {
        let db = opened.await.unwrap().expect("each of them opens it");
        assert_eq!(db.list_tenants(None, 10).await.unwrap(), []);
    }
    let mut direct = direct(&url).await;
    assert_eq!(number(&mut direct, "SELECT count(*) FROM bellwether_schema").await, 1);
}

// X4: cancelling never leaves a lock or a broken connection behind.
#[tokio::test]
async fn cancelled_calls_leave_nothing_behind() {
    let Some(url) = fresh("cancelled_calls_leave_nothing_behind").await else { return };
    let db = handle(&url).await;
    let acme = tenant(&db, "acme").await;
    let key = row(&db, &acme).await;
    let start = take_over(&db, owner(), key).await.unwrap();
    let mut reader = direct(&url).await;
    let mut user = direct(&url).await;
    let hold = format!(
        "BEGIN; SELECT FROM progress WHERE tenant_no = {0} FOR UPDATE; SELECT FROM heads WHERE tenant_no = {0} FOR UPDATE",
        acme.number.0
    );
    for _ in 0..6 {
        run(&mut user, &hold).await;
        let begin = {
            let db = db.clone();
            tokio::spawn(async move { db.begin(&start).await.map(drop) })
        };
        let lock = {
            let db = db.clone();
            tokio::spawn(async move { db.lock_head(acme.number, PATIENCE).await.map(drop) })
        };
        let wait = "SELECT (count(*) = 2)::int::int8 FROM pg_stat_activity WHERE wait_event_type = 'Lock'
                    AND datname = current_database()";
        until(&mut reader, wait).await;
        begin.abort();
        lock.abort();
        run(&mut user, "ROLLBACK").await;
        until(
            &mut reader,
            "SELECT (count(*) = 0)::int::int8 FROM pg_stat_activity
                           WHERE wait_event_type = 'Lock' AND datname = current_database()",
        )
        .await;
    }
    drop(db.begin(&start).await.expect("the row is free"));
    drop(db.lock_head(acme.number, PATIENCE).await.expect("the head is free"));
}

// T3
#[tokio::test]
async fn connections_that_nobody_uses_are_closed() {
    let Some(url) = fresh("connections_that_nobody_uses_are_closed").await else { return };
    let config = bellwether_postgres::PostgresConfig {
        idle_timeout_ms: 200,
        ..bellwether_postgres::PostgresConfig::new(&url)
    };
    let db = Postgres::connect_with(config).await.unwrap();
    let acme = tenant(&db, "acme").await;
    let mut reader = direct(&url).await;
    let open = "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'bellwether/%'
                AND datname = current_database()";
    let none =
        "SELECT (count(*) = 0)::int::int8 FROM pg_stat_activity WHERE application_name LIKE 'bellwether/%'
                AND datname = current_database()";
    assert!(number(&mut reader, open).await > 0);
    until(&mut reader, none).await;
    append(&db, &acme, 0, vec![event("s", 1)]).await.expect("and made again when they are needed");
}
