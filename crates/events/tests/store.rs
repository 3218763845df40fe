//! Appending, reading, loading and executing through the public API, on the store in memory.

use std::sync::{Arc, Mutex};

use bellwether_events::{
    Aggregate, AppendError, Decide, Event, ExecuteError, Expected, HeadListener, Store, StoreConfig,
};
use bellwether_memory::Memory;
use bellwether_storage::{Database, DatabaseNo, Encoding, ErrorKind, Sequence, TenantId, TenantNo, Version};
use bellwether_tenants::{Placed, Rule};
use uuid::Uuid;

#[derive(Debug, Clone, PartialEq, Event)]
enum Money {
    Opened { owner: String },
    Deposited { cents: i64 },
    Withdrawn { cents: i64 },
}

#[derive(Debug, Clone, PartialEq, Event)]
enum Opening {
    Opened { owner: String },
}

#[derive(Debug, Default)]
struct Account {
    cents: i64,
}

impl Aggregate for Account {
    const NAME: &'static str = "account";

    type Event = Money;

    fn evolve(&mut self, event: &Money) {
        match event {
            Money::Opened { .. } => {}
            Money::Deposited { cents } => self.cents += cents,
            Money::Withdrawn { cents } => self.cents -= cents,
        }
    }
}

#[derive(Debug, Clone)]
struct Withdraw(i64);

#[derive(Debug, PartialEq, thiserror::Error)]
#[error("{have} cents in the account, {want} asked for")]
struct Short {
    have: i64,
    want: i64,
}

impl Decide<Withdraw> for Account {
    type Error = Short;

    fn decide(&self, Withdraw(want): Withdraw) -> Result<Vec<Money>, Short> {
        match want {
            0 => Ok(Vec::new()),
            want if want > self.cents => Err(Short { have: self.cents, want }),
            cents => Ok(vec![Money::Withdrawn { cents }]),
        }
    }
}

fn open(memory: &Memory) -> Store {
    open_with(memory, StoreConfig::default())
}

fn open_with(memory: &Memory, config: StoreConfig) -> Store {
    let databases: Vec<Arc<dyn Database>> = vec![Arc::new(memory.another_handle())];
    let directory = Arc::new(Placed::new(databases.clone(), Rule::Single));
    Store::with_config(databases, directory, config)
}

fn deposit(cents: i64) -> Money {
    Money::Deposited { cents }
}

#[tokio::test]
async fn what_was_appended_is_read_back_in_order() {
    let store = open(&Memory::new());
    let tenant = store.tenant("acme").unwrap();
    let account = tenant.stream::<Account>("a-1").unwrap();
    let opened = Money::Opened { owner: "Ada".into() };
    let first = account.append([opened.clone(), deposit(5)]).await.unwrap();
    assert_eq!((first.first.get(), first.last.get(), first.version.get()), (1, 2, 2));
    let second =
        account.to_append([deposit(7)]).expecting(first.version).header("user", "ada").send().await.unwrap();
    assert_eq!((second.first.get(), second.version.get()), (3, 3));

    let read = account.read(Version::ZERO, 10).await.unwrap();
    assert_eq!(
        read.iter().map(|event| event.event.clone()).collect::<Vec<_>>(),
        [opened.clone(), deposit(5), deposit(7)]
    );
    assert_eq!(read[2].headers.get("user").map(String::as_str), Some("ada"));
    assert!(read[0].headers.is_empty());
    assert_eq!(account.read(Version::new(1), 1).await.unwrap()[0].event, deposit(5));

    // Only the types that the enum knows are loaded.
    let openings = tenant.read::<Opening>(Sequence::ZERO, 10).await.unwrap();
    assert_eq!(openings.len(), 1);
    assert!(tenant.read::<Opening>(Sequence::new(1), 10).await.unwrap().is_empty());
    assert_eq!(tenant.read::<Money>(Sequence::ZERO, 2).await.unwrap().len(), 2);
    assert_eq!(tenant.head().await.unwrap(), Sequence::new(3));
}

#[tokio::test]
async fn a_conflict_tells_what_was_expected_and_what_is_there() {
    let memory = Memory::new();
    let (store, other) = (open(&memory), open(&memory));
    let account = store.tenant("acme").unwrap().stream::<Account>("a-1").unwrap();
    account.append_expecting(Expected::None, [deposit(1)]).await.unwrap();
    for (expected, events) in [(Expected::None, 1), (Expected::Exact(Version::new(7)), 2)] {
        let error = account.append_expecting(expected, vec![deposit(1); events]).await.unwrap_err();
        match error {
            AppendError::Conflict { expected: told, actual, .. } => {
                assert_eq!((told, actual), (expected, Version::new(1)));
            }
            other => panic!("{other}"),
        }
    }
    // Another process was first: the conflict names the version it left.
    let same = other.tenant("acme").unwrap().stream::<Account>("a-1").unwrap();
    same.append([deposit(2), deposit(3)]).await.unwrap();
    let error = account.append_expecting(Version::new(1), [deposit(1)]).await.unwrap_err();
    assert!(matches!(error, AppendError::Conflict { actual, .. } if actual == Version::new(3)), "{error}");
    // What was true for the other is no conflict here, although this process had another version in mind.
    account.append_expecting(Version::new(3), [deposit(1)]).await.unwrap();
    same.append_expecting(Version::new(4), [deposit(1)]).await.unwrap();
    assert_eq!(account.load().await.unwrap().1, Version::new(5));
}

