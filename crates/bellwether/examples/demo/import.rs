//! Bringing the rows in: in order within a tenant, many tenants at once, nothing twice.
//!
//! A tenant's events go in in the order of the input, so its head says how many of them are there: a run that was killed, or a
//! second process at the same work, goes on behind it. A chunk goes in as a whole or not at all, under expectations on every
//! stream in it, so two processes never both append an event.

use std::collections::HashMap;
use std::time::Duration;

use bellwether::prelude::*;
use bellwether::storage::ErrorKind;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::Failure;
use crate::fold::Expectation;
use crate::history::FileEvent;
use crate::input::Input;
use crate::progress::Progress;
use crate::row::Row;
use crate::tenant::{digest, tenant_id};

/// Tenants worked on at once; the events of one tenant stay with one worker, in order.
const WORKERS: usize = 16;
/// Events that share an append.
const CHUNK_EVENTS: usize = 500;
/// Rows held back for chunks to fill, over all tenants; beyond it every chunk goes out as it is.
const HELD_ROWS_MAX: usize = 20_000;
/// Chunks waiting per worker.
const CHUNKS_WAITING: usize = 2;
/// A store that cannot be reached is tried again so often, with growing waits: half a minute in all.
const TRIES: u32 = 40;
const WAIT_MAX: Duration = Duration::from_secs(1);

/// Consecutive rows of one tenant.
struct Chunk {
    tenant: TenantId,
    /// Number of the first row among the tenant's.
    first: u64,
    /// Each with the version its stream has before it.
    rows: Vec<(Row, Version)>,
}

/// Appends what is not there yet; returns how many events that were.
pub(crate) async fn import(
    store: &Store,
    input: &Input,
    depth: usize,
    expectation: &Expectation,
    progress: &Progress,
) -> Result<u64, Failure> {
    let mut workers = JoinSet::new();
    let mut lanes = Vec::new();
    let (done_sender, mut done) = mpsc::channel::<u64>(1_024);
    for _ in 0..WORKERS {
        let (lane, chunks) = mpsc::channel(CHUNKS_WAITING);
        lanes.push(lane);
        workers.spawn(work(store.clone(), chunks, done_sender.clone()));
    }
    drop(done_sender);
    let input = input.clone();
    // Reading and unpacking is blocking work.
    let reader = tokio::task::spawn_blocking(move || read(&input, depth, &lanes));
    let mut seen = 0;
    while let Some(events) = done.recv().await {
        seen += events;
        progress.at(seen, || format!("events, {} tenants", expectation.tenants.len()));
    }
    let mut appended = 0;
    let mut failure = None;
    while let Some(worker) = workers.join_next().await {
        match worker.map_err(|error| Failure::Failed(error.to_string()))? {
            Ok(events) => appended += events,
            Err(error) => failure = failure.or(Some(error)),
        }
    }
    let read = reader.await.map_err(|error| Failure::Failed(error.to_string()))?;
    match failure {
        Some(failure) => Err(failure),
        None => read.map(|()| appended).map_err(Failure::Failed),
    }
}

/// Cuts the input into chunks and hands each to its tenant's worker.
fn read(input: &Input, depth: usize, lanes: &[mpsc::Sender<Chunk>]) -> Result<(), String> {
    let mut tenants: HashMap<String, (TenantId, u64)> = HashMap::new();
    let mut versions: HashMap<String, Version> = HashMap::new();
    let mut chunks: HashMap<TenantId, Chunk> = HashMap::new();
    let mut held = 0;
    let send = |chunk: Chunk| {
        let lane = digest([chunk.tenant.as_str().as_bytes()]) as usize % lanes.len();
        lanes[lane].blocking_send(chunk).map_err(|_| "the import ended early".to_owned())
    };
    input.read(
        |_, row| {
            let name = row.tenant(depth);
            if !tenants.contains_key(name) {
                tenants.insert(name.to_owned(), (tenant_id(name), 0));
            }
            let (tenant, rows) = tenants.get_mut(name).expect("just inserted");
            *rows += 1;
            // A path belongs to one tenant, so its rows are counted over all of them.
            let version = match versions.get_mut(&row.path) {
                Some(version) => {
                    let before = *version;
                    *version = version.next();
                    before
                }
                None => {
                    versions.insert(row.path.clone(), Version::new(1));
                    Version::ZERO
                }
            };
            let chunk = chunks.entry(tenant.clone()).or_insert_with(|| Chunk {
                tenant: tenant.clone(),
                first: *rows,
                rows: Vec::new(),
            });
            chunk.rows.push((row, version));
            held += 1;
            if chunk.rows.len() == CHUNK_EVENTS {
                held -= CHUNK_EVENTS;
                send(chunks.remove(tenant).expect("just filled"))?;
            } else if held >= HELD_ROWS_MAX {
                held = 0;
                chunks.drain().try_for_each(|(_, chunk)| send(chunk))?;
            }
            Ok(())
        },
        |_| {}, // reported when the input was first read
    )?;
    chunks.drain().try_for_each(|(_, chunk)| send(chunk))
}

