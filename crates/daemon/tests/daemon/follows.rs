//! Views follow their events.

use crate::bank::{Account, Balance, Money, Sheet, Totals, bank, deposited};
use crate::ground::{SOON, all_grounds};

// T3
#[tokio::test]
async fn views_follow_events_appended_before_and_after_the_start() {
    for ground in all_grounds().await {
        ground.append("acme", "a-1", &[deposited(900), Money::Noise, deposited(100)]).await;
        let daemon = ground.daemon().view::<Balance>().multi_view::<Totals>().start().await.unwrap();
        daemon.caught_up(SOON).await.unwrap();
        assert_eq!(ground.load("acme", "a-1").await, Some(Balance { cents: 1_000, events: 2 }));

        ground.append("acme", "a-1", &[Money::Withdrawn { cents: 250 }]).await;
        ground.append("acme", "a-2", &[deposited(1)]).await;
        daemon.caught_up(SOON).await.unwrap();
        assert_eq!(ground.load("acme", "a-1").await, Some(Balance { cents: 750, events: 3 }));
        assert_eq!(ground.load("acme", "a-2").await, Some(Balance { cents: 1, events: 1 }));
        assert_eq!(ground.load("acme", "all").await, Some(Totals { events: 4, cents: 751, last: 5 }));
        daemon.stop().await.unwrap();
    }
}

// T2 T3
#[tokio::test]
async fn a_tenant_created_while_running_gets_its_agents() {
    for ground in all_grounds().await {
        let daemon = ground.daemon().view::<Balance>().start().await.unwrap();
        daemon.caught_up(SOON).await.unwrap();
        assert!(daemon.status().agents.is_empty());
        ground.append("late", "a-1", &[deposited(7)]).await;
        daemon.caught_up(SOON).await.unwrap();
        assert_eq!(ground.load("late", "a-1").await, Some(Balance { cents: 7, events: 1 }));
        daemon.stop().await.unwrap();
    }
}

// T3
#[tokio::test]
async fn later_stages_get_the_changes_of_earlier_documents_and_nothing_else() {
    for ground in all_grounds().await {
        ground.append("acme", "a-1", &[deposited(5), deposited(0), Money::Odd]).await;
        ground.append("acme", "a-2", &[deposited(3), Money::Withdrawn { cents: 3 }]).await;
        let daemon = ground.daemon().composite(bank()).start().await.unwrap();
        daemon.caught_up(SOON).await.unwrap();
        assert_eq!(ground.load::<Account, _>("acme", "a-2").await, None, "an empty account is deleted");
        assert_eq!(ground.load::<Account, _>("acme", "a-1").await.unwrap().cents, 5);
        // Opened, opened, closed: the zero deposit and the note changed nothing the sheet takes.
        assert_eq!(ground.load("acme", "all").await, Some(Sheet { accounts: 1, cents: 5, changes: 3 }));
        daemon.stop().await.unwrap();
    }
}

#[tokio::test]
async fn a_restart_goes_on_where_it_was() {
    for ground in all_grounds().await {
        for round in 1..=3 {
            ground.append("acme", "a-1", &vec![deposited(1); 700]).await;
            let daemon = ground.daemon().view::<Balance>().start().await.unwrap();
            daemon.caught_up(SOON).await.unwrap();
            assert_eq!(
                ground.load("acme", "a-1").await,
                Some(Balance { cents: 700 * round, events: 700 * round as u64 })
            );
            daemon.stop().await.unwrap();
        }
        assert_eq!(ground.database().list_tenants(None, 10).await.unwrap().len(), 1);
    }
}