#[tokio::test]
async fn several_streams_go_in_together_or_not_at_all() {
    let store = open(&Memory::new());
    let tenant = store.tenant("acme").unwrap();
    let (a, b) = (tenant.stream::<Account>("a").unwrap(), tenant.stream::<Account>("b").unwrap());
    let results = tenant
        .append_all(vec![
            a.to_append([deposit(1), deposit(2)]).expecting(Expected::None),
            b.to_append([deposit(3)]).expecting(Expected::None),
            a.to_append([deposit(4)]).expecting(Version::new(2)),
        ])
        .await
        .unwrap();
    let numbers: Vec<_> =
        results.iter().map(|one| (one.first.get(), one.last.get(), one.version.get())).collect();
    assert_eq!(numbers, [(1, 2, 2), (3, 3, 1), (4, 4, 3)]);

    let error = tenant
        .append_all(vec![a.to_append([deposit(9)]), b.to_append([deposit(9)]).expecting(Expected::None)])
        .await
        .unwrap_err();
    assert!(matches!(error, AppendError::Conflict { stream, .. } if stream.as_str() == "b"));
    assert_eq!(tenant.head().await.unwrap(), Sequence::new(4));

    let elsewhere = store.tenant("globex").unwrap().stream::<Account>("a").unwrap();
    let error = tenant
        .append_all(vec![a.to_append([deposit(1)]), elsewhere.to_append([deposit(1)])])
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Rejected);
    assert_eq!(tenant.append_all(Vec::new()).await.unwrap_err().kind(), ErrorKind::Rejected);
}

#[tokio::test]
async fn a_retry_with_an_append_id_returns_the_first_result() {
    let memory = Memory::new();
    let (store, other) = (open(&memory), open(&memory));
    let id = Uuid::now_v7();
    let account = store.tenant("acme").unwrap().stream::<Account>("a-1").unwrap();
    account.append([deposit(1)]).await.unwrap();
    let send = |account: bellwether_events::Stream<Account>| async move {
        account.to_append([deposit(2), deposit(3)]).id(id).send().await
    };
    let first = send(account.clone()).await.unwrap();
    account.append([deposit(4)]).await.unwrap();
    assert_eq!(send(account.clone()).await.unwrap(), first);
    assert_eq!(send(other.tenant("acme").unwrap().stream("a-1").unwrap()).await.unwrap(), first);
    assert_eq!(account.load().await.unwrap().1, Version::new(4));

    let error = account.to_append([deposit(2)]).id(id).send().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Rejected);
    assert!(error.to_string().contains("other content"), "{error}");

    // Two at once are one, too.
    let id = Uuid::now_v7();
    let (a, b) = tokio::join!(
        account.to_append([deposit(5)]).id(id).send(),
        account.to_append([deposit(5)]).id(id).send()
    );
    assert_eq!(a.unwrap(), b.unwrap());
    assert_eq!(account.load().await.unwrap().1, Version::new(5));
}

#[tokio::test]
async fn commands_are_decided_on_the_newest_state() {
    let memory = Memory::new();
    let store = open(&memory);
    let account = store.tenant("acme").unwrap().stream::<Account>("a-1").unwrap();
    account.append([deposit(100)]).await.unwrap();
    assert_eq!(account.execute(Withdraw(30)).await.unwrap().version, Version::new(2));
    assert_eq!(account.execute(Withdraw(0)).await.unwrap().appended, None);
    let error = account.execute(Withdraw(71)).await.unwrap_err();
    assert!(matches!(error, ExecuteError::Rejected(Short { have: 70, want: 71 })), "{error}");

    // 16 tasks of two processes withdraw 5 each: exactly 14 succeed, and nothing is lost.
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..16 {
        let store = if number % 2 == 0 { store.clone() } else { open(&memory) };
        tasks.spawn(async move {
            store.tenant("acme").unwrap().stream::<Account>("a-1").unwrap().execute(Withdraw(5)).await
        });
    }
    let results = tasks.join_all().await;
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 14);
    let (state, version) = account.load().await.unwrap();
    assert_eq!((state.cents, version), (0, Version::new(16)));
}