/// Appends the chunks of some tenants, one after the other.
async fn work(
    store: Store,
    mut chunks: mpsc::Receiver<Chunk>,
    done: mpsc::Sender<u64>,
) -> Result<u64, Failure> {
    let mut heads: HashMap<TenantId, u64> = HashMap::new();
    let mut appended = 0;
    while let Some(chunk) = chunks.recv().await {
        let head = match heads.get(&chunk.tenant) {
            Some(head) => *head,
            None => head_of(&store, &chunk.tenant).await?,
        };
        let rows = chunk.rows.len() as u64;
        let (head, new) = append(&store, &chunk, head).await?;
        heads.insert(chunk.tenant, head);
        appended += new;
        // Nobody listening means the import is being given up.
        let _ = done.send(rows).await;
    }
    Ok(appended)
}

/// Appends what of the chunk lies behind the head; returns the head after it and how many events this process appended.
async fn append(store: &Store, chunk: &Chunk, mut head: u64) -> Result<(u64, u64), Failure> {
    let last = chunk.first + chunk.rows.len() as u64 - 1;
    let tenant = store.tenant(&chunk.tenant)?;
    let mut tries = 0;
    loop {
        if head >= last {
            return Ok((head, 0));
        }
        if head + 1 < chunk.first {
            return Err(Failure::Failed(format!(
                "tenant {} is at {head} where {} events should be; the store was changed from outside",
                chunk.tenant,
                chunk.first - 1
            )));
        }
        let missing = &chunk.rows[(head + 1 - chunk.first) as usize..];
        let mut appends = Vec::with_capacity(missing.len());
        for (row, version) in missing {
            let expected = if *version == Version::ZERO { Expected::None } else { Expected::Exact(*version) };
            let event = FileEvent::of(row.clone(), *version == Version::ZERO);
            appends.push(tenant.stream_of::<FileEvent>(&row.path)?.to_append([event]).expecting(expected));
        }
        let error = match tenant.append_all(appends).await {
            Ok(_) => return Ok((last, missing.len() as u64)),
            Err(error) => error,
        };
        let moved = match error.kind() {
            ErrorKind::Conflict | ErrorKind::Unavailable | ErrorKind::Unknown => {
                let before = head;
                head = head_of(store, &chunk.tenant).await?;
                head > before
            }
            _ => return Err(error.into()),
        };
        tries = if moved { 0 } else { tries + 1 };
        if tries == TRIES {
            return Err(error.into());
        }
        if !moved {
            tokio::time::sleep(wait(tries)).await;
        }
    }
}

/// How many of a tenant's events are there.
async fn head_of(store: &Store, tenant: &TenantId) -> Result<u64, Failure> {
    let mut tries = 0;
    loop {
        match store.tenant(tenant)?.head().await {
            Ok(head) => return Ok(head.get()),
            Err(error) if error.kind() == ErrorKind::Unavailable && tries < TRIES => {
                tries += 1;
                tokio::time::sleep(wait(tries)).await;
            }
            Err(error) => return Err(error.into()),
        }
    }
}

fn wait(tries: u32) -> Duration {
    Duration::from_millis(20 << tries.min(6)).min(WAIT_MAX)
}
