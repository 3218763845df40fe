//! What the budget, the permits and the line promise to tasks.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bellwether_storage::DatabaseNo;
use tokio::task::{JoinHandle, yield_now};
use tokio::time::Instant;

use super::budget::{Budget, Lease, PageOverdue};
use super::budget_config::BudgetConfig;
use super::line::Line;
use super::permits::Permits;
use crate::decide::budget::{AgentNo, Ask, Capacity, Reason};
use crate::decide::gate::MemoryReading;

const DATABASE: DatabaseNo = DatabaseNo(0);

fn ask(agent: u64, bytes: u64) -> Ask {
    Ask { database: DATABASE, agent: AgentNo(agent), events: 1, bytes, front: false }
}

fn budget(bytes: u64, pages: u64) -> Arc<Budget> {
    let config = BudgetConfig { bytes_max: Some(bytes), pages_max: Some(pages), ..BudgetConfig::default() };
    Budget::with_memory(config, || None)
}

/// A budget and the percentage of memory in use that it will read.
fn budget_under_memory(bytes: u64) -> (Arc<Budget>, Arc<AtomicU64>) {
    let percent = Arc::new(AtomicU64::new(0));
    let config = BudgetConfig { bytes_max: Some(bytes), pages_max: Some(0), ..BudgetConfig::default() };
    let source = percent.clone();
    let read = move || Some(MemoryReading { used_bytes: source.load(Ordering::SeqCst), limit_bytes: 100 });
    (Budget::with_memory(config, read), percent)
}

/// Reserves in a task of its own and returns once the task stands in line.
async fn queue(budget: &Arc<Budget>, ask: Ask) -> JoinHandle<Lease> {
    let before = budget.status().waiting.len();
    let task = tokio::spawn({
        let budget = budget.clone();
        async move { budget.reserve(ask).await }
    });
    until(|| budget.status().waiting.len() > before).await;
    task
}

/// Lets other tasks run until it is so.
async fn until(so: impl Fn() -> bool) {
    for _ in 0..10_000 {
        if so() {
            return;
        }
        yield_now().await;
    }
    panic!("it did not come to that");
}

fn line_of(budget: &Budget) -> Vec<(usize, u64, Reason)> {
    budget.status().waiting.iter().map(|waiter| (waiter.place, waiter.agent.0, waiter.reason)).collect()
}

// T5: waiting is visible, with place, agent, since when, and reason.
#[tokio::test(start_paused = true)]
async fn who_waits_is_shown_with_place_and_reason() {
    let budget = budget(10, 2);
    let held = budget.reserve(ask(1, 6)).await;
    let second = queue(&budget, ask(2, 5)).await;
    let third = queue(&budget, ask(3, 1)).await;
    assert_eq!(line_of(&budget), [(1, 2, Reason::Budget), (2, 3, Reason::Budget)]);

    tokio::time::advance(Duration::from_secs(3)).await;
    let status = budget.status();
    assert_eq!(status.waiting[0].waited_for, Duration::from_secs(3));
    assert_eq!((status.holders[0].agent, status.holders[0].held_for), (AgentNo(1), Duration::from_secs(3)));

    held.trim(1, 5);
    let second = second.await.unwrap();
    assert_eq!(line_of(&budget), [(1, 3, Reason::Pages)]);
    drop((held, second));
    drop(third.await.unwrap());
    let status = budget.status();
    assert_eq!((status.bytes.in_use, status.bytes.peak, status.pages.peak), (0, 10, 2));
    assert_eq!((status.admissions, status.waited), (3, 2));
}

// T5, B7
#[tokio::test]
async fn an_aborted_task_leaves_the_line() {
    let budget = budget(10, 0);
    let held = budget.reserve(ask(1, 6)).await;
    let large = queue(&budget, ask(2, 10)).await;
    let small = queue(&budget, ask(3, 4)).await;
    large.abort();
    let small = small.await.unwrap();
    assert_eq!(budget.status().bytes.in_use, 10);
    drop((held, small));
    assert_eq!(budget.status().holders, []);
}

// B7: the future was admitted by the release and is dropped before it is polled again.
#[tokio::test]
async fn who_is_dropped_between_admission_and_poll_gives_back() {
    let budget = budget(10, 0);
    let held = budget.reserve(ask(1, 10)).await;
    let mut waiting = Box::pin(budget.reserve(ask(2, 10)));
    assert!(is_pending(waiting.as_mut()).await);
    drop(held);
    assert_eq!(budget.status().holders[0].agent, AgentNo(2));
    drop(waiting);
    assert_eq!((budget.status().bytes.in_use, budget.status().holders.len()), (0, 0));
}

