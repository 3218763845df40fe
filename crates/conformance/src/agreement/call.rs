//! Decided operations: what both stores are told to do, decided on the memory's state.

use std::collections::{BTreeMap, BTreeSet};

use bellwether_storage::{AppendId, DocumentWrite, FenceClaim, Generation, NewEvent, Owner, Progress};
use uuid::Uuid;

use super::operation::{Claim, Draft, End, Operation, Row, Wrong};
use super::side::{KEYS, STREAMS, Side, TYPES};
use crate::given::{self, key, seq, stream};

/// A decided operation, in terms both stores understand: indexes instead of numbers.
#[derive(Debug)]
pub(super) enum Call {
    Append {
        handle: usize,
        entries: BTreeMap<usize, (u64, bool, Vec<NewEvent>)>,
        now: i64,
    },
    Locked {
        handle: usize,
        tenant: usize,
        events: Vec<NewEvent>,
        ids: Vec<AppendId>,
        now: i64,
        dropped: bool,
    },
    Page {
        handle: usize,
        row: Row,
        start: (u64, i64, Owner),
        chunks: Vec<Vec<(usize, DocumentWrite)>>,
        letters: Vec<(u64, usize)>,
        to: u64,
        end: End,
    },
    Fence {
        handle: usize,
        owner: Owner,
        requests: Vec<(Row, FenceClaim)>,
    },
    /// Reads need no decision.
    Read(Operation),
}

impl Side {
    /// Numbers drafts by the versions their streams have here.
    async fn events(&self, tenant: usize, drafts: &[Draft]) -> Vec<NewEvent> {
        let streams = STREAMS.map(stream);
        let known =
            self.handles[0].stream_versions(self.tenants[tenant].number, &streams).await.expect("versions");
        let mut last: Vec<u64> = known.streams.iter().map(|state| state.version.get()).collect();
        let numbered = drafts.iter().map(|draft| {
            let repeats = draft.repeats_version && last[draft.stream] > 0;
            last[draft.stream] += u64::from(!repeats);
            given::typed(
                STREAMS[draft.stream],
                last[draft.stream],
                TYPES[draft.event_type],
                vec![draft.stream as u8; draft.size],
            )
        });
        numbered.collect()
    }

    /// Makes an operation concrete by this store's state.
    pub(super) async fn decide(&self, operation: &Operation) -> Call {
        match operation.clone() {
            Operation::Append { handle, entries, now } => {
                let mut decided = BTreeMap::new();
                for entry in entries {
                    let head = given::head(&self.handles[0], self.tenants[entry.tenant].number).await;
                    let events = self.events(entry.tenant, &entry.events).await;
                    decided
                        .insert(entry.tenant, (head.saturating_sub(entry.behind), entry.misplaced, events));
                }
                Call::Append { handle, entries: decided, now }
            }
            Operation::Locked { handle, tenant, events, ids, now, dropped } => {
                let events = self.events(tenant, &events).await;
                let head = given::head(&self.handles[0], self.tenants[tenant].number).await;
                let ids: BTreeSet<u8> = ids.into_iter().collect();
                let id = |id: u8| AppendId {
                    id: Uuid::from_u128(u128::from(id)),
                    digest: [id; 16],
                    first: seq(head + 1),
                    count: events.len() as u32,
                };
                let ids = ids.into_iter().map(id).collect();
                Call::Locked { handle, tenant, events, ids, now, dropped }
            }
            Operation::Fence { handle, owner, rows, claim } => {
                let mut requests = Vec::new();
                for row in rows {
                    let seen = self.stored(row).await;
                    let claim = match claim {
                        Claim::Granted(number) => FenceClaim::Granted(Generation(number)),
                        Claim::TakeOver => FenceClaim::TakeOver { seen: None },
                        Claim::TakeOverSeen => FenceClaim::TakeOver { seen },
                        Claim::TakeOverMistaken => FenceClaim::TakeOver {
                            seen: seen.map(|seen| Progress {
                                generation: Generation(seen.generation.0 + 1),
                                ..seen
                            }),
                        },
                    };
                    requests.push((row, claim));
                }
                Call::Fence { handle, owner: owner_of(owner), requests }
            }
            Operation::Page { handle, row, wrong, chunks, letters, ahead, end } => {
                let stored = self.stored(row).await;
                let from = stored.map_or(0, |row| row.sequence.get());
                let generation = stored.map_or(0, |row| row.generation.0);
                let owner = stored.and_then(|row| row.owner).unwrap_or(owner_of(0));
                let start = match wrong {
                    Wrong::Nothing => (from, generation, owner),
                    Wrong::From => (from + 1, generation, owner),
                    Wrong::Generation => (from, generation + 1, owner),
                    Wrong::Owner => (from, generation, owner_of(9)),
                };
                let chunks = chunks.into_iter().map(chunk).collect();
                Call::Page { handle, row, start, chunks, letters, to: start.0 + ahead, end }
            }
            read => Call::Read(read),
        }
    }
}

fn chunk(writes: Vec<(usize, usize, Option<u8>)>) -> Vec<(usize, DocumentWrite)> {
    // A key appears at most once in a chunk.
    let once: BTreeMap<(usize, usize), Option<u8>> =
        writes.into_iter().map(|(view, key, body)| ((view, key), body)).collect();
    let write = |((view, index), body): ((usize, usize), Option<u8>)| {
        let body = body.map(|byte| vec![byte; usize::from(byte)].into());
        (view, DocumentWrite { key: key(KEYS[index]), body })
    };
    once.into_iter().map(write).collect()
}

fn owner_of(index: usize) -> Owner {
    Owner(Uuid::from_u128(1000 + index as u128))
}
