//! Counts the bytes of documents that really are in memory, not those the daemon believes in.

use std::sync::atomic::{AtomicU64, Ordering};

use bellwether_daemon::{BudgetConfig, Change, DaemonConfig, Keys, MultiView};
use bellwether_events::Recorded;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::bank::Money;
use crate::ground::{SOON, all_grounds, quick};

static LIVE: AtomicU64 = AtomicU64::new(0);
static PEAK: AtomicU64 = AtomicU64::new(0);

/// Text whose bytes are counted as long as it lives.
struct Counted(String);

impl Counted {
    fn new(text: String) -> Self {
        let live = LIVE.fetch_add(text.len() as u64, Ordering::Relaxed) + text.len() as u64;
        PEAK.fetch_max(live, Ordering::Relaxed);
        Self(text)
    }
}

impl Default for Counted {
    fn default() -> Self {
        Self::new(String::new())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        LIVE.fetch_sub(self.0.len() as u64, Ordering::Relaxed);
    }
}

impl Serialize for Counted {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Counted {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::new)
    }
}

#[derive(Default, Serialize, Deserialize)]
struct Heavy {
    touched: u64,
    body: Counted,
}

impl MultiView for Heavy {
    const NAME: &'static str = "heavy";
    type Event = Money;

    fn keys(event: &Recorded<Money>, keys: &mut Keys) {
        if let Money::Spread { first, documents, .. } = event.event {
            (first..first + documents).for_each(|number| keys.push(format!("document-{number:06}")));
        }
    }

    fn apply(&mut self, _: &str, event: &Recorded<Money>) -> Change {
        let Money::Spread { bytes, .. } = event.event else { return Change::Keep };
        self.touched += 1;
        self.body = Counted::new("x".repeat(usize::try_from(bytes).unwrap()));
        Change::Save
    }
}

// T5
#[tokio::test]
async fn documents_in_memory_stay_within_the_chunks_of_the_pages_in_flight() {
    const BUDGET: u64 = 1024 * 1024;
    for ground in all_grounds().await {
        let peak_before = PEAK.swap(0, Ordering::Relaxed);
        // 24 MB of documents by three tenants at once, some of them written twice.
        let events: Vec<_> = (0..12)
            .map(|event| Money::Spread { first: event % 6 * 500, documents: 500, bytes: 2_048 })
            .collect();
        for tenant in ["acme", "globex", "initech"] {
            ground.append(tenant, "a-1", &events[..4]).await;
            ground.append(tenant, "a-1", &events[4..]).await;
        }
        let config = DaemonConfig {
            budget: BudgetConfig { bytes_max: Some(BUDGET), ..BudgetConfig::default() },
            ..quick()
        };
        let daemon = ground.daemon().config(config).multi_view::<Heavy>().start().await.unwrap();
        daemon.caught_up(SOON).await.unwrap();
        let peak = PEAK.load(Ordering::Relaxed);
        let counters = daemon.status().counters;
        assert!(peak <= BUDGET, "{peak} bytes of documents at once ({peak_before} before); {counters:?}");
        assert!(peak > 0 && daemon.budget().status().bytes.peak <= BUDGET);
        assert_eq!(ground.load::<Heavy, _>("acme", "document-000499").await.unwrap().touched, 2);
        daemon.stop().await.unwrap();
    }
}
