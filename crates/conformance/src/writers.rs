//! Many writers at once: no hole, no doubled number, nobody waits for another tenant.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bellwether_storage::{AppendOutcome, ErrorKind, EventId, StoredEvent, TenantEntry};

use crate::Subject;
use crate::given::{Db, PATIENCE, Patience, append, event, events, everything, head, log, outcome, tenant};

const WRITERS: u64 = 16;
const APPENDS: u64 = 12;

/// What one writer of the crowd works with.
struct Writer {
    db: Db,
    tenant: TenantEntry,
    stream: String,
    /// State of its own chance.
    chance: u64,
    version: u64,
}

impl Writer {
    fn roll(&mut self, sides: u64) -> u64 {
        self.chance =
            self.chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.chance >> 33) % sides
    }

    /// Appends `count` events somehow; true when they went in.
    async fn attempt(&mut self, count: u64) -> bool {
        let events = events(&self.stream, self.version + 1, self.version + count);
        match self.roll(6) {
            0 => self.abandon().await,
            1 => self.provoke_a_refusal().await,
            2 | 3 => return self.append_locked(events).await,
            _ => {
                let head = head(&self.db, self.tenant.number).await;
                return match outcome(&self.db, &self.tenant, head, events).await {
                    Ok(AppendOutcome::Done { .. }) => true,
                    Ok(AppendOutcome::Busy | AppendOutcome::Stale { .. }) => false,
                    Err(error) if nothing_happened(error.kind()) => false,
                    other => panic!("an append of the crowd was answered {other:?}"),
                };
            }
        }
        false
    }

    async fn append_locked(&mut self, events: Vec<bellwether_storage::NewEvent>) -> bool {
        let lock = match self.db.lock_head(self.tenant.number, Duration::from_secs(5)).await {
            Ok(lock) => lock,
            Err(error) if nothing_happened(error.kind()) => return false,
            Err(error) => panic!("a lock of the crowd failed: {error:?}"),
        };
        // Held open while others try.
        for _ in 0..self.roll(20) {
            tokio::task::yield_now().await;
        }
        match lock.append(&events, &[], None).await {
            Ok(_) => true,
            Err(error) if nothing_happened(error.kind()) => false,
            Err(error) => panic!("a locked append of the crowd failed: {error:?}"),
        }
    }

    /// Locks, looks, and goes away.
    async fn abandon(&mut self) {
        if let Ok(mut lock) = self.db.lock_head(self.tenant.number, Duration::from_secs(5)).await {
            let _ = lock.versions(&[]).await;
        }
    }

    /// Sends rows that must be refused.
    async fn provoke_a_refusal(&mut self) {
        let twice = vec![event("refused", 1), event("refused", 1)];
        let head = head(&self.db, self.tenant.number).await;
        match outcome(&self.db, &self.tenant, head, twice).await {
            Err(error) if error.kind() == ErrorKind::Rejected || nothing_happened(error.kind()) => {}
            Ok(AppendOutcome::Busy | AppendOutcome::Stale { .. }) => {}
            other => panic!("the same version twice was answered {other:?}"),
        }
    }
}

fn nothing_happened(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Conflict | ErrorKind::Unavailable)
}

pub async fn numbers_are_contiguous_under_sixteen_writers(subject: &dyn Subject) {
    let acme = tenant(subject.first(), "acme").await;
    let done = Arc::new(AtomicBool::new(false));
    let reader = tokio::spawn(read_prefixes(subject.second().clone(), acme.clone(), done.clone()));
    let writers = (0..WRITERS).map(|index| {
        let db = if index % 2 == 0 { subject.first() } else { subject.second() }.clone();
        let tenant = acme.clone();
        tokio::spawn(async move {
            let mut writer =
                Writer { db, tenant, stream: format!("w{index}"), chance: index + 1, version: 0 };
            let patience = Patience::new();
            for _ in 0..APPENDS {
                let count = 1 + writer.roll(3);
                while !writer.attempt(count).await {
                    patience.pause("a turn in the crowd").await;
                }
                writer.version += count;
            }
            writer.version
        })
    });
    let mut appended = 0;
    for writer in writers.collect::<Vec<_>>() {
        appended += writer.await.unwrap();
    }
    done.store(true, Ordering::Release);
    let seen = reader.await.unwrap();
    let found = log(subject.first(), acme.number).await;
    assert_eq!(found.len() as u64, appended, "what was acknowledged is there, and nothing else");
    let seen_again: Vec<EventId> = found.iter().take(seen.len()).map(|event| event.id).collect();
    assert_eq!(seen, seen_again, "a reader never sees what does not stay");
    for index in 0..WRITERS {
        let of_writer = found.iter().filter(|event| event.stream.as_str() == format!("w{index}"));
        assert!(of_writer.enumerate().all(|(index, event)| event.version.get() == index as u64 + 1));
    }
}

/// Reads while the crowd writes: every page is a prefix, and what was read stays.
async fn read_prefixes(db: Db, tenant: TenantEntry, done: Arc<AtomicBool>) -> Vec<EventId> {
    let mut seen: Vec<EventId> = Vec::new();
    loop {
        let last_round = done.load(Ordering::Acquire);
        let page = db
            .read_page(&everything(tenant.number, seen.len() as u64))
            .await
            .expect("a page beside the writers");
        assert_eq!(page.through, page.head, "head and events are of one snapshot");
        let contiguous =
            |(index, event): (usize, &StoredEvent)| event.sequence.get() == (seen.len() + index) as u64 + 1;
        assert!(page.events.iter().enumerate().all(contiguous), "a page starts where the last one ended");
        assert_eq!((seen.len() + page.events.len()) as u64, page.head.get());
        seen.extend(page.events.iter().map(|event| event.id));
        if last_round {
            return seen;
        }
        tokio::task::yield_now().await;
    }
}

pub async fn an_append_held_open_delays_no_other_tenant(subject: &dyn Subject) {
    let db = subject.first();
    let held = tenant(db, "held").await;
    let mut others = Vec::new();
    for index in 0..8 {
        others.push(tenant(db, &format!("other-{index}")).await);
    }
    let mut lock = subject.second().lock_head(held.number, PATIENCE).await.unwrap();
    let since = Instant::now();
    let mut rounds = 0;
    let mut waits = Vec::new();
    while since.elapsed() < subject.held_open() {
        for other in &others {
            let started = Instant::now();
            append(db, other, rounds, vec![event("s", rounds + 1)]).await;
            waits.push(started.elapsed());
        }
        // In one batch with the held one, and by its own lock.
        if rounds % 16 == 0 {
            assert_eq!(outcome(db, &held, 0, vec![event("s", 1)]).await.unwrap(), AppendOutcome::Busy);
            drop(db.lock_head(others[0].number, PATIENCE).await.expect("the lock of another tenant"));
        }
        rounds += 1;
        // At work, not forgotten: a server may end a transaction whose client has gone quiet.
        lock.versions(&[]).await.expect("the lock is still held");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    waits.sort_unstable();
    let (most, slowest) = (waits[waits.len() * 19 / 20], waits[waits.len() - 1]);
    // A machine may stumble once; who waits for the held head, be it for one lock timeout, does so again and again.
    assert!(most < Duration::from_secs(1), "one in twenty appends of other tenants took {most:?} and more");
    assert!(slowest < Duration::from_secs(10), "an append of another tenant took {slowest:?}");
    lock.append(&[event("s", 1)], &[], None).await.expect("the append that was held open");
    assert_eq!(log(db, held.number).await.len(), 1);
    for other in &others {
        assert_eq!(log(subject.second(), other.number).await.len() as u64, rounds);
    }
}
