//! What a page pays to the load budget: reserve, trim, release.
//!
//! `cargo bench -p bellwether-benches --bench budget`
//!
//! Each row is the time of one page. `uncontended` is one agent alone and must stay within a microsecond. `room` is many
//! agents on two threads with room for all, so the cost of sharing the lock. `line` has room for four pages, so nearly every
//! page waits in line, is admitted by another one's release and woken. `permit and budget` is a page with its permit too, as
//! an agent takes them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bellwether_daemon::{AgentNo, Ask, Budget, BudgetConfig, Permits};
use bellwether_storage::DatabaseNo;
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use tokio::runtime::{Builder, Runtime};

const EVENTS: u64 = 500;
const BYTES: u64 = 1 << 20;

fn ask(agent: u64) -> Ask {
    Ask { database: DatabaseNo(0), agent: AgentNo(agent), events: EVENTS, bytes: BYTES, front: false }
}

/// Room for so many pages.
fn budget(pages: u64) -> Arc<Budget> {
    Budget::new(BudgetConfig {
        events_max: pages * EVENTS,
        bytes_max: Some(pages * BYTES),
        pages_max: Some(0),
        ..BudgetConfig::default()
    })
}

async fn page(budget: &Budget, agent: u64) {
    let lease = budget.reserve(ask(agent)).await;
    lease.trim(EVENTS / 2, BYTES / 2);
    lease.release();
}

fn uncontended(criterion: &mut Criterion) {
    let runtime = Builder::new_current_thread().enable_time().build().expect("a runtime");
    let mut group = criterion.benchmark_group("budget");
    group.bench_function("uncontended", |bencher| {
        let budget = budget(4);
        bencher.iter_custom(|pages| {
            runtime.block_on(async {
                let start = Instant::now();
                for _ in 0..pages {
                    page(&budget, 1).await;
                }
                start.elapsed()
            })
        });
    });
    group.bench_function("permit and budget, uncontended", |bencher| {
        let (permits, budget) = (Permits::new(4), budget(4));
        bencher.iter_custom(|pages| {
            runtime.block_on(async {
                let start = Instant::now();
                for _ in 0..pages {
                    let permit = permits.acquire(DatabaseNo(0), AgentNo(1)).await;
                    page(&budget, 1).await;
                    drop(permit);
                }
                start.elapsed()
            })
        });
    });
    group.finish();
}

fn contended(criterion: &mut Criterion) {
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_time().build().expect("a runtime");
    let mut group = criterion.benchmark_group("budget");
    for agents in [2, 16, 256, 2_048] {
        for (name, room) in [("room", agents), ("line", 4)] {
            group.bench_with_input(BenchmarkId::new(name, agents), &agents, |bencher, agents| {
                let budget = budget(room);
                bencher.iter_custom(|pages| share(&runtime, &budget, *agents, pages));
            });
        }
    }
    group.finish();
}

/// So many agents share so many pages and hold each across one turn of the scheduler; the time of all pages together.
fn share(runtime: &Runtime, budget: &Arc<Budget>, agents: u64, pages: u64) -> Duration {
    runtime.block_on(async {
        let start = Instant::now();
        let agents: Vec<_> = (0..agents)
            .map(|agent| {
                let budget = budget.clone();
                let pages = pages / agents + u64::from(agent < pages % agents);
                tokio::spawn(async move {
                    for _ in 0..pages {
                        let lease = budget.reserve(ask(agent)).await;
                        lease.trim(EVENTS / 2, BYTES / 2);
                        tokio::task::yield_now().await;
                        lease.release();
                    }
                })
            })
            .collect();
        for agent in agents {
            agent.await.expect("an agent ends well");
        }
        start.elapsed()
    })
}

criterion_group! {
    name = benches;
    config = Criterion::default().warm_up_time(Duration::from_secs(1)).measurement_time(Duration::from_secs(3)).sample_size(30);
    targets = uncontended, contended
}
criterion_main!(benches);
