//! The whole writer, tasks and all, against the store in memory with faults: what a caller is told is always true.

use std::sync::Arc;
use std::time::Duration;

use bellwether_events::{AppendError, Event, Plain, Store, Stream};
use bellwether_memory::{Answer, Commit, Memory};
use bellwether_storage::{Database, ErrorKind, Sequence, StreamId, TenantId, Tenants, Version};
use bellwether_tenants::{Placed, Rule};
use uuid::Uuid;

#[derive(Debug, Clone, PartialEq, Event)]
struct Happened {
    number: u64,
}

fn open(memory: &Memory) -> Store {
    let databases: Vec<Arc<dyn Database>> = vec![Arc::new(memory.another_handle())];
    Store::new(databases.clone(), Arc::new(Placed::new(databases, Rule::Single)))
}

fn stream(store: &Store, tenant: &str, stream: &str) -> Stream<Plain<Happened>> {
    store.tenant(tenant).unwrap().stream_of::<Happened>(stream).unwrap()
}

async fn numbers(stream: &Stream<Plain<Happened>>) -> Vec<u64> {
    let read = stream.read(Version::ZERO, 10_000).await.unwrap();
    read.into_iter().map(|recorded| recorded.event.number).collect()
}

// X4
#[tokio::test(start_paused = true)]
async fn a_lost_answer_is_resolved_and_the_caller_never_knows() {
    for answer in [Answer::LostBefore, Answer::LostAfter] {
        for commit in [Commit::Append, Commit::LockedAppend] {
            let memory = Memory::new();
            let store = open(&memory);
            let log = stream(&store, "acme", "log");
            log.append([Happened { number: 0 }]).await.unwrap();
            memory.faults().lose_answer(commit, answer);
            memory.faults().lose_answer(commit, answer);
            for number in 1..4 {
                let append = log.to_append([Happened { number }]);
                // An append with an id goes the way of the lock.
                let append = if commit == Commit::LockedAppend { append.id(Uuid::now_v7()) } else { append };
                let appended = append.send().await.unwrap();
                assert_eq!(appended.first.get(), number + 1, "{answer:?} {commit:?}");
                assert_eq!(appended.version.get(), number + 1);
            }
            assert_eq!(numbers(&log).await, [0, 1, 2, 3], "{answer:?} {commit:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_behind_another_writer_is_resolved() {
    let memory = Memory::new();
    let (ours, theirs) = (open(&memory), open(&memory));
    let (log, same) = (stream(&ours, "acme", "log"), stream(&theirs, "acme", "log"));
    log.append([Happened { number: 0 }]).await.unwrap();
    memory.faults().lose_answer(Commit::Append, Answer::LostAfter);
    // Ours went in and its answer was lost; theirs finds another head and goes in behind it.
    let (a, b) = tokio::join!(log.append([Happened { number: 1 }]), same.append([Happened { number: 2 }]));
    let (a, b) = (a.unwrap(), b.unwrap());
    assert_ne!(a.first, b.first);
    let mut all = numbers(&log).await;
    all.sort_unstable();
    assert_eq!(all, [0, 1, 2]);
}

#[tokio::test(start_paused = true)]
async fn an_unreachable_database_is_waited_for() {
    let memory = Memory::new();
    let store = open(&memory);
    let log = stream(&store, "acme", "log");
    log.append([Happened { number: 0 }]).await.unwrap();
    memory.faults().unavailable(5);
    log.append([Happened { number: 1 }]).await.unwrap();
    memory.faults().fail_commits(3);
    log.append([Happened { number: 2 }]).await.unwrap();
    assert_eq!(numbers(&log).await, [0, 1, 2]);
}

#[tokio::test(start_paused = true)]
async fn a_database_that_stays_away_is_told_with_what_to_do() {
    let memory = Memory::new();
    let store = open(&memory);
    let log = stream(&store, "acme", "log");
    log.append([Happened { number: 0 }]).await.unwrap();
    memory.faults().unavailable(u32::MAX);
    let error = log.append([Happened { number: 1 }]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(
        error.to_string().contains("nothing was appended") && error.to_string().contains("try again later"),
        "{error}"
    );
    memory.faults().clear();
    log.append([Happened { number: 2 }]).await.unwrap();
    assert_eq!(numbers(&log).await, [0, 2]);
}

#[tokio::test(start_paused = true)]
async fn an_outcome_that_cannot_be_found_out_is_told_as_unknown() {
    let memory = Memory::new();
    let store = open(&memory);
    let log = stream(&store, "acme", "log");
    log.append([Happened { number: 0 }]).await.unwrap();
    // The answer is lost, and then nobody answers any more.
    memory.faults().lose_answer(Commit::Append, Answer::LostAfter);
    memory.faults().latency(Some(Duration::from_millis(10)));
    let faults = memory.faults();
    let away = async {
        tokio::time::sleep(Duration::from_millis(12)).await;
        faults.unavailable(u32::MAX);
    };
    let (result, ()) = tokio::join!(log.append([Happened { number: 1 }]), away);
    let error = result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unknown, "{error}");
    assert!(error.to_string().contains("append id"), "{error}");
}

// T1
#[tokio::test(start_paused = true)]
async fn a_held_head_delays_nobody_else() {
    let memory = Memory::new();
    let store = open(&memory);
    let acme = memory.ensure_tenant(&TenantId::new("acme").unwrap()).await.unwrap();
    let (held, free) = (stream(&store, "acme", "log"), stream(&store, "globex", "log"));
    held.append([Happened { number: 0 }]).await.unwrap();
    free.append([Happened { number: 0 }]).await.unwrap();

    let head = memory.faults().hold_head(acme.number).unwrap();
    let begun = tokio::time::Instant::now();
    let waiting: Vec<_> = (1..20u64)
        .map(|number| {
            tokio::spawn({
                let held = held.clone();
                async move { held.append([Happened { number }]).await }
            })
        })
        .collect();
    for number in 1..200 {
        free.append([Happened { number }]).await.unwrap();
    }
    // Not a moment of the paused clock has passed: nothing was waited for.
    assert_eq!(begun.elapsed(), Duration::ZERO);
    assert!(waiting.iter().all(|append| !append.is_finished()));
    drop(head);
    for append in waiting {
        append.await.unwrap().unwrap();
    }
    // In the order they came.
    assert_eq!(numbers(&held).await, (0..20).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn a_head_that_stays_held_is_told_after_a_minute() {
    let memory = Memory::new();
    let store = open(&memory);
    let acme = memory.ensure_tenant(&TenantId::new("acme").unwrap()).await.unwrap();
    let log = stream(&store, "acme", "log");
    let head = memory.faults().hold_head(acme.number).unwrap();
    let begun = tokio::time::Instant::now();
    let error = log.append([Happened { number: 0 }]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("end the transaction that holds it"), "{error}");
    assert!(
        (Duration::from_secs(55)..Duration::from_secs(75)).contains(&begun.elapsed()),
        "{:?}",
        begun.elapsed()
    );
    drop(head);
    log.append([Happened { number: 1 }]).await.unwrap();
    assert_eq!(numbers(&log).await, [1]);
}

#[tokio::test(start_paused = true)]
async fn a_bad_row_fails_only_its_own_caller() {
    let memory = Memory::new();
    let store = open(&memory);
    memory.faults().refuse_stream(&StreamId::new("poison").unwrap());
    // Eight tenants with eight appends each share batches; three of them are refused.
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..64u64 {
        let name = if number % 23 == 5 { "poison" } else { "log" };
        let log = stream(&store, &format!("t{}", number % 8), name);
        tasks.spawn(async move { (number, log.append([Happened { number }]).await) });
    }
    for (number, result) in tasks.join_all().await {
        match number % 23 {
            5 => assert_eq!(result.unwrap_err().kind(), ErrorKind::Rejected),
            _ => drop(result.unwrap()),
        }
    }
    let mut all = Vec::new();
    for tenant in 0..8 {
        let of_tenant = numbers(&stream(&store, &format!("t{tenant}"), "log")).await;
        assert!(of_tenant.is_sorted(), "tenant {tenant} is out of order: {of_tenant:?}");
        all.extend(of_tenant);
    }
    all.sort_unstable();
    assert_eq!(all, (0..64).filter(|number| number % 23 != 5).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn what_was_known_of_one_server_is_void_on_the_next() {
    let memory = Memory::new();
    let (ours, theirs) = (open(&memory), open(&memory));
    let log = stream(&ours, "acme", "log");
    memory.faults().keep_history(10);
    for number in 0..3 {
        log.append([Happened { number }]).await.unwrap();
    }
    assert_eq!(memory.faults().fail_over(2), 2);
    // The next append expects a head that is gone; it is decided anew on what is there.
    assert_eq!(log.append([Happened { number: 7 }]).await.unwrap().version, Version::new(2));
    assert_eq!(memory.faults().fail_over(1), 1);
    let both = [Happened { number: 7 }, Happened { number: 8 }];
    stream(&theirs, "acme", "other").append(both).await.unwrap();
    let error = log.append_expecting(Version::new(2), [Happened { number: 9 }]).await.unwrap_err();
    assert!(matches!(error, AppendError::Conflict { actual, .. } if actual == Version::new(1)), "{error}");
    assert_eq!(numbers(&log).await, [0]);
    // Another history with a head that looks the same.
    log.append_expecting(Version::new(1), [Happened { number: 10 }]).await.unwrap();
    assert_eq!(memory.faults().fail_over(1), 1);
    stream(&theirs, "acme", "other").append([Happened { number: 11 }]).await.unwrap();
    let error = log.append_expecting(Version::new(2), [Happened { number: 12 }]).await.unwrap_err();
    assert!(matches!(error, AppendError::Conflict { actual, .. } if actual == Version::new(1)), "{error}");
    assert_eq!(numbers(&log).await, [0]);
}

#[tokio::test(start_paused = true)]
async fn a_closed_tenant_is_refused_with_what_to_do() {
    let memory = Memory::new();
    let store = open(&memory);
    let acme = memory.ensure_tenant(&TenantId::new("acme").unwrap()).await.unwrap();
    let log = stream(&store, "acme", "log");
    assert!(memory.faults().set_open(acme.number, false));
    let error = log.append([Happened { number: 0 }]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Rejected);
    assert!(error.to_string().contains("takes no appends"), "{error}");
    assert!(memory.faults().set_open(acme.number, true));
    log.append([Happened { number: 1 }]).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_last_numbers_of_a_tenant_are_used_and_none_beyond() {
    let memory = Memory::new();
    let store = open(&memory);
    let acme = memory.ensure_tenant(&TenantId::new("acme").unwrap()).await.unwrap();
    let log = stream(&store, "acme", "log");
    assert!(memory.faults().raise_head(acme.number, Sequence::new(Sequence::MAX.get() - 2)));
    let two = [Happened { number: 0 }, Happened { number: 1 }];
    assert_eq!(log.append(two.clone()).await.unwrap().last, Sequence::MAX);
    let error = log.append(two).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Rejected, "{error}");
}

// X2
#[tokio::test(start_paused = true)]
async fn appends_that_arrive_during_a_commit_share_the_next() {
    let memory = Memory::new();
    let store = open(&memory);
    for tenant in 0..10 {
        stream(&store, &format!("t{tenant}"), "log").append([Happened { number: 0 }]).await.unwrap();
    }
    let before = store.databases()[0].counters().statements;
    memory.faults().latency(Some(Duration::from_millis(10)));
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..1_000u64 {
        let log = stream(&store, &format!("t{}", number % 10), "log");
        tasks.spawn(async move { log.append([Happened { number }]).await });
    }
    assert!(tasks.join_all().await.into_iter().all(|result| result.is_ok()));
    let statements = store.databases()[0].counters().statements - before;
    assert!(statements <= 10, "{statements} statements for 1,000 appends");
}

#[tokio::test(start_paused = true)]
async fn an_import_of_new_streams_reads_no_versions() {
    let memory = Memory::new();
    let store = open(&memory);
    let tenant = store.tenant("acme").unwrap();
    tenant.stream_of::<Happened>("first").unwrap().append([Happened { number: 0 }]).await.unwrap();
    let before = store.databases()[0].counters().statements;
    for number in 0..500u64 {
        let log = tenant.stream_of::<Happened>(format!("s{number}")).unwrap();
        log.append_expecting(bellwether_events::Expected::None, [Happened { number }]).await.unwrap();
    }
    assert_eq!(store.databases()[0].counters().statements - before, 500);
}

#[tokio::test(start_paused = true)]
async fn a_command_on_a_stream_it_has_read_needs_no_second_read() {
    let memory = Memory::new();
    stream(&open(&memory), "acme", "log").append([Happened { number: 0 }]).await.unwrap();
    let store = open(&memory);
    let log = stream(&store, "acme", "log");
    log.read(Version::ZERO, 1).await.unwrap();
    let before = store.databases()[0].counters().statements;
    log.execute(Record(1)).await.unwrap();
    assert_eq!(store.databases()[0].counters().statements - before, 2, "one read, one append");
}

#[derive(Clone)]
struct Record(u64);

impl bellwether_events::Decide<Record> for Plain<Happened> {
    type Error = std::convert::Infallible;

    fn decide(&self, Record(number): Record) -> Result<Vec<Happened>, Self::Error> {
        Ok(vec![Happened { number }])
    }
}

#[tokio::test(start_paused = true)]
async fn a_full_queue_of_one_tenant_keeps_only_its_own_callers_waiting() {
    let memory = Memory::new();
    let databases: Vec<Arc<dyn Database>> = vec![Arc::new(memory.another_handle())];
    let mut config = bellwether_events::StoreConfig::default();
    config.tenant_queue_bytes = 16 * 1024;
    config.queue_bytes = 64 * 1024;
    let store = Store::with_config(databases.clone(), Arc::new(Placed::new(databases, Rule::Single)), config);
    let acme = memory.ensure_tenant(&TenantId::new("acme").unwrap()).await.unwrap();
    let head = memory.faults().hold_head(acme.number).unwrap();
    let waiting: Vec<_> = (0..300u64)
        .map(|number| {
            let log = stream(&store, "acme", "log");
            tokio::spawn(async move { log.append([Happened { number }]).await })
        })
        .collect();
    tokio::task::yield_now().await;
    for number in 0..100 {
        stream(&store, "globex", "log").append([Happened { number }]).await.unwrap();
    }
    drop(head);
    for append in waiting {
        append.await.unwrap().unwrap();
    }
    assert_eq!(numbers(&stream(&store, "acme", "log")).await, (0..300).collect::<Vec<_>>());
}
