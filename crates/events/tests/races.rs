//! The races of the writer on a real server: held heads, two processes on the same tenants, killed backends, bad rows.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bellwether_events::{AppendError, Decide, Event, Plain, Store, Stream};
use bellwether_postgres::Postgres;
use bellwether_storage::{Database, ErrorKind, Sequence, Version};
use bellwether_tenants::{Placed, Rule};
use sqlx::{Connection, PgConnection};
use uuid::Uuid;

#[derive(Debug, Clone, PartialEq, Event)]
struct Happened {
    number: u64,
}

async fn open(url: &str) -> Store {
    let database = Postgres::connect(url).await.unwrap();
    let databases: Vec<Arc<dyn Database>> = vec![Arc::new(database)];
    Store::new(databases.clone(), Arc::new(Placed::new(databases, Rule::Single)))
}

fn stream(store: &Store, tenant: &str, stream: &str) -> Stream<Plain<Happened>> {
    store.tenant(tenant).unwrap().stream_of::<Happened>(stream).unwrap()
}

/// Every number of a tenant, in order of sequence; fails on a hole in the tenant or in one of its streams.
async fn numbers(store: &Store, tenant: &str) -> Vec<u64> {
    let tenant = store.tenant(tenant).unwrap();
    let mut all = Vec::new();
    let mut versions = std::collections::BTreeMap::new();
    let mut after = Sequence::ZERO;
    loop {
        let page = tenant.read::<Happened>(after, 1_000).await.unwrap();
        let Some(last) = page.last() else { return all };
        for recorded in &page {
            assert_eq!(recorded.sequence, after.next());
            after = recorded.sequence;
            let version = versions.entry(recorded.stream.clone()).or_insert(Version::ZERO);
            assert_eq!(recorded.version, version.next());
            *version = recorded.version;
            all.push(recorded.event.number);
        }
        assert_eq!(after, last.sequence);
    }
}

// T1
#[tokio::test(flavor = "multi_thread")]
async fn held_heads_delay_nobody_else_in_any_kind_of_flight() {
    let Some(server) = bellwether_launch::require("held heads delay nobody else") else { return };
    let url = server.fresh_database().unwrap();
    let (store, other) = (open(&url).await, open(&url).await);
    for tenant in ["held-1", "held-2", "held-3", "free"] {
        stream(&store, tenant, "log").append([Happened { number: 0 }]).await.unwrap();
    }
    // Another process has open appends on more tenants than there are slow lanes.
    let mut heads = Vec::new();
    for tenant in ["held-1", "held-2", "held-3"] {
        let location = other.directory().locate(store.tenant(tenant).unwrap().id()).await.unwrap();
        heads.push(other.databases()[0].lock_head(location.tenant, Duration::from_secs(1)).await.unwrap());
    }
    let waiting: Vec<_> = (1..31u64)
        .map(|number| {
            let log = stream(&store, &format!("held-{}", 1 + number % 3), "log");
            tokio::spawn(async move { log.append([Happened { number }]).await })
        })
        .collect();
    let mut slowest = Duration::ZERO;
    for number in 0..200u64 {
        let begun = Instant::now();
        let log = stream(&store, "free", "log");
        let large = number % 50 == 7;
        match number % 10 {
            // Through the lock, in a flight of its own, or in a shared batch: none of them meets the held ones.
            3 => drop(log.to_append([Happened { number }]).id(Uuid::now_v7()).send().await.unwrap()),
            7 if large => drop(log.append((0..700).map(|_| Happened { number })).await.unwrap()),
            _ => drop(log.append([Happened { number }]).await.unwrap()),
        }
        slowest = slowest.max(begun.elapsed());
    }
    assert!(slowest < Duration::from_millis(1_500), "an append to a free tenant took {slowest:?}");
    assert!(waiting.iter().all(|append| !append.is_finished()), "an append went past a held head");
    drop(heads);
    for append in waiting {
        append.await.unwrap().unwrap();
    }
    for tenant in 1..4u64 {
        let expected: Vec<_> =
            std::iter::once(0).chain((1..31).filter(|number| 1 + number % 3 == tenant)).collect();
        // Which of the tasks came first is not known here.
        let mut all = numbers(&store, &format!("held-{tenant}")).await;
        all.sort_unstable();
        assert_eq!(all, expected);
    }
}

