//! What a page loads, and how often it decodes.

use std::sync::atomic::{AtomicU64, Ordering};

use bellwether_daemon::{Change, Composite, Keys, MultiView, View};
use bellwether_events::{CodecError, Event, Recorded};
use bellwether_storage::Encoding;
use serde::{Deserialize, Serialize};

use crate::bank::{Balance, deposited};
use crate::ground::{SOON, all_grounds};

// T3: what nobody declares stays in the database, however large it is.
#[tokio::test]
async fn only_events_of_declared_types_are_loaded() {
    const UNHEARD_BYTES: usize = 200_000;
    for ground in all_grounds().await {
        for _ in 0..5 {
            ground.append_unheard("acme", "a-1", UNHEARD_BYTES).await;
            ground.append("acme", "a-1", &[deposited(1)]).await;
        }
        let daemon = ground.daemon().view::<Balance>().start().await.unwrap();
        daemon.caught_up(SOON).await.unwrap();
        assert_eq!(ground.load("acme", "a-1").await, Some(Balance { cents: 5, events: 5 }));
        let counters = daemon.status().counters;
        assert_eq!(counters.events, 5, "{counters:?}");
        assert!(counters.page_bytes_peak < UNHEARD_BYTES as u64, "{counters:?}");
        daemon.stop().await.unwrap();
    }
}

/// A deposit that counts how often it is decoded.
#[derive(Debug)]
struct Counted;

static DECODED: AtomicU64 = AtomicU64::new(0);

impl Event for Counted {
    const TYPES: &'static [&'static str] = &["Deposited"];

    fn type_name(&self) -> &'static str {
        "Deposited"
    }

    fn encode(&self, _: Encoding) -> Result<Vec<u8>, CodecError> {
        Ok(Vec::new())
    }

    fn decode(_: &str, _: Encoding, _: &[u8]) -> Result<Self, CodecError> {
        DECODED.fetch_add(1, Ordering::Relaxed);
        Ok(Self)
    }
}

#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
struct PerStream {
    events: u64,
}

impl View for PerStream {
    const NAME: &'static str = "per_stream";
    type Event = Counted;

    fn apply(&mut self, _: &Recorded<Counted>) -> Change {
        self.events += 1;
        Change::Save
    }
}

#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
struct PerTenant {
    events: u64,
}

impl MultiView for PerTenant {
    const NAME: &'static str = "per_tenant";
    type Event = Counted;

    fn keys(_: &Recorded<Counted>, keys: &mut Keys) {
        keys.push("all");
        keys.push("again");
    }

    fn apply(&mut self, _: &str, _: &Recorded<Counted>) -> Change {
        self.events += 1;
        Change::Save
    }
}

// T3: the members of a composite share what was decoded, whatever number of documents an event goes to.
#[tokio::test]
async fn a_page_is_decoded_once_for_all_members_of_a_type() {
    for ground in all_grounds().await {
        ground.append("acme", "a-1", &vec![deposited(1); 100]).await;
        let before = DECODED.load(Ordering::Relaxed);
        let both = Composite::new("both", 1).stage(|s| s.view::<PerStream>().multi_view::<PerTenant>());
        let daemon = ground.daemon().composite(both).start().await.unwrap();
        daemon.caught_up(SOON).await.unwrap();
        assert_eq!(ground.load("acme", "a-1").await, Some(PerStream { events: 100 }));
        assert_eq!(ground.load("acme", "again").await, Some(PerTenant { events: 100 }));
        assert_eq!(daemon.status().counters.retries, 0);
        assert_eq!(DECODED.load(Ordering::Relaxed) - before, 100);
        daemon.stop().await.unwrap();
    }
}