async fn is_pending<F: Future>(mut future: std::pin::Pin<&mut F>) -> bool {
    std::future::poll_fn(|cx| std::task::Poll::Ready(future.as_mut().poll(cx).is_pending())).await
}

// T6, B6: nothing but time passes between the fall of memory and the admission.
#[tokio::test(start_paused = true)]
async fn the_gate_opens_by_a_timer_while_somebody_waits() {
    let (budget, percent) = budget_under_memory(10);
    let held = budget.reserve(ask(1, 1)).await;
    percent.store(95, Ordering::SeqCst);
    budget.sample();
    let waiter = queue(&budget, ask(2, 1)).await;
    let behind = queue(&budget, ask(3, 1)).await;
    assert_eq!(line_of(&budget), [(1, 2, Reason::Gate), (2, 3, Reason::Gate)]);

    percent.store(86, Ordering::SeqCst);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(line_of(&budget).len(), 2, "opened before memory fell five points below the threshold");

    percent.store(80, Ordering::SeqCst);
    let opened = Instant::now();
    let admitted = (waiter.await.unwrap(), behind.await.unwrap());
    assert!(opened.elapsed() <= Duration::from_millis(250), "{:?}", opened.elapsed());
    drop((held, admitted));
}

// T6, B6: the timer passes on to whoever becomes the front.
#[tokio::test(start_paused = true)]
async fn the_timer_goes_on_when_the_front_is_dropped() {
    let (budget, percent) = budget_under_memory(10);
    let held = budget.reserve(ask(1, 1)).await;
    percent.store(95, Ordering::SeqCst);
    budget.sample();
    let front = queue(&budget, ask(2, 1)).await;
    let next = queue(&budget, ask(3, 1)).await;
    front.abort();
    until(|| budget.status().waiting.len() == 1).await;
    percent.store(10, Ordering::SeqCst);
    drop(tokio::time::timeout(Duration::from_secs(1), next).await.expect("the gate opens").unwrap());
    drop(held);
}

// T6, B6: and it closes by it, while the line waits for something else.
#[tokio::test(start_paused = true)]
async fn the_gate_closes_by_a_timer_while_somebody_waits() {
    let (budget, percent) = budget_under_memory(10);
    let held = [budget.reserve(ask(1, 5)).await, budget.reserve(ask(1, 5)).await];
    let waiter = queue(&budget, ask(2, 1)).await;
    percent.store(90, Ordering::SeqCst);
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(line_of(&budget), [(1, 2, Reason::Gate)]);
    // B5: with nothing in flight it enters all the same.
    drop(held);
    drop(waiter.await.unwrap());
}

// T6
#[tokio::test(start_paused = true)]
async fn an_old_reading_is_renewed_before_an_admission() {
    let (budget, percent) = budget_under_memory(10);
    let held = budget.reserve(ask(1, 1)).await;
    percent.store(95, Ordering::SeqCst);
    let within_the_interval = budget.reserve(ask(2, 1)).await;
    assert!(budget.status().gate_open);
    tokio::time::advance(Duration::from_millis(250)).await;
    let waiter = queue(&budget, ask(3, 1)).await;
    assert_eq!(budget.status().memory, Some(MemoryReading { used_bytes: 95, limit_bytes: 100 }));
    assert_eq!(line_of(&budget), [(1, 3, Reason::Gate)]);
    waiter.abort();
    drop((held, within_the_interval));
}

// T8, I11
#[tokio::test(start_paused = true)]
async fn a_page_that_hangs_gives_its_room_back_at_the_deadline() {
    let budget = budget(10, 0);
    let hangs = tokio::spawn({
        let budget = budget.clone();
        async move { budget.reserve(ask(1, 10)).await.within_deadline(std::future::pending::<()>()).await }
    });
    until(|| !budget.status().holders.is_empty()).await;
    let started = Instant::now();
    let next = queue(&budget, ask(2, 10)).await.await.unwrap();
    assert_eq!(started.elapsed().as_secs(), 30);
    assert_eq!(hangs.await.unwrap(), Err(PageOverdue { deadline: Duration::from_secs(30) }));
    assert_eq!(next.deadline(), Some((started + Duration::from_secs(60)).into_std()));
}

// I11: time in line does not count against the page.
#[tokio::test(start_paused = true)]
async fn the_deadline_runs_from_the_admission() {
    let budget = budget(10, 0);
    let held = budget.reserve(ask(1, 10)).await;
    let waiter = queue(&budget, ask(2, 10)).await;
    tokio::time::advance(Duration::from_secs(25)).await;
    drop(held);
    let admitted = Instant::now();
    assert_eq!(waiter.await.unwrap().deadline(), Some((admitted + Duration::from_secs(30)).into_std()));
}

