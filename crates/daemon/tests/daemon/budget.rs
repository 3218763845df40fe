//! The load budget, end to end: tenants take turns, and output counts.

use std::time::Duration;

use bellwether_daemon::{AgentNo, AgentState, Ask, BudgetConfig, DaemonConfig, HopperConfig};
use bellwether_storage::{DatabaseNo, PageStyle, Sequence};

use crate::bank::{Balance, Fan, Money, deposited};
use crate::ground::{SOON, all_grounds, grounds, quick};

// T5 T1
#[tokio::test]
async fn under_a_budget_of_one_page_every_tenant_moves() {
    for ground in all_grounds().await {
        let config = DaemonConfig {
            budget: BudgetConfig { events_max: 10, ..BudgetConfig::default() },
            hopper: HopperConfig { page_events: 10, rebuild_page_events: 10, ..HopperConfig::default() },
            ..quick()
        };
        let daemon = ground.daemon().config(config).view::<Balance>().start().await.unwrap();
        // Everybody stands in line before the first page.
        let ask = Ask { database: DatabaseNo(9), agent: AgentNo(99), events: 10, bytes: 1, front: false };
        let held = daemon.budget().reserve(ask).await;
        for tenant in 0..24 {
            ground.append(&format!("tenant-{tenant}"), "a-1", &vec![deposited(1); 100]).await;
        }
        let waits = |state: &AgentState| {
            matches!(state, AgentState::WaitingPermit | AgentState::WaitingBudget { .. })
        };
        while daemon.status().agents.iter().filter(|agent| waits(&agent.state)).count() < 24 {
            tokio::task::yield_now().await;
        }
        drop(held);
        // Turns are taken: nobody is more than a round ahead of anybody, however often we look.
        while daemon.status().agents.iter().any(|agent| agent.progress < Some(agent.head)) {
            let status = daemon.status();
            let progress = || status.agents.iter().map(|agent| agent.progress.map_or(0, Sequence::get));
            let (least, most) = (progress().min().unwrap(), progress().max().unwrap());
            assert!(most - least <= 10, "one tenant is at {most}, another at {least}");
            tokio::task::yield_now().await;
        }
        daemon.caught_up(SOON).await.unwrap();
        for tenant in 0..24 {
            let balance = ground.load::<Balance, _>(&format!("tenant-{tenant}"), "a-1").await;
            assert_eq!(balance, Some(Balance { cents: 100, events: 100 }));
        }
        let budget = daemon.budget().status();
        assert!(budget.events.peak <= 10, "{budget:?}");
        assert_eq!((budget.events.in_use, budget.bytes.in_use, budget.pages.in_use), (0, 0, 0));
        assert_eq!(daemon.status().counters.pages, 240);
        daemon.stop().await.unwrap();
    }
}

// T5
#[tokio::test]
async fn an_event_that_fans_out_beyond_the_chunk_stays_within_the_budget() {
    const BUDGET: u64 = 1024 * 1024;
    for ground in all_grounds().await {
        // 2,000 documents of 2 KB: four times the budget, in one event.
        let event = Money::Spread { first: 0, documents: 2_000, bytes: 2_048 };
        ground
            .append("acme", "a-1", &[event.clone(), Money::Spread { first: 0, documents: 10, bytes: 10 }])
            .await;
        let config = DaemonConfig {
            budget: BudgetConfig { bytes_max: Some(BUDGET), ..BudgetConfig::default() },
            ..quick()
        };
        let daemon = ground.daemon().config(config).multi_view::<Fan>().start().await.unwrap();
        daemon.caught_up(SOON).await.unwrap();
        let counters = daemon.status().counters;
        assert_eq!(counters.documents, 2_010, "{counters:?}");
        assert!(counters.flushes > 0, "{counters:?}");
        assert!(counters.page_bytes_peak <= BUDGET, "{counters:?}");
        assert!(daemon.budget().status().bytes.peak <= BUDGET);
        assert_eq!(ground.load::<Fan, _>("acme", "document-000009").await.unwrap().touched, 2);
        assert_eq!(ground.load::<Fan, _>("acme", "document-001999").await.unwrap().body.len(), 2_048);
        daemon.stop().await.unwrap();
    }
}

// T5
#[tokio::test]
async fn many_events_that_fan_out_are_cut_where_a_transaction_keeps_others_waiting() {
    for ground in all_grounds().await {
        let style = ground.database().page_style();
        // 2.4 MB of documents in all, 40 KB per event, gone through twice.
        let events =
            (0..120).map(|event| Money::Spread { first: event % 60 * 5, documents: 5, bytes: 8 * 1_024 });
        ground.append("acme", "a-1", &events.collect::<Vec<_>>()).await;
        let config = DaemonConfig {
            budget: BudgetConfig { bytes_max: Some(512 * 1024), ..BudgetConfig::default() },
            ..quick()
        };
        let daemon = ground.daemon().config(config).multi_view::<Fan>().start().await.unwrap();
        daemon.caught_up(SOON).await.unwrap();
        let counters = daemon.status().counters;
        for document in [0, 77, 299] {
            let found = ground.load::<Fan, _>("acme", &format!("document-{document:06}")).await.unwrap();
            assert_eq!(found.touched, 2, "{style:?}");
        }
        assert!(counters.page_bytes_peak <= 512 * 1024, "{counters:?}");
        match style {
            PageStyle::Streaming => assert!(counters.flushes > 1, "{counters:?}"),
            _ => assert!(counters.pages > 2 && counters.flushes == 0, "{counters:?}"),
        }
        daemon.stop().await.unwrap();
    }
}

