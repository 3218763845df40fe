//! Faults of the database: nothing is applied twice, nothing is lost, and work goes on.

use bellwether_daemon::{AgentState, DaemonConfig};
use bellwether_memory::{Answer, Commit};
use bellwether_storage::{Projections, Sequence};

use crate::bank::{Balance, Sheet, bank, deposited};
use crate::ground::{SOON, grounds, quick};

// X4
#[tokio::test]
async fn events_are_applied_exactly_once_though_answers_of_commits_are_lost() {
    for ground in grounds() {
        let daemon = ground.daemon().view::<Balance>().composite(bank()).start().await.unwrap();
        for round in 1..=20_u64 {
            for answer in [Answer::LostBefore, Answer::LostAfter] {
                ground.memory.faults().lose_answer(Commit::Finish, answer);
            }
            ground.append("acme", "a-1", &vec![deposited(1); 120]).await;
            daemon.caught_up(SOON).await.unwrap();
            let balance = ground.load::<Balance, _>("acme", "a-1").await.unwrap();
            assert_eq!(balance, Balance { cents: 120 * round as i64, events: 120 * round });
        }
        let sheet = ground.load::<Sheet, _>("acme", "all").await.unwrap();
        assert_eq!((sheet.accounts, sheet.cents, sheet.changes), (1, 2_400, 2_400));
        assert!(daemon.status().counters.retries >= 20, "the faults were met");
        daemon.stop().await.unwrap();
    }
}

// X4
#[tokio::test]
async fn failed_commits_and_an_unreachable_database_only_delay() {
    for ground in grounds() {
        let daemon = ground.daemon().view::<Balance>().start().await.unwrap();
        for round in 1..=10_u64 {
            ground.append("acme", "a-1", &vec![deposited(1); 50]).await;
            ground.memory.faults().fail_commits(2);
            ground.memory.faults().unavailable(5);
            // Reading the heads may meet the fault too, and then says so.
            while daemon.caught_up(SOON).await.is_err() {}
            ground.memory.faults().clear();
            assert_eq!(
                ground.load("acme", "a-1").await,
                Some(Balance { cents: 50 * round as i64, events: 50 * round })
            );
        }
        daemon.stop().await.unwrap();
    }
}

// X4
#[tokio::test]
async fn a_failover_that_loses_commits_is_followed() {
    for ground in grounds() {
        let faults = ground.memory.faults();
        faults.keep_history(100);
        let daemon = ground.daemon().view::<Balance>().start().await.unwrap();
        ground.append("acme", "a-1", &vec![deposited(1); 10]).await;
        daemon.caught_up(SOON).await.unwrap();
        ground.append("acme", "a-1", &vec![deposited(1); 5]).await;
        daemon.caught_up(SOON).await.unwrap();
        // The last page and the last append are gone.
        assert_eq!(faults.fail_over(2), 2);
        ground.append("acme", "a-1", &[deposited(100)]).await;
        while daemon.caught_up(SOON).await.is_err() {}
        let number = ground.tenant("acme").await.number;
        let streams =
            bellwether_storage::EventLog::stream_versions(&ground.memory, number, &[]).await.unwrap();
        assert_eq!(streams.head, Sequence::new(11));
        assert_eq!(ground.load("acme", "a-1").await, Some(Balance { cents: 110, events: 11 }));
        daemon.stop().await.unwrap();
    }
}

// T3
#[tokio::test]
async fn a_hole_stops_the_agent_with_a_reason_and_no_other() {
    for ground in grounds() {
        ground.append("acme", "a-1", &vec![deposited(1); 5]).await;
        ground.append("globex", "a-1", &vec![deposited(1); 5]).await;
        let acme = ground.tenant("acme").await.number;
        assert!(ground.memory.faults().remove_event(acme, Sequence::new(3)));
        let daemon = ground.daemon().view::<Balance>().start().await.unwrap();
        let behind = daemon.caught_up(SOON).await.unwrap_err().to_string();
        assert!(behind.contains("acme") && behind.contains("failed"), "{behind}");
        let status = daemon.status();
        let state =
            |name: &str| status.agents.iter().find(|a| a.tenant.as_str() == name).unwrap().state.clone();
        assert!(matches!(state("acme"), AgentState::Failed { reason } if !reason.is_empty()));
        while ground.load::<Balance, _>("globex", "a-1").await.is_none() {
            tokio::task::yield_now().await;
        }
        daemon.stop().await.unwrap();
    }
}

// T8: a page that hangs in its database gives its room back.
#[tokio::test(start_paused = true)]
async fn a_page_past_its_deadline_is_given_up_and_done_again() {
    for ground in grounds() {
        let mut config = DaemonConfig { takeover_after_ms: 1_000_000, ..quick() };
        config.budget.page_deadline_ms = 1_000;
        let daemon = ground.daemon().config(config).view::<Balance>().start().await.unwrap();
        ground.append("acme", "a-1", &[deposited(1)]).await;
        daemon.caught_up(SOON).await.unwrap();
        let key = ground.progress_key("acme", "balance").await;
        // Somebody sits on the progress row for longer than the deadline, and then lets go.
        let row = ground.memory.progress(&[key]).await.unwrap()[0].unwrap();
        let start = bellwether_storage::PageStart {
            key,
            from: row.sequence,
            generation: row.generation,
            owner: row.owner.unwrap(),
        };
        let sitting = ground.memory.begin(&start).await.unwrap();
        ground.append("acme", "a-1", &[deposited(1)]).await;
        let behind = daemon.caught_up(std::time::Duration::from_secs(20)).await.unwrap_err().to_string();
        assert!(behind.contains("balance") && behind.contains("acme"), "{behind}");
        drop(sitting);
        daemon.caught_up(SOON).await.unwrap();
        assert_eq!(ground.load("acme", "a-1").await, Some(Balance { cents: 2, events: 2 }));
        daemon.stop().await.unwrap();
    }
}