// T7, I13
#[tokio::test]
async fn a_commit_never_waits_for_the_reservation_of_the_next_page() {
    let budget = budget(10, 0);
    let page = budget.reserve(ask(1, 10)).await;
    let ahead = queue(&budget, ask(1, 10)).await;
    // All that a page does with its lease while the next one waits: none of it waits.
    assert!(!page.grow(1));
    page.trim(1, 9);
    page.release();
    assert_eq!(ahead.await.unwrap().granted(), (1, 10));
}

// T5: the first event of the page alone was larger than the reservation.
#[tokio::test]
async fn who_returns_with_the_exact_size_is_the_next() {
    let budget = budget(10, 0);
    let held = budget.reserve(ask(1, 6)).await;
    let small = budget.reserve(ask(2, 2)).await;
    let waiter = queue(&budget, ask(3, 9)).await;
    small.release();
    let returned = queue(&budget, Ask { front: true, ..ask(2, 8) }).await;
    assert_eq!(line_of(&budget).iter().map(|(_, agent, _)| *agent).collect::<Vec<_>>(), [2, 3]);
    held.release();
    assert_eq!(returned.await.unwrap().granted(), (1, 8));
    drop(waiter.await.unwrap());
}

// T5, B8
#[tokio::test]
async fn the_budget_is_resized_while_running() {
    let budget = budget(4, 0);
    let held = budget.reserve(ask(1, 100)).await;
    assert_eq!(held.granted(), (1, 4));
    let waiter = queue(&budget, ask(2, 100)).await;
    budget.resize(Capacity { events: 0, bytes: 0, pages: 0 });
    assert_eq!(waiter.await.unwrap().granted(), (1, 100));
    assert_eq!(budget.capacity(), Capacity::default());
}

// T3: thousands wait, so each of them must cost little.
#[tokio::test]
async fn a_reservation_in_line_is_small() {
    let budget = budget(1, 0);
    assert!(
        size_of_val(&budget.reserve(ask(1, 1))) <= 256,
        "{} bytes",
        size_of_val(&budget.reserve(ask(1, 1)))
    );
    let permits = Permits::new(1);
    let permit = permits.acquire(DATABASE, AgentNo(1));
    assert!(size_of_val(&permit) <= 256, "{} bytes", size_of_val(&permit));
}

// T6: a setting that validation refuses must still not hang the node.
#[tokio::test(start_paused = true)]
async fn an_interval_of_zero_does_not_spin() {
    let percent = Arc::new(AtomicU64::new(95));
    let config = BudgetConfig { bytes_max: Some(10), memory_interval_ms: 0, ..BudgetConfig::default() };
    let source = percent.clone();
    let read = move || Some(MemoryReading { used_bytes: source.load(Ordering::SeqCst), limit_bytes: 100 });
    let budget = Budget::with_memory(config, read);
    let held = budget.reserve(ask(1, 1)).await;
    let waiter = queue(&budget, ask(2, 1)).await;
    percent.store(1, Ordering::SeqCst);
    drop((waiter.await.unwrap(), held));
}

// T8
#[tokio::test]
async fn fewer_permits_take_effect_as_they_are_given_back() {
    let permits = Arc::new(Permits::new(2));
    let take = |agent| {
        let permits = permits.clone();
        tokio::spawn(async move { permits.acquire(DATABASE, AgentNo(agent)).await })
    };
    let (first, second) = (take(1).await.unwrap(), take(2).await.unwrap());
    let third = take(3);
    until(|| permits.status(DATABASE).waiting == [AgentNo(3)]).await;
    permits.resize(DATABASE, 1);
    drop(first);
    yield_now().await;
    assert_eq!(permits.status(DATABASE).in_use, 1, "the third entered beside the second");
    drop(second);
    drop(third.await.unwrap());
    permits.resize(DATABASE, 0);
    let many: Vec<_> = take_all(&permits, 50).await;
    assert_eq!(permits.status(DATABASE).in_use, 50);
    drop(many);
}

async fn take_all(permits: &Permits, count: u64) -> Vec<super::permits::Permit> {
    let mut many = Vec::new();
    for agent in 0..count {
        many.push(permits.acquire(DATABASE, AgentNo(agent)).await);
    }
    many
}