#[tokio::test]
async fn limits_are_refused_before_anything_is_sent() {
    let memory = Memory::new();
    let store = open(&memory);
    let account = store.tenant("acme").unwrap().stream::<Account>("a-1").unwrap();
    let kind = |result: Result<_, AppendError>| result.map(|_: bellwether_events::Appended| ()).unwrap_err();

    // An endless iterator is refused at the first event too many.
    let error = kind(account.append(std::iter::repeat_with(|| deposit(1))).await);
    assert!(error.to_string().contains("10000 events") && error.kind() == ErrorKind::Rejected, "{error}");
    let error = kind(account.append([]).await);
    assert!(error.to_string().contains("without events"), "{error}");
    let error = kind(account.append([Money::Opened { owner: "x".repeat(4 * 1024 * 1024) }]).await);
    assert!(error.to_string().contains("Opened takes more than 4194304 bytes"), "{error}");
    let error = kind(account.append((0..17).map(|_| Money::Opened { owner: "x".repeat(4_000_000) })).await);
    assert!(error.to_string().contains("bytes in one append"), "{error}");
    let error = kind(account.to_append([deposit(1)]).header("k", "v".repeat(17_000)).send().await);
    assert!(error.to_string().contains("headers"), "{error}");
    let many =
        (0..4_000).fold(account.to_append([deposit(1)]), |append, n| append.header(format!("{n}"), ""));
    assert!(kind(many.send().await).to_string().contains("headers"));
    assert!(store.tenant("Acme").is_err());
    assert!(store.tenant("acme").unwrap().stream::<Account>("").is_err());

    assert_eq!(memory.another_handle().counters().statements, 0);
    assert_eq!(store.databases()[0].counters().statements, 0);
}

#[tokio::test]
async fn json_is_a_choice_and_a_log_may_mix_encodings() {
    let memory = Memory::new();
    let json = open_with(&memory, StoreConfig::default().encoding(Encoding::Json));
    let default = open(&memory);
    let in_json = json.tenant("acme").unwrap().stream::<Account>("a-1").unwrap();
    let in_default = default.tenant("acme").unwrap().stream::<Account>("a-1").unwrap();
    in_json.append([deposit(1)]).await.unwrap();
    in_default.append([deposit(2)]).await.unwrap();
    assert_eq!(in_json.load().await.unwrap().0.cents, 3);
    assert_eq!(in_default.load().await.unwrap().0.cents, 3);
}

#[derive(Default)]
struct Heard(Mutex<Vec<(DatabaseNo, TenantId, Sequence)>>);

impl HeadListener for Heard {
    fn head_moved(&self, database: DatabaseNo, _tenant: TenantNo, id: &TenantId, head: Sequence) {
        self.0.lock().unwrap().push((database, id.clone(), head));
    }
}

#[tokio::test]
async fn listeners_hear_of_a_commit_before_its_caller() {
    let store = open(&Memory::new());
    let heard = Arc::new(Heard::default());
    store.on_head_moved(heard.clone());
    let account = store.tenant("acme").unwrap().stream::<Account>("a-1").unwrap();
    account.append([deposit(1), deposit(2)]).await.unwrap();
    let acme = TenantId::new("acme").unwrap();
    assert_eq!(*heard.0.lock().unwrap(), [(DatabaseNo(0), acme, Sequence::new(2))]);
}

#[tokio::test]
async fn closing_commits_what_was_taken_and_takes_no_more() {
    let memory = Memory::new();
    let store = open(&memory);
    // The directory knows the tenant from here on, so that the appends below are handed in when they are first polled.
    store.tenant("acme").unwrap().head().await.unwrap();
    memory.faults().latency(Some(std::time::Duration::from_millis(5)));
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..50 {
        let account = store.tenant("acme").unwrap().stream::<Account>(format!("a-{number}")).unwrap();
        tasks.spawn(async move { account.append([deposit(1)]).await });
    }
    tokio::task::yield_now().await;
    store.close().await;
    let done = tasks.join_all().await.into_iter().filter(Result::is_ok).count() as u64;
    memory.faults().clear();
    let head = open(&memory).tenant("acme").unwrap().head().await.unwrap();
    assert_eq!((head.get(), done), (50, 50));

    let account = store.tenant("acme").unwrap().stream::<Account>("late").unwrap();
    assert_eq!(account.append([deposit(1)]).await.unwrap_err().kind(), ErrorKind::Unavailable);
}

#[tokio::test]
async fn an_unplaced_tenant_is_refused_when_several_databases_are_there() {
    let databases: Vec<Arc<dyn Database>> =
        vec![Arc::new(Memory::named("one")), Arc::new(Memory::named("two"))];
    let directory = Arc::new(Placed::new(databases.clone(), Rule::Explicit));
    let store = Store::new(databases, directory.clone());
    let account = store.tenant("acme").unwrap().stream::<Account>("a-1").unwrap();
    assert_eq!(account.append([deposit(1)]).await.unwrap_err().kind(), ErrorKind::Rejected);
    directory.place(&TenantId::new("acme").unwrap(), DatabaseNo(1)).await.unwrap();
    account.append([deposit(1)]).await.unwrap();
    let elsewhere = store.databases()[0].find_tenant(&TenantId::new("acme").unwrap()).await.unwrap();
    assert_eq!(elsewhere, None);
    assert_eq!(store.tenants().await.unwrap(), [TenantId::new("acme").unwrap()]);
}
