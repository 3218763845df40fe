//! Letting the projections catch up, and showing how they take turns.

use std::time::{Duration, Instant};

use bellwether::daemon::{AgentState, DaemonStatus, NotCaughtUp};
use bellwether::prelude::*;

use crate::Failure;
use crate::args::{Args, StoreKind};
use crate::claim::is_claim;
use crate::history::{AuthorActivity, Calendar, Day, FileHeat, FileStats, TenantTotals};
use crate::progress::Progress;

/// Projections that stand still for so long have something to say.
const STANDSTILL: Duration = Duration::from_secs(120);

/// Starts the four projections under the budget the user asked for.
pub(crate) async fn start(store: &Store, args: &Args) -> Result<Node, Failure> {
    let files = Composite::new("file-heat-and-totals", 1)
        .stage(|stage| stage.view::<FileHeat>())
        .stage(|stage| stage.stage_view::<TenantTotals>());
    let node = Node::builder(store.clone())
        .view::<FileStats>()
        .multi_view::<AuthorActivity>()
        .composite(files)
        .budget_events(args.budget_events);
    let node = match args.budget_bytes {
        Some(bytes) => node.budget_bytes(bytes),
        None => node,
    };
    let node = match args.store {
        StoreKind::Memory => node.multi_view::<Day>(),
        StoreKind::Sqlite | StoreKind::Postgres => node.sql(Calendar),
    };
    Ok(node.start().await?)
}

/// Number of projections each tenant has.
pub(crate) const PROJECTIONS: u64 = 4;

/// Waits until every projection of every tenant is at its head.
pub(crate) async fn catch_up(node: &Node, progress: &Progress) -> Result<(), Failure> {
    let (mut done_before, mut moved_at) = (0, Instant::now());
    loop {
        let behind = match node.caught_up(Duration::from_millis(500)).await {
            Ok(()) => return Ok(()),
            Err(behind) => behind,
        };
        let status = node.daemon().status();
        if let Some(failed) =
            status.agents.iter().find(|agent| matches!(agent.state, AgentState::Failed { .. }))
        {
            return Err(Failure::Failed(format!(
                "projection {} of tenant {} {}",
                failed.projection, failed.tenant, failed.state
            )));
        }
        let done = done(&status);
        if done > done_before || matches!(behind, NotCaughtUp::Storage(_)) && moved_at.elapsed() < STANDSTILL
        {
            if done > done_before {
                moved_at = Instant::now();
            }
            done_before = done_before.max(done);
        } else if moved_at.elapsed() > STANDSTILL {
            return Err(Failure::Failed(behind.to_string()));
        }
        progress.at(done, || gauge(&status));
    }
}

/// Events all agents together have worked on.
fn done(status: &DaemonStatus) -> u64 {
    let of_history = status.agents.iter().filter(|agent| !is_claim(&agent.tenant));
    of_history.map(|agent| agent.progress.map_or(0, Sequence::get)).sum()
}

/// The budget, and who waits for it.
fn gauge(status: &DaemonStatus) -> String {
    let budget = &status.budget;
    let of = |in_use: u64, capacity: u64| match capacity {
        0 => format!("{in_use}"),
        _ => format!("{in_use} of {capacity}"),
    };
    let mut text = format!(
        "events; in flight {} pages, {} events, {} KiB",
        of(budget.pages.in_use, budget.pages.capacity),
        of(budget.events.in_use, budget.events.capacity),
        of(budget.bytes.in_use / 1024, budget.bytes.capacity / 1024),
    );
    let waiting: Vec<_> = status
        .agents
        .iter()
        .filter(|agent| matches!(agent.state, AgentState::WaitingBudget { .. }))
        .collect();
    if let Some(first) = waiting.iter().min_by_key(|agent| match agent.state {
        AgentState::WaitingBudget { place, .. } => place,
        _ => u64::MAX,
    }) {
        text += &format!("; {} wait, next {} of {}", waiting.len(), first.projection, first.tenant);
    }
    let standing_by = status.agents.iter().filter(|agent| agent.state == AgentState::StandingBy).count();
    if standing_by > 0 {
        text += &format!("; {standing_by} stand by for another process");
    }
    text
}