// X2
#[tokio::test(flavor = "multi_thread")]
async fn two_processes_on_the_same_tenants_lose_and_double_nothing() {
    let Some(server) = bellwether_launch::require("two writers on the same tenants") else { return };
    let url = server.fresh_database().unwrap();
    let stores = [open(&url).await, open(&url).await];
    let mut tasks = tokio::task::JoinSet::new();
    for caller in 0..16u64 {
        let store = stores[caller as usize % 2].clone();
        tasks.spawn(async move {
            let mut firsts = Vec::new();
            for round in 0..40u64 {
                let tenant = format!("t{}", (caller + round) % 3);
                let log = stream(&store, &tenant, &format!("s{}", round % 5));
                let number = caller * 1_000 + round;
                let appended = match round % 4 {
                    0 => log.execute(Record(number)).await.unwrap().appended.unwrap(),
                    1 => log.to_append([Happened { number }]).id(Uuid::now_v7()).send().await.unwrap(),
                    _ => log.append([Happened { number }]).await.unwrap(),
                };
                firsts.push((tenant, appended.first, number));
            }
            firsts
        });
    }
    let told: Vec<_> = tasks.join_all().await.concat();
    let mut found = 0;
    for tenant in 0..3 {
        let tenant = format!("t{tenant}");
        let all = numbers(&stores[0], &tenant).await;
        for (_, first, number) in told.iter().filter(|(of, ..)| *of == tenant) {
            assert_eq!(all[first.get() as usize - 1], *number, "it is not where its caller was told");
        }
        found += all.len();
    }
    assert_eq!((told.len(), found), (640, 640));
}

#[derive(Clone)]
struct Record(u64);

impl Decide<Record> for Plain<Happened> {
    type Error = std::convert::Infallible;

    fn decide(&self, Record(number): Record) -> Result<Vec<Happened>, Self::Error> {
        Ok(vec![Happened { number }])
    }
}

// X4
#[tokio::test(flavor = "multi_thread")]
async fn appends_whose_backends_are_killed_go_in_exactly_once() {
    let Some(server) = bellwether_launch::require("killed backends") else { return };
    let url = server.fresh_database().unwrap();
    let store = open(&url).await;
    let (over, progress) = (Arc::new(AtomicBool::new(false)), Arc::new(tokio::sync::Notify::new()));
    let killer = tokio::spawn({
        let (url, over, progress) = (url.clone(), Arc::clone(&over), Arc::clone(&progress));
        async move {
            let mut admin = PgConnection::connect(&url).await.unwrap();
            let mut killed = 0i64;
            // After every append or so, but only backends in the middle of something: appending, or holding a head.
            while !over.load(Ordering::Acquire) {
                let kill = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
                             WHERE datname = current_database() AND pid <> pg_backend_pid()
                               AND (state = 'idle in transaction' OR state = 'active')
                               AND (query ILIKE '%INSERT INTO events%' OR query ILIKE '%heads%')
                               AND random() < 0.3";
                killed += sqlx::query_scalar::<_, i64>(kill).fetch_one(&mut admin).await.unwrap();
                progress.notified().await;
            }
            killed
        }
    });
    let mut tasks = tokio::task::JoinSet::new();
    for caller in 0..12u64 {
        let (store, progress) = (store.clone(), Arc::clone(&progress));
        tasks.spawn(async move {
            let mut told = Vec::new();
            for round in 0..60u64 {
                let number = caller * 1_000 + round;
                let log = stream(&store, &format!("t{}", caller % 4), &format!("s{caller}"));
                let append = log.to_append([Happened { number }, Happened { number }]);
                let append = if round % 5 == 0 { append.id(Uuid::now_v7()) } else { append };
                told.push((number, append.send().await));
                progress.notify_one();
            }
            told
        });
    }
    let told: Vec<_> = tasks.join_all().await.into_iter().flatten().collect();
    over.store(true, Ordering::Release);
    progress.notify_one();
    let killed = killer.await.unwrap();
    assert!(killed >= 3, "only {killed} backends were killed");
    let mut all = Vec::new();
    for tenant in 0..4 {
        all.extend(numbers(&store, &format!("t{tenant}")).await);
    }
    for (number, result) in told {
        let found = all.iter().filter(|one| **one == number).count();
        match result {
            Ok(_) => assert_eq!(found, 2, "append {number} was told as done ({killed} killed)"),
            Err(AppendError::Store(error)) if error.kind() == ErrorKind::Unknown => {
                assert!(found == 0 || found == 2)
            }
            Err(error) => panic!("append {number} failed: {error} ({found} of it are there)"),
        }
    }
}