// T8: a database that hangs keeps none of the room it has no permit for.
#[tokio::test]
async fn who_waits_for_a_permit_holds_no_room() {
    let (permits, budget) = (Arc::new(Permits::new(1)), budget(2, 0));
    let page = |database: u32, agent: u64| {
        let (permits, budget) = (permits.clone(), budget.clone());
        async move {
            let permit = permits.acquire(DatabaseNo(database), AgentNo(agent)).await;
            (permit, budget.reserve(Ask { database: DatabaseNo(database), ..ask(agent, 1) }).await)
        }
    };
    let hangs = tokio::spawn(page(0, 1)).await.unwrap();
    let waits: Vec<_> = (2..10).map(|agent| tokio::spawn(page(0, agent))).collect();
    until(|| permits.status(DatabaseNo(0)).waiting.len() == 8).await;
    drop(tokio::spawn(page(1, 10)).await.unwrap());
    assert_eq!(budget.status().holders.len(), 1);
    drop(hangs);
    for waiter in waits {
        drop(waiter.await.unwrap());
    }
}

// T4: build, commit, back of the line.
#[tokio::test]
async fn the_line_serves_its_agents_in_turn_over_all_databases() {
    let line = Line::single_file();
    let start = line.turn(DATABASE, AgentNo(99)).await;
    let (turns, mut served) = tokio::sync::mpsc::unbounded_channel();
    let mut agents = Vec::new();
    for agent in 0..3_u64 {
        let (line, turns) = (line.clone(), turns.clone());
        agents.push(tokio::spawn(async move {
            for _ in 0..3 {
                let turn = line.turn(DatabaseNo(agent as u32), AgentNo(agent)).await;
                turns.send(agent).unwrap();
                yield_now().await;
                drop(turn);
            }
        }));
    }
    until(|| line.status().waiting.len() == 3).await;
    let order: Vec<_> = line.status().waiting.iter().map(|agent| agent.0).collect();
    drop(start);
    for agent in agents {
        agent.await.unwrap();
    }
    drop(turns);
    let mut seen = Vec::new();
    while let Some(agent) = served.recv().await {
        seen.push(agent);
    }
    assert_eq!(seen, [&order[..], &order[..], &order[..]].concat());
}

#[tokio::test]
async fn without_a_line_nobody_waits() {
    let line = Line::unbounded();
    let first = line.turn(DATABASE, AgentNo(1)).await;
    let second = line.turn(DATABASE, AgentNo(2)).await;
    assert_eq!(line.status().in_use, 2);
    drop((first, second));
}

// T5, T8, I1, I9, I12: many agents on several threads, seen from outside all the while.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn under_load_the_bounds_hold_and_in_the_end_nothing_is_left() {
    const PERMITS: u64 = 3;
    let (permits, budget) = (Arc::new(Permits::new(PERMITS)), budget(100, 8));
    let agents: Vec<_> = (0..64_u64)
        .map(|agent| {
            let (permits, budget) = (permits.clone(), budget.clone());
            tokio::spawn(async move {
                for page in 0..40_u64 {
                    let database = DatabaseNo((agent % 5) as u32);
                    let permit = permits.acquire(database, AgentNo(agent)).await;
                    let wanted = 1 + (agent * 7 + page * 13) % 60;
                    let waiting = budget.reserve(Ask { database, ..ask(agent, wanted) });
                    if (agent + page) % 11 == 0 {
                        // Gives up if it is not admitted at once.
                        let _ = tokio::time::timeout(Duration::ZERO, waiting).await;
                        continue;
                    }
                    let lease = waiting.await;
                    lease.trim(1, wanted / 2 + 1);
                    yield_now().await;
                    let _grew = lease.grow(3);
                    drop((lease, permit));
                }
            })
        })
        .collect();
    while !agents.iter().all(JoinHandle::is_finished) {
        let status = budget.status();
        assert!(status.bytes.in_use <= 100 && status.holders.len() <= 8, "{status:?}");
        assert_eq!(status.bytes.in_use, status.holders.iter().map(|holding| holding.bytes).sum::<u64>());
        assert!(status.waiting.is_empty() || !status.holders.is_empty(), "{status:?}");
        let mut held: BTreeMap<DatabaseNo, u64> = BTreeMap::new();
        for holding in &status.holders {
            *held.entry(holding.database).or_default() += 1;
        }
        assert!(held.values().all(|held| *held <= PERMITS), "{status:?}");
        yield_now().await;
    }
    for agent in agents {
        agent.await.unwrap();
    }
    let status = budget.status();
    assert_eq!((status.events.in_use, status.bytes.in_use), (0, 0));
    assert_eq!((status.holders.len(), status.waiting.len()), (0, 0));
    assert!(status.bytes.peak <= 100 && status.pages.peak <= 8 && status.waited > 0, "{status:?}");
}