// T5
#[tokio::test]
async fn waiting_for_budget_is_a_state_with_place_and_reason() {
    for ground in all_grounds().await {
        let config =
            DaemonConfig { budget: BudgetConfig { events_max: 10, ..BudgetConfig::default() }, ..quick() };
        let daemon = ground.daemon().config(config).view::<Balance>().start().await.unwrap();
        let ask = Ask { database: DatabaseNo(9), agent: AgentNo(99), events: 10, bytes: 1, front: false };
        let held = daemon.budget().reserve(ask).await;
        ground.append("acme", "a-1", &[deposited(1)]).await;
        ground.append("globex", "a-1", &[deposited(1)]).await;
        let behind = daemon.caught_up(Duration::from_millis(50)).await.unwrap_err().to_string();
        let one_page = ground.database().pages_max() == Some(1);
        assert!(one_page || behind.contains("waiting for budget at place"), "{behind}");
        let mut places: Vec<_> = daemon
            .status()
            .agents
            .into_iter()
            .map(|agent| match agent.state {
                AgentState::WaitingBudget { place, reason } if !reason.is_empty() => place,
                // Where the database stands one page only, the other waits for that.
                AgentState::WaitingPermit if one_page => 2,
                other => panic!("{other:?}"),
            })
            .collect();
        places.sort_unstable();
        assert_eq!(places, [1, 2]);
        drop(held);
        daemon.caught_up(SOON).await.unwrap();
        daemon.stop().await.unwrap();
    }
}

// T5: given back on cancellation.
#[tokio::test]
async fn stopping_while_agents_wait_leaves_nothing_behind() {
    for ground in grounds() {
        let config =
            DaemonConfig { budget: BudgetConfig { events_max: 1, ..BudgetConfig::default() }, ..quick() };
        let daemon = ground.daemon().config(config).view::<Balance>().start().await.unwrap();
        let budget = daemon.budget().clone();
        let ask = Ask { database: DatabaseNo(9), agent: AgentNo(99), events: 1, bytes: 1, front: false };
        let held = budget.reserve(ask).await;
        ground.append("acme", "a-1", &[deposited(1)]).await;
        while budget.status().waiting.is_empty() {
            tokio::task::yield_now().await;
        }
        daemon.stop().await.unwrap();
        assert!(budget.status().waiting.is_empty());
        drop(held);
        assert_eq!(budget.status().pages.in_use, 0);
    }
}

// T5: an event larger than the estimate, and larger than the whole budget, still gets through.
#[tokio::test]
async fn an_event_larger_than_the_budget_gets_through_alone() {
    for ground in all_grounds().await {
        ground.append("acme", "a-1", &vec![deposited(1); 20]).await;
        ground.append_sized("acme", "a-1", 300 * 1024).await;
        ground.append("acme", "a-1", &[deposited(1)]).await;
        let config = DaemonConfig {
            budget: BudgetConfig { bytes_max: Some(64 * 1024), ..BudgetConfig::default() },
            ..quick()
        };
        let daemon = ground.daemon().config(config).view::<Balance>().start().await.unwrap();
        daemon.caught_up(SOON).await.unwrap();
        assert_eq!(ground.load("acme", "a-1").await, Some(Balance { cents: 21, events: 22 }));
        daemon.stop().await.unwrap();
    }
}

// T4
#[tokio::test]
async fn in_single_file_one_page_of_a_projection_is_in_flight() {
    for ground in grounds() {
        for tenant in 0..8 {
            ground.append(&format!("tenant-{tenant}"), "a-1", &vec![deposited(1); 50]).await;
        }
        ground.memory.faults().latency(Some(Duration::from_millis(1)));
        let daemon = ground
            .daemon()
            .config(DaemonConfig { single_file: true, ..quick() })
            .view::<Balance>()
            .start()
            .await
            .unwrap();
        daemon.caught_up(SOON).await.unwrap();
        assert_eq!(daemon.budget().status().pages.peak, 1);
        ground.memory.faults().clear();
        daemon.stop().await.unwrap();
    }
}

// T8
#[tokio::test]
async fn pages_in_flight_of_a_database_are_bounded_by_its_permits() {
    for ground in grounds() {
        for tenant in 0..8 {
            ground.append(&format!("tenant-{tenant}"), "a-1", &vec![deposited(1); 50]).await;
        }
        ground.memory.faults().latency(Some(Duration::from_millis(1)));
        let config = DaemonConfig { pages_per_database: 2, ..quick() };
        let daemon = ground.daemon().config(config).view::<Balance>().start().await.unwrap();
        daemon.caught_up(SOON).await.unwrap();
        let stands = ground.database().pages_max().unwrap_or(u32::MAX);
        assert_eq!(daemon.budget().status().pages.peak, u64::from(stands.min(2)));
        ground.memory.faults().clear();
        daemon.stop().await.unwrap();
    }
}
