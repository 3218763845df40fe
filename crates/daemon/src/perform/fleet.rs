//! What all tasks of a daemon share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bellwether_events::HeadListener;
use bellwether_storage::{DatabaseNo, Owner, ProgressKey, Sequence, TenantId, TenantNo};
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::projection::Projection;
use crate::{AgentNo, Budget, DaemonConfig, Line, Permits};

use super::agent::Agent;
use super::discovery::Cursor;
use super::site::{Resident, Site, TenantFacts};
use super::tally::Tally;

/// A running daemon.
pub(crate) struct Fleet {
    pub(crate) config: DaemonConfig,
    pub(crate) owner: Owner,
    pub(crate) projections: Vec<Projection>,
    pub(crate) sites: Vec<Arc<Site>>,
    pub(crate) cursors: Vec<Cursor>,
    pub(crate) budget: Arc<Budget>,
    pub(crate) permits: Permits,
    /// One per projection.
    pub(crate) lines: Vec<Line>,
    pub(crate) tally: Tally,
    /// Told whenever any agent's progress or state changed.
    pub(crate) moved: Notify,
    /// No new pages; those in flight end.
    pub(crate) stop: CancellationToken,
    /// Pages in flight are dropped.
    pub(crate) abort: CancellationToken,
    pub(crate) tasks: TaskTracker,
    pub(crate) runtime: Handle,
    pub(crate) start: Instant,
    pub(crate) agents: AtomicU64,
}

impl Fleet {
    /// A tenant's head is at least this. Creates the agents of a tenant seen for the first time; says whether it was news.
    ///
    /// With `another_life` the head is what the server now says, even if it was further before.
    pub(crate) fn head_moved(
        self: &Arc<Self>,
        site: &Arc<Site>,
        tenant: TenantNo,
        id: &TenantId,
        head: Sequence,
        another_life: bool,
    ) -> bool {
        if self.stop.is_cancelled() {
            return false;
        }
        let known = site.residents.get(&tenant).map(|resident| resident.clone());
        let (resident, is_new) = match known {
            Some(resident) => (resident, false),
            None => self.settle(site, tenant, id),
        };
        if another_life {
            resident.facts.reset(head);
            resident.agents.iter().for_each(|agent| agent.forget());
        }
        let raised = resident.facts.raise(head);
        if raised || another_life {
            resident.agents.iter().for_each(|agent| agent.wake());
        }
        raised || is_new
    }

    /// Creates the agents of a tenant, once.
    fn settle(self: &Arc<Self>, site: &Arc<Site>, tenant: TenantNo, id: &TenantId) -> (Resident, bool) {
        let mut is_new = false;
        let resident = site.residents.entry(tenant).or_insert_with(|| {
            is_new = true;
            let facts = Arc::new(TenantFacts::new(id.clone(), tenant));
            let first = self.agents.fetch_add(self.projections.len() as u64, Ordering::Relaxed);
            let agents = (0..self.projections.len())
                .map(|projection| {
                    let number = AgentNo(first + projection as u64);
                    Arc::new(Agent::new(number, projection, facts.clone(), site.clone()))
                })
                .collect();
            Resident { facts, agents }
        });
        let resident = resident.clone();
        if is_new {
            for agent in resident.agents.iter() {
                self.tasks.spawn_on(agent.clone().run(self.clone()), &self.runtime);
            }
        }
        (resident, is_new)
    }

    /// Where discovery of a database stands.
    pub(crate) fn cursor(&self, database: DatabaseNo) -> &Cursor {
        &self.cursors[database.0 as usize]
    }

    /// Key of an agent's progress row.
    pub(crate) fn key(&self, agent: &Agent) -> ProgressKey {
        agent.site.key(agent.projection, self.projections[agent.projection].version, agent.facts.number)
    }

    /// Time since the start, by this process's monotonic clock.
    pub(crate) fn now(&self) -> Duration {
        self.start.elapsed()
    }

    /// The working chunk of a page, as the budget's size allows.
    pub(crate) fn chunk_bytes(&self) -> u64 {
        self.config.budget.chunk_bytes_within(self.budget.capacity().bytes)
    }

    pub(crate) fn back_off_min(&self) -> Duration {
        Duration::from_millis(self.config.back_off_min_ms)
    }

    pub(crate) fn back_off_max(&self) -> Duration {
        Duration::from_millis(self.config.back_off_max_ms)
    }
}

/// Wakes agents on appends of this process, without a statement.
pub(crate) struct Ear(pub(crate) std::sync::Weak<Fleet>);

impl HeadListener for Ear {
    fn head_moved(&self, database: DatabaseNo, tenant: TenantNo, id: &TenantId, head: Sequence) {
        if let Some(fleet) = self.0.upgrade()
            && let Some(site) = fleet.sites.get(database.0 as usize)
        {
            fleet.head_moved(site, tenant, id, head, false);
        }
    }
}