// X4
#[tokio::test(flavor = "multi_thread")]
async fn appends_go_on_where_they_were_when_a_killed_server_is_back() {
    if bellwether_launch::require("a killed server").is_none() {
        return;
    }
    // A server of its own: the others keep theirs.
    let server = bellwether_launch::Postgres::start(bellwether_launch::Options::default()).unwrap();
    let url = server.fresh_database().unwrap();
    let store = open(&url).await;
    let progress = Arc::new(tokio::sync::Semaphore::new(0));
    let mut tasks = tokio::task::JoinSet::new();
    for caller in 0..8u64 {
        let (store, progress) = (store.clone(), Arc::clone(&progress));
        tasks.spawn(async move {
            for round in 0..100u64 {
                let number = caller * 1_000 + round;
                let log = stream(&store, &format!("t{}", caller % 2), &format!("s{caller}"));
                let append = log.to_append([Happened { number }]);
                let append = if round % 7 == 0 { append.id(Uuid::now_v7()) } else { append };
                append.send().await.unwrap_or_else(|error| panic!("append {number}: {error}"));
                progress.add_permits(1);
            }
        });
    }
    // In the middle of it.
    progress.acquire_many(200).await.unwrap().forget();
    let server = tokio::task::spawn_blocking(move || {
        server.kill().unwrap();
        server.restart().unwrap();
        server
    });
    let server = server.await.unwrap();
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    let mut all = [numbers(&store, "t0").await, numbers(&store, "t1").await].concat();
    all.sort_unstable();
    let expected: Vec<u64> =
        (0..8).flat_map(|caller| (0..100).map(move |round| caller * 1_000 + round)).collect();
    assert_eq!(all, expected);
    drop(server);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retry_by_another_process_returns_the_first_result() {
    let Some(server) = bellwether_launch::require("append ids") else { return };
    let url = server.fresh_database().unwrap();
    let (first, second) = (open(&url).await, open(&url).await);
    let id = Uuid::now_v7();
    let events = || [Happened { number: 1 }, Happened { number: 2 }];
    stream(&first, "acme", "log").append([Happened { number: 0 }]).await.unwrap();
    let done = stream(&first, "acme", "log").to_append(events()).id(id).send().await.unwrap();
    stream(&first, "acme", "log").append([Happened { number: 3 }]).await.unwrap();
    let again = stream(&second, "acme", "log").to_append(events()).id(id).send().await.unwrap();
    assert_eq!(done, again);
    let other =
        stream(&second, "acme", "log").to_append([Happened { number: 9 }]).id(id).send().await.unwrap_err();
    assert_eq!(other.kind(), ErrorKind::Rejected);
    // Many at once, from both: one goes in.
    let id = Uuid::now_v7();
    let mut tasks = tokio::task::JoinSet::new();
    for caller in 0..16 {
        let log = stream([&first, &second][caller % 2], "acme", "log");
        tasks.spawn(async move { log.to_append([Happened { number: 4 }]).id(id).send().await.unwrap() });
    }
    let results = tasks.join_all().await;
    assert!(results.iter().all(|result| *result == results[0]), "{results:?}");
    assert_eq!(numbers(&second, "acme").await, [0, 1, 2, 3, 4]);
    assert_eq!(second.tenant("acme").unwrap().head().await.unwrap(), Sequence::new(5));
    assert_eq!(second.tenant("globex").unwrap().head().await.unwrap(), Sequence::ZERO);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_row_fails_only_its_own_caller() {
    let Some(server) = bellwether_launch::require("bad rows") else { return };
    let url = server.fresh_database().unwrap();
    let store = open(&url).await;
    let mut admin = PgConnection::connect(&url).await.unwrap();
    sqlx::query("ALTER TABLE events ADD CHECK (stream <> 'poison')").execute(&mut admin).await.unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..200u64 {
        let name = if number % 37 == 3 { "poison" } else { "log" };
        let log = stream(&store, &format!("t{}", number % 20), name);
        tasks.spawn(async move { (number, log.append([Happened { number }]).await) });
    }
    for (number, result) in tasks.join_all().await {
        match number % 37 {
            3 => assert_eq!(result.unwrap_err().kind(), ErrorKind::Rejected),
            _ => drop(result.unwrap()),
        }
    }
    let mut all = Vec::new();
    for tenant in 0..20 {
        all.extend(numbers(&store, &format!("t{tenant}")).await);
    }
    all.sort_unstable();
    assert_eq!(all, (0..200).filter(|number| number % 37 != 3).collect::<Vec<_>>());
}
