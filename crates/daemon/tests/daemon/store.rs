//! A daemon on a store: its appends wake agents, and documents are read back through a tenant.

use std::sync::Arc;

use bellwether_daemon::{Daemon, DaemonConfig, ReadViews};
use bellwether_events::Store;
use bellwether_storage::Database;
use bellwether_tenants::{Placed, Rule};

use crate::bank::{Account, Balance, Fan, Money, Sheet, bank, deposited};
use crate::ground::{SOON, all_grounds, quick};

fn store(database: Arc<dyn Database>) -> Store {
    let databases = vec![database];
    Store::new(databases.clone(), Arc::new(Placed::new(databases, Rule::Single)))
}

// T3
#[tokio::test]
async fn appends_of_this_process_wake_agents_without_a_statement() {
    for ground in all_grounds().await {
        let store = store(ground.database());
        // The first read is the only one for an hour.
        let hour = 3_600_000;
        let config = DaemonConfig {
            discovery_min_ms: hour,
            discovery_max_ms: hour,
            discovery_full_ms: hour,
            sieve_ms: hour,
            ..quick()
        };
        let daemon = Daemon::builder(store.clone()).config(config).view::<Balance>().start().await.unwrap();
        while daemon.status().counters.polls == 0 {
            tokio::task::yield_now().await;
        }
        let acme = store.tenant("acme").unwrap();
        let stream = acme.stream_of::<Money>("a-1").unwrap();
        for _ in 0..5 {
            stream.append([deposited(1)]).await.unwrap();
        }
        while acme.load::<Balance>("a-1").await.unwrap() != Some(Balance { cents: 5, events: 5 }) {
            tokio::task::yield_now().await;
        }
        assert_eq!(daemon.status().counters.polls, 1);
        daemon.stop().await.unwrap();
    }
}

#[tokio::test]
async fn documents_of_every_kind_are_read_back_and_listed_in_order_of_their_keys() {
    for ground in all_grounds().await {
        let store = store(ground.database());
        let daemon = Daemon::builder(store.clone())
            .config(quick())
            .composite(bank())
            .multi_view::<Fan>()
            .start()
            .await
            .unwrap();
        let acme = store.tenant("acme").unwrap();
        let spread = Money::Spread { first: 0, documents: 25, bytes: 3 };
        acme.stream_of::<Money>("a-1").unwrap().append([deposited(4), spread]).await.unwrap();
        daemon.caught_up(SOON).await.unwrap();
        assert_eq!(acme.load::<Account>("a-1").await.unwrap().unwrap().cents, 4);
        assert_eq!(acme.load::<Sheet>("all").await.unwrap().unwrap().accounts, 1);
        assert!(acme.load::<Sheet>("none").await.unwrap().is_none());
        let (mut keys, mut after) = (Vec::new(), None);
        loop {
            let page = acme.list::<Fan>(after.as_deref(), 10).await.unwrap();
            let Some((last, _)) = page.last() else { break };
            after = Some(last.clone());
            keys.extend(page.into_iter().map(|(key, _)| key));
        }
        assert_eq!(keys, (0..25).map(|number| format!("document-{number:06}")).collect::<Vec<_>>());
        daemon.stop().await.unwrap();
    }
}
