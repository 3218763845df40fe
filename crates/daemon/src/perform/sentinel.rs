//! Watching the owners of progress rows that agents here stand by for: one statement per database and interval.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use bellwether_storage::Progress;

use crate::decide::takeover::{Takeover, Verdict};

use super::agent::Agent;
use super::fleet::Fleet;
use super::site::Site;

/// Rows read per statement.
const ROWS_MAX: usize = 1_000;

/// An agent that stands by, and what was seen of the owner.
pub(crate) struct Watched {
    agent: Arc<Agent>,
    takeover: Takeover,
}

impl Site {
    /// Watches the owner for this agent until it stands still for too long. An agent that is watched already stays as it is.
    pub(crate) fn stand_by(&self, agent: &Arc<Agent>, seen: Progress, now: Duration) {
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        watched.entry(agent.number).or_insert_with(|| {
            agent.saw(seen.sequence);
            Watched { agent: agent.clone(), takeover: Takeover::new(seen, now) }
        });
        drop(watched);
        self.watch.notify_one();
    }

    /// Ends the watch for this agent.
    pub(crate) fn stand_down(&self, agent: &Agent) {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner).remove(&agent.number);
    }
}

/// Watches until told to stop. Costs nothing while nobody stands by, or while no owner is behind.
pub(crate) async fn watch(fleet: Arc<Fleet>, site: Arc<Site>) {
    let interval = Duration::from_millis(fleet.config.standby_poll_ms);
    let after = Duration::from_millis(fleet.config.takeover_after_ms);
    loop {
        let nobody = site.watched.lock().unwrap_or_else(PoisonError::into_inner).is_empty();
        tokio::select! {
            biased;
            () = fleet.stop.cancelled() => return,
            () = site.watch.notified(), if nobody => continue,
            () = tokio::time::sleep(interval), if !nobody => {}
        }
        look(&fleet, &site, after).await;
    }
}

/// Reads the rows of all owners that are behind, and tells the agents that may take over.
async fn look(fleet: &Fleet, site: &Site, after: Duration) {
    let behind: Vec<Arc<Agent>> = {
        let now = fleet.now();
        let mut watched = site.watched.lock().unwrap_or_else(PoisonError::into_inner);
        let behind = watched.values_mut().filter_map(|entry| {
            let rests = entry.takeover.rests(now, entry.agent.facts.head());
            (!rests).then(|| entry.agent.clone())
        });
        behind.collect()
    };
    for agents in behind.chunks(ROWS_MAX) {
        let keys: Vec<_> = agents.iter().map(|agent| fleet.key(agent)).collect();
        let rows = match site.database.progress(&keys).await {
            Ok(rows) => rows,
            Err(error) => {
                tracing::debug!(database = site.database.name(), %error, "cannot read the progress of owners");
                return;
            }
        };
        let now = fleet.now();
        let mut watched = site.watched.lock().unwrap_or_else(PoisonError::into_inner);
        for (agent, row) in agents.iter().zip(rows) {
            let Some(row) = row else { continue };
            let Some(entry) = watched.get_mut(&agent.number) else { continue };
            agent.saw(row.sequence);
            if let Verdict::TakeOver(seen) = entry.takeover.observe(now, row, agent.facts.head(), after) {
                watched.remove(&agent.number);
                agent.take_over(seen);
            }
        }
        drop(watched);
        fleet.moved.notify_waiters();
    }
}
