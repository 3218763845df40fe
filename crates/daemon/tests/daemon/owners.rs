//! Two runners of one progress row: only the owner writes, and who stands by takes over when it must.

use std::time::Duration;

use bellwether_daemon::{AgentState, DaemonConfig};
use bellwether_storage::{Database, FenceClaim, FenceOutcome, FenceRequest, Owner, PageStart, Projections};
use uuid::Uuid;

use crate::bank::{Balance, Totals, deposited};
use crate::ground::{Ground, SOON, all_grounds, grounds, quick};

/// Takes the row over in the name of somebody who then vanishes.
async fn take_over(ground: &Ground, tenant: &str) -> (Owner, PageStart) {
    let owner = Owner(Uuid::now_v7());
    let key = ground.progress_key(tenant, "balance").await;
    let request = FenceRequest { key, claim: FenceClaim::TakeOver { seen: None } };
    let outcomes = ground.memory.fence(owner, &[request]).await.unwrap();
    let FenceOutcome::Positioned(progress) = outcomes[0] else { panic!("{outcomes:?}") };
    (owner, PageStart { key, from: progress.sequence, generation: progress.generation, owner })
}

// X4 T5
#[tokio::test(start_paused = true)]
async fn a_fenced_runner_stands_by_and_takes_over_when_the_owner_stood_still_for_ten_seconds() {
    for ground in grounds() {
        let daemon = ground.daemon().view::<Balance>().start().await.unwrap();
        ground.append("acme", "a-1", &[deposited(1)]).await;
        daemon.caught_up(SOON).await.unwrap();
        let (_, zombie) = take_over(&ground, "acme").await;
        ground.append("acme", "a-1", &[deposited(1)]).await;
        let start = tokio::time::Instant::now();
        daemon.caught_up(Duration::from_millis(9_500)).await.unwrap_err();
        assert_eq!(daemon.status().agents[0].state, AgentState::StandingBy);
        assert_eq!(ground.load("acme", "a-1").await, Some(Balance { cents: 1, events: 1 }));
        daemon.caught_up(SOON).await.unwrap();
        assert!(start.elapsed() >= Duration::from_secs(10), "{:?}", start.elapsed());
        assert_eq!(ground.load("acme", "a-1").await, Some(Balance { cents: 2, events: 2 }));
        // The zombie comes back with what it knew.
        let fenced = ground.memory.begin(&zombie).await.err().unwrap();
        assert_eq!(fenced.kind(), bellwether_storage::ErrorKind::Fenced);
        daemon.stop().await.unwrap();
    }
}

// X4
#[tokio::test(start_paused = true)]
async fn who_stands_by_for_a_living_owner_never_takes_over() {
    for ground in grounds() {
        let daemon = ground.daemon().view::<Balance>().start().await.unwrap();
        ground.append("acme", "a-1", &[deposited(1)]).await;
        daemon.caught_up(SOON).await.unwrap();
        let (_, mut start) = take_over(&ground, "acme").await;
        for _ in 0..10 {
            ground.append("acme", "a-1", &[deposited(1)]).await;
            tokio::time::sleep(Duration::from_secs(8)).await;
            let unit = ground.memory.begin(&start).await.unwrap();
            start.from = start.from.next();
            unit.finish(start.from, &[]).await.unwrap();
        }
        // The owner is at the head: caught up, whoever did it.
        daemon.caught_up(SOON).await.unwrap();
        assert_eq!(daemon.status().agents[0].state, AgentState::StandingBy);
        assert_eq!(daemon.status().agents[0].progress, Some(start.from));
        daemon.stop().await.unwrap();
    }
}

// X4
#[tokio::test(start_paused = true)]
async fn an_owner_that_was_idle_for_long_has_ten_seconds_for_the_next_event_too() {
    for ground in grounds() {
        let daemon = ground.daemon().view::<Balance>().start().await.unwrap();
        ground.append("acme", "a-1", &[deposited(1)]).await;
        daemon.caught_up(SOON).await.unwrap();
        let (owner, mut start) = take_over(&ground, "acme").await;
        ground.append("acme", "a-1", &[deposited(1)]).await;
        daemon.caught_up(Duration::from_secs(1)).await.unwrap_err();
        let unit = ground.memory.begin(&start).await.unwrap();
        start.from = start.from.next();
        unit.finish(start.from, &[]).await.unwrap();
        daemon.caught_up(SOON).await.unwrap();
        // Nothing to do for an hour; then an event that the owner takes a moment for.
        tokio::time::sleep(Duration::from_secs(3_600)).await;
        ground.append("acme", "a-1", &[deposited(1)]).await;
        daemon.caught_up(Duration::from_secs(9)).await.unwrap_err();
        let row = ground.memory.progress(&[start.key]).await.unwrap()[0].unwrap();
        assert_eq!((row.owner, row.generation), (Some(owner), start.generation));
        daemon.stop().await.unwrap();
    }
}

