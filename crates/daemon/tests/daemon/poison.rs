//! Poison events: found, named, dead-lettered in the page's transaction; everything else goes on.

use bellwether_storage::DocumentKey;

use crate::bank::{Account, Balance, Money, Sheet, Totals, bank, deposited};
use crate::ground::{SOON, all_grounds, grounds};

/// A page of 500 with a panic at 77, a refusal at 200 and an undecodable event at 300.
fn page() -> Vec<Money> {
    let mut events = vec![deposited(1); 500];
    events[76] = Money::Cursed;
    events[199] = Money::Odd;
    events
}

// T3
#[tokio::test]
async fn a_panic_and_a_refusal_become_dead_letters_and_the_rest_is_applied() {
    for ground in all_grounds().await {
        ground.append("acme", "a-1", &page()).await;
        ground.append_garbage("acme", "a-1", "Deposited").await;
        ground.append("acme", "a-1", &[deposited(1)]).await;
        let daemon = ground.daemon().view::<Balance>().multi_view::<Totals>().start().await.unwrap();
        daemon.caught_up(SOON).await.unwrap();
        assert_eq!(ground.load("acme", "a-1").await, Some(Balance { cents: 499, events: 499 }));
        assert_eq!(ground.load("acme", "all").await, Some(Totals { events: 499, cents: 499, last: 502 }));
        let letters: Vec<_> = ground
            .dead_letters("acme")
            .await
            .into_iter()
            .map(|letter| (letter.member, letter.sequence.get(), letter.class))
            .collect();
        let letter = |member: &str, sequence, class: &str| (member.to_owned(), sequence, class.to_owned());
        assert_eq!(
            letters,
            [
                letter("balance", 77, "panic"),
                letter("balance", 200, "apply"),
                letter("balance", 501, "decode"),
                letter("totals", 77, "panic"),
                letter("totals", 501, "decode"),
            ]
        );
        assert_eq!(daemon.status().counters.dead_letters, 5);
        daemon.stop().await.unwrap();
    }
}

// T3
#[tokio::test]
async fn an_event_whose_document_the_database_refuses_is_found_by_bisection() {
    for ground in grounds() {
        let mut events = vec![deposited(1); 499];
        events.insert(321, deposited(1));
        ground.append("acme", "a-1", &events[..321]).await;
        ground.append("acme", "poison", &events[321..322]).await;
        ground.append("acme", "a-1", &events[322..]).await;
        ground.memory.faults().refuse_document(&DocumentKey::new("poison").unwrap());
        let daemon = ground.daemon().view::<Balance>().start().await.unwrap();
        daemon.caught_up(SOON).await.unwrap();
        assert_eq!(ground.load("acme", "a-1").await, Some(Balance { cents: 499, events: 499 }));
        let letters = ground.dead_letters("acme").await;
        assert_eq!(letters.len(), 1, "{letters:?}");
        assert_eq!((letters[0].sequence.get(), letters[0].class.as_str()), (322, "rejected"));
        assert!(letters[0].reason.contains("poison"), "{}", letters[0].reason);
        assert!(daemon.status().counters.retries <= 12, "{:?}", daemon.status().counters);
        daemon.stop().await.unwrap();
    }
}

// T3
#[tokio::test]
async fn in_a_composite_the_event_is_skipped_in_the_failing_member_only() {
    for ground in grounds() {
        // The sheet is refused by the database; accounts go on, and the sheet goes on after the events that spoil it.
        ground.append("acme", "a-1", &[deposited(1), Money::Cursed, deposited(2)]).await;
        let daemon = ground.daemon().composite(bank()).start().await.unwrap();
        daemon.caught_up(SOON).await.unwrap();
        assert_eq!(ground.load::<Account, _>("acme", "a-1").await.unwrap().cents, 3);
        assert_eq!(ground.load("acme", "all").await, Some(Sheet { accounts: 1, cents: 3, changes: 2 }));
        ground.memory.faults().refuse_document(&DocumentKey::new("all").unwrap());
        ground.append("acme", "a-1", &[deposited(4)]).await;
        daemon.caught_up(SOON).await.unwrap();
        assert_eq!(ground.load::<Account, _>("acme", "a-1").await.unwrap().cents, 7);
        let letters = ground.dead_letters("acme").await;
        let letters: Vec<_> =
            letters.iter().map(|l| (l.member.as_str(), l.sequence.get(), l.class.as_str())).collect();
        assert_eq!(letters, [("account", 2, "panic"), ("sheet", 4, "rejected")]);
        daemon.stop().await.unwrap();
    }
}

// T3
#[tokio::test]
async fn a_page_of_nothing_but_poison_ends() {
    for ground in all_grounds().await {
        ground.append("acme", "a-1", &vec![Money::Cursed; 200]).await;
        ground.append("acme", "a-1", &[deposited(1)]).await;
        let daemon = ground.daemon().view::<Balance>().start().await.unwrap();
        daemon.caught_up(SOON).await.unwrap();
        assert_eq!(ground.load("acme", "a-1").await, Some(Balance { cents: 1, events: 1 }));
        assert_eq!(ground.dead_letters("acme").await.len(), 200);
        daemon.stop().await.unwrap();
    }
}
