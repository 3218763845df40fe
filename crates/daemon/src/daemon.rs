//! A running daemon.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bellwether_events::{HeadListener, Store};
use bellwether_storage::{Database, Error, Sequence};
use tokio::time::{Instant, timeout_at};

use crate::perform::agent::Agent;
use crate::perform::fleet::{Ear, Fleet};
use crate::{
    AgentNo, AgentState, AgentStatus, Budget, DaemonBuilder, DaemonError, DaemonStatus, NotCaughtUp, Reason,
};

/// Runs the agents of all projections and tenants of a store on this node. Dropping it stops new pages; better is
/// [`stop`](Daemon::stop), which waits for those in flight.
pub struct Daemon {
    fleet: Arc<Fleet>,
}

impl Daemon {
    /// A daemon over the tenants of this store, woken at once by its appends.
    pub fn builder(store: Store) -> DaemonBuilder {
        DaemonBuilder::new(store.databases().to_vec(), Some(store))
    }

    /// A daemon over these databases, in the order of the directory, that hears of new events from discovery alone. Who has a
    /// store at hand takes [`builder`](Daemon::builder), which also hears of appends in this process at once.
    pub fn over(databases: Vec<Arc<dyn Database>>) -> DaemonBuilder {
        DaemonBuilder::new(databases, None)
    }

    pub(crate) fn new(fleet: Arc<Fleet>) -> Self {
        Self { fleet }
    }

    #[cfg(test)]
    pub(crate) fn fleet(&self) -> Arc<Fleet> {
        self.fleet.clone()
    }

    /// What to tell of appends in this process, so that agents wake at once and without a statement.
    pub fn head_listener(&self) -> Arc<dyn HeadListener> {
        Arc::new(Ear(Arc::downgrade(&self.fleet)))
    }

    /// Waits until every agent has reached what was its tenant's head when this was called.
    ///
    /// Reads the heads of all databases once, so it knows of appends of other processes too. For agents that stand by, the
    /// owner's stored progress counts.
    ///
    /// # Errors
    ///
    /// [`NotCaughtUp::Behind`] names an agent that is behind when the time is over, or one that failed for good, at once.
    /// [`NotCaughtUp::Storage`] when the heads cannot be read.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    pub async fn caught_up(&self, timeout: Duration) -> Result<(), NotCaughtUp> {
        let start = Instant::now();
        let deadline = start + timeout;
        for site in &self.fleet.sites {
            let poll = self.fleet.cursor(site.no).poll(&self.fleet, site);
            timeout_at(deadline, poll).await.map_err(|_| {
                Error::unavailable(format!(
                    "database {} did not answer within {timeout:?}",
                    site.database.name()
                ))
            })??;
        }
        let mut behind: Vec<(Arc<Agent>, Sequence)> = self
            .agents()
            .into_iter()
            .map(|agent| {
                let head = agent.facts.head();
                (agent, head)
            })
            .collect();
        loop {
            let moved = self.fleet.moved.notified();
            tokio::pin!(moved);
            moved.as_mut().enable();
            // From the back, so that what is done costs nothing again.
            while behind.last().is_some_and(|(agent, head)| reached(agent, *head)) {
                behind.pop();
            }
            let Some((last, _)) = behind.last() else { return Ok(()) };
            let failed = matches!(last.state(), AgentState::Failed { .. });
            if failed || timeout_at(deadline, moved).await.is_err() {
                behind.retain(|(agent, head)| !reached(agent, *head));
                let Some((agent, head)) = behind.last() else { return Ok(()) };
                let status = self.status_of(agent, &self.waiting());
                return Err(NotCaughtUp::Behind {
                    projection: status.projection,
                    tenant: status.tenant,
                    progress: status.progress.unwrap_or_default(),
                    head: *head,
                    state: status.state,
                    after: start.elapsed(),
                    agents_behind: behind.len(),
                });
            }
        }
    }

    /// What every agent is doing, and the work done so far. Costs no statement.
    pub fn status(&self) -> DaemonStatus {
        let waiting = self.waiting();
        let agents = self.agents().iter().map(|agent| self.status_of(agent, &waiting)).collect();
        DaemonStatus { agents, counters: self.fleet.tally.counters(), budget: self.fleet.budget.status() }
    }

    /// The load budget: its status, and its size while running.
    pub fn budget(&self) -> &Arc<Budget> {
        &self.fleet.budget
    }

    /// Stops: no new pages, then waits for those in flight until `stop_deadline_ms`.
    ///
    /// # Errors
    ///
    /// [`DaemonError::StopDeadline`] when pages were still in flight and had to be dropped; their transactions roll back, or
    /// were committed without an answer. Either way the next start goes on where they left.
    pub async fn stop(self) -> Result<(), DaemonError> {
        let fleet = &self.fleet;
        fleet.stop.cancel();
        fleet.tasks.close();
        let after = fleet.config.stop_deadline();
        if tokio::time::timeout(after, fleet.tasks.wait()).await.is_ok() {
            return Ok(());
        }
        let pages = fleet.tasks.len();
        fleet.abort.cancel();
        // What is left are dropped futures: they end at their next turn.
        let _ = tokio::time::timeout(after, fleet.tasks.wait()).await;
        Err(DaemonError::StopDeadline { pages, after })
    }

    /// All agents, ordered by database, tenant and projection.
    fn agents(&self) -> Vec<Arc<Agent>> {
        let mut agents = Vec::new();
        for site in &self.fleet.sites {
            let mut residents: Vec<_> = site.residents.iter().map(|resident| resident.clone()).collect();
            residents.sort_by(|a, b| a.facts.id.cmp(&b.facts.id));
            agents.extend(residents.iter().flat_map(|resident| resident.agents.iter().cloned()));
        }
        agents
    }

    /// Who waits for budget, at which place, and why.
    fn waiting(&self) -> BTreeMap<AgentNo, (u64, Reason)> {
        let waiting = self.fleet.budget.status().waiting;
        waiting.into_iter().map(|line| (line.agent, (line.place as u64, line.reason))).collect()
    }

    fn status_of(&self, agent: &Agent, waiting: &BTreeMap<AgentNo, (u64, Reason)>) -> AgentStatus {
        let projection = &self.fleet.projections[agent.projection];
        let state = match (agent.state(), waiting.get(&agent.number)) {
            (AgentState::WaitingBudget { .. }, Some((place, reason))) => {
                AgentState::WaitingBudget { place: *place, reason: why(*reason).to_owned() }
            }
            (state, _) => state,
        };
        AgentStatus {
            projection: projection.name.as_str().to_owned(),
            version: projection.version,
            tenant: agent.facts.id.clone(),
            database: agent.site.no,
            progress: agent.progress(),
            head: agent.facts.head(),
            state,
        }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.fleet.stop.cancel();
    }
}

impl fmt::Debug for Daemon {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Daemon")
            .field(
                "projections",
                &self.fleet.projections.iter().map(|known| known.name.as_str()).collect::<Vec<_>>(),
            )
            .field("databases", &self.fleet.sites.len())
            .field("counters", &self.fleet.tally.counters())
            .finish_non_exhaustive()
    }
}

fn reached(agent: &Agent, head: Sequence) -> bool {
    head == Sequence::ZERO || agent.progress().is_some_and(|progress| progress >= head)
}

fn why(reason: Reason) -> &'static str {
    match reason {
        Reason::Budget => "the page at the front does not fit beside those in flight",
        Reason::Gate => "the process is short of memory, pages in flight drain first",
        Reason::Pages => "as many pages are in flight as may be",
    }
}