// X4
#[tokio::test]
async fn two_daemons_on_one_store_apply_each_event_once() {
    for ground in all_grounds().await {
        let (one, two) = (ground.another_process().await, ground.another_process().await);
        let one = one.daemon().view::<Balance>().multi_view::<Totals>().start().await.unwrap();
        let two = two.daemon().view::<Balance>().multi_view::<Totals>().start().await.unwrap();
        for round in 1..=20_u64 {
            for tenant in ["acme", "globex", "initech"] {
                ground.append(tenant, "a-1", &vec![deposited(1); 30]).await;
            }
            one.caught_up(SOON).await.unwrap();
            two.caught_up(SOON).await.unwrap();
            for tenant in ["acme", "globex", "initech"] {
                let balance = ground.load::<Balance, _>(tenant, "a-1").await.unwrap();
                assert_eq!(balance, Balance { cents: 30 * round as i64, events: 30 * round });
            }
        }
        one.stop().await.unwrap();
        two.stop().await.unwrap();
    }
}

// X4
#[tokio::test(start_paused = true)]
async fn the_second_daemon_takes_over_after_the_first_vanished() {
    for ground in grounds() {
        let one = ground.another_process().await.daemon().view::<Balance>().start().await.unwrap();
        let two = ground.another_process().await.daemon().view::<Balance>().start().await.unwrap();
        ground.append("acme", "a-1", &vec![deposited(1); 3]).await;
        one.caught_up(SOON).await.unwrap();
        two.caught_up(SOON).await.unwrap();
        // Stopped daemons own their rows still: nobody releases what a crash would not release.
        one.stop().await.unwrap();
        ground.append("acme", "a-1", &vec![deposited(1); 3]).await;
        two.caught_up(SOON).await.unwrap();
        assert_eq!(ground.load("acme", "a-1").await, Some(Balance { cents: 6, events: 6 }));
        two.stop().await.unwrap();
    }
}

// T3
#[tokio::test(start_paused = true)]
async fn idle_agents_cost_no_statement() {
    for ground in grounds() {
        for tenant in 0..50 {
            ground.append(&format!("tenant-{tenant}"), "a-1", &[deposited(1)]).await;
        }
        let daemon = ground
            .daemon()
            .config(DaemonConfig::default())
            .view::<Balance>()
            .multi_view::<Totals>()
            .start()
            .await
            .unwrap();
        daemon.caught_up(SOON).await.unwrap();
        tokio::time::sleep(Duration::from_secs(60)).await;
        let before = ground.memory.counters();
        tokio::time::sleep(Duration::from_secs(600)).await;
        let after = ground.memory.counters();
        let reads = after.discovery_reads - before.discovery_reads;
        // One read a tick, ticks of ten seconds less a tenth at most; and one look at the server's activity a second.
        assert!((60..=68).contains(&reads), "{reads} reads in ten minutes");
        let others = after.statements - before.statements - reads;
        assert!(others <= 601, "{others} other statements in ten minutes");
        daemon.stop().await.unwrap();
    }
}

// T3
#[tokio::test(start_paused = true)]
async fn a_restart_on_a_caught_up_store_takes_nothing_over() {
    for ground in grounds() {
        ground.append("acme", "a-1", &[deposited(1)]).await;
        let one =
            ground.another_process().await.daemon().config(quick()).view::<Balance>().start().await.unwrap();
        one.caught_up(SOON).await.unwrap();
        let key = ground.progress_key("acme", "balance").await;
        let before = ground.memory.progress(&[key]).await.unwrap();
        let two =
            ground.another_process().await.daemon().config(quick()).view::<Balance>().start().await.unwrap();
        two.caught_up(SOON).await.unwrap();
        assert_eq!(ground.memory.progress(&[key]).await.unwrap(), before);
        one.stop().await.unwrap();
        two.stop().await.unwrap();
    }
}
