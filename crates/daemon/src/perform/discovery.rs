//! Finding work: one statement per database and tick, for all its tenants and projections.

use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use bellwether_storage::{DiscoveryCursor, Result, Sequence};
use tokio::time::{Instant, sleep_until};

use crate::decide::back_off::{back_off, fraction};
use crate::decide::tick::{Tick, TickConfig};

use super::fleet::Fleet;
use super::site::Site;

/// Where discovery of one database stands.
#[derive(Default)]
pub(crate) struct Cursor(tokio::sync::Mutex<Option<DiscoveryCursor>>);

impl Cursor {
    /// Reads which heads moved and wakes their agents; says whether there was news.
    pub(crate) async fn poll(&self, fleet: &Arc<Fleet>, site: &Arc<Site>) -> Result<bool> {
        let mut cursor = self.0.lock().await;
        let moved = site.database.moved_heads(cursor.as_ref()).await?;
        fleet.tally.polls.add(1);
        // Somebody else may have noticed the change first, so the cursor's own identity is compared.
        let another_life = cursor.as_ref().is_some_and(|known| known.identity != moved.cursor.identity);
        site.answered(&moved.cursor.identity);
        let mut news = another_life;
        for head in &moved.heads {
            news |= fleet.head_moved(site, head.tenant, &head.id, head.head, another_life);
        }
        if another_life {
            // The answer holds all heads: a tenant that is missing was lost with the last commits.
            let found: BTreeSet<_> = moved.heads.iter().map(|head| head.tenant).collect();
            for resident in site.residents.iter().filter(|resident| !found.contains(&resident.facts.number)) {
                resident.facts.reset(Sequence::ZERO);
                for agent in resident.agents.iter() {
                    agent.forget();
                    agent.wake();
                }
            }
        }
        *cursor = Some(moved.cursor);
        Ok(news)
    }
}

/// Reads at every tick until told to stop.
pub(crate) async fn discover(fleet: Arc<Fleet>, site: Arc<Site>) {
    let config = &fleet.config;
    let ticks = TickConfig {
        min: Duration::from_millis(config.discovery_min_ms),
        max: Duration::from_millis(config.discovery_max_ms),
        full: Duration::from_millis(config.discovery_full_ms),
    };
    let start = Instant::now();
    let mut tick = Tick::new(ticks, start.elapsed());
    let (mut reads, mut failures) = (0, 0);
    loop {
        let due = start + tick.due();
        tokio::select! {
            biased;
            () = fleet.stop.cancelled() => return,
            () = site.stirred.notified() => {
                let stirred = site.activity.lock().unwrap_or_else(PoisonError::into_inner).stirred;
                match stirred {
                    Some(true) => tick.stirred(start.elapsed()),
                    Some(false) => tick.still(),
                    None => tick.unsure(),
                }
                continue;
            }
            () = sleep_until(due) => {}
        }
        reads += 1;
        let jitter = fraction(config.seed, u64::from(site.no.0), reads);
        match fleet.cursor(site.no).poll(&fleet, &site).await {
            Ok(news) => {
                failures = 0;
                tick.polled(start.elapsed(), news, jitter);
            }
            Err(error) => {
                failures += 1;
                tracing::warn!(database = site.database.name(), %error, failures, "cannot read which heads moved; trying again");
                let wait = back_off(failures, fleet.back_off_min(), ticks.max, jitter);
                tokio::select! {
                    biased;
                    () = fleet.stop.cancelled() => return,
                    () = tokio::time::sleep(wait) => {}
                }
            }
        }
    }
}

/// Asks one server, once per interval, which of these databases changed, until told to stop.
pub(crate) async fn sieve(fleet: Arc<Fleet>, sites: Vec<Arc<Site>>) {
    let interval = Duration::from_millis(fleet.config.sieve_ms);
    loop {
        tokio::select! {
            biased;
            () = fleet.stop.cancelled() => return,
            () = tokio::time::sleep(interval) => {}
        }
        let read = match sites[0].database.activity().await {
            Ok(None) => return, // There is no such thing here, and never will be.
            Ok(Some(read)) => read,
            Err(error) => {
                tracing::debug!(%error, "cannot read the server's activity");
                Vec::new()
            }
        };
        for site in &sites {
            let changes =
                read.iter().find(|entry| entry.database == site.database.name()).map(|entry| entry.changes);
            site.activity.lock().unwrap_or_else(PoisonError::into_inner).read(changes);
            site.stirred.notify_one();
        }
    }
}
