//! One store under operations: decides them (on the memory) and performs them (on both).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

use bellwether_storage::{
    AppendBatch, AppendId, AppendOutcome, Build, DeadLetter, DocumentWrite, Error, ErrorKind, EventType,
    FenceClaim, FenceRequest, Generation, NewEvent, Owner, PageQuery, PageStart, Place, Progress,
    ProgressKey, ProjectionNo, StoredEvent, StreamId, StreamQuery, TenantAppend, TenantEntry, Timestamp,
    ViewNo,
};
use uuid::Uuid;

use super::operation::{Claim, Draft, End, Operation, Row, Wrong};
use crate::given::{self, Db, Patience, key, seq, stream, ver};
use crate::unit::letter;

const STREAMS: [&str; 4] = ["a", "b", "A", "it's 100%_\u{e9}"];
const TYPES: [&str; 4] = ["One", "Two", "one", "O_e"];
const KEYS: [&str; 6] = ["a", "b", "A", "a%", "\u{e9}", "e\u{301}"];
const MEMBERS: [&str; 2] = ["m", "M"];

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

/// One store with the tenants of one sequence.
pub(super) struct Side {
    handles: [Db; 2],
    tenants: Vec<TenantEntry>,
    projections: Vec<ProjectionNo>,
    views: Vec<ViewNo>,
}

impl Side {
    /// Registers the tenants of sequence `number`.
    pub(super) async fn new(handles: [Db; 2], number: u32) -> Self {
        let mut tenants = Vec::new();
        for index in 0..3 {
            tenants.push(given::tenant(&handles[0], &format!("agree-{number}-{index}")).await);
        }
        // Registered in one order, so that numbers are compared in the same order on both sides.
        tenants.sort_by_key(|tenant| tenant.number);
        let projections = vec![
            given::projection(&handles[0], "agree-p").await,
            given::projection(&handles[0], "agree-P").await,
        ];
        let views =
            vec![given::view(&handles[0], "agree-v", 1).await, given::view(&handles[0], "agree-v", 2).await];
        Self { handles, tenants, projections, views }
    }

    fn key(&self, (tenant, projection, build): Row) -> ProgressKey {
        ProgressKey {
            tenant: self.tenants[tenant].number,
            projection: self.projections[projection],
            version: 1,
            build: Build(build),
        }
    }

    async fn stored(&self, row: Row) -> Option<Progress> {
        given::progress(&self.handles[0], self.key(row)).await
    }

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

    /// Performs a call and shows what came of it, without what may differ between stores.
    pub(super) async fn perform(&self, call: &Call) -> String {
        match call {
            Call::Append { handle, entries, now } => self.append(*handle, entries, *now).await,
            Call::Locked { .. } => self.locked(call).await,
            Call::Fence { handle, owner, requests } => {
                let request =
                    |(row, claim): &(Row, FenceClaim)| FenceRequest { key: self.key(*row), claim: *claim };
                let requests: Vec<_> = requests.iter().map(request).collect();
                show(self.handles[*handle].fence(*owner, &requests).await)
            }
            Call::Page { .. } => self.page(call).await,
            Call::Read(operation) => self.read(operation).await,
        }
    }

    async fn append(
        &self,
        handle: usize,
        entries: &BTreeMap<usize, (u64, bool, Vec<NewEvent>)>,
        now: i64,
    ) -> String {
        let entry = |(tenant, (head, misplaced, events)): (&usize, &(u64, bool, Vec<NewEvent>))| {
            let TenantEntry { number, place, .. } = self.tenants[*tenant];
            let place = Place(place.0 + i32::from(*misplaced));
            TenantAppend { tenant: number, expected_head: seq(*head), place, events: events.clone() }
        };
        let tenants = entries.iter().map(entry).collect();
        let sent = AppendBatch { tenants, now: Some(Timestamp::from_micros(now)) };
        show(self.handles[handle].append(&sent).await.map(|receipt| {
            // Where a tenant lies is the store's choice.
            let answered = receipt.outcomes.into_iter().zip(entries.keys());
            answered.map(|(outcome, tenant)| self.placeless(outcome, *tenant)).collect::<Vec<_>>()
        }))
    }

    fn placeless(&self, outcome: AppendOutcome, tenant: usize) -> AppendOutcome {
        match outcome {
            AppendOutcome::Stale { head, place } if place == self.tenants[tenant].place => {
                AppendOutcome::Stale { head, place: Place::default() }
            }
            other => other,
        }
    }

    async fn locked(&self, call: &Call) -> String {
        let Call::Locked { handle, tenant, events, ids, now, dropped } = call else { return String::new() };
        let (db, tenant) = (&self.handles[*handle], *tenant);
        let number = self.tenants[tenant].number;
        let mut lock = db.lock_head(number, given::PATIENCE).await.expect("a lock nobody else holds");
        let head = lock.state().head;
        let versions = lock.versions(&STREAMS.map(stream)).await.expect("versions under the lock").streams;
        let asked: Vec<Uuid> = ids.iter().map(|id| id.id).collect();
        let mut known = lock.append_ids(&asked).await.expect("append ids under the lock");
        known.sort_by_key(|id| id.id);
        let ended = if *dropped {
            drop(lock);
            self.settle(tenant).await;
            "dropped".to_owned()
        } else {
            // As the writer does: what is already recorded is not appended again.
            let fresh: Vec<_> =
                ids.iter().filter(|id| known.iter().all(|known| known.id != id.id)).cloned().collect();
            show(lock.append(events, &fresh, Some(Timestamp::from_micros(*now))).await)
        };
        format!("{head} {versions:?} {known:?} {ended}")
    }

    /// Waits until a dropped lock has gone.
    async fn settle(&self, tenant: usize) {
        let patience = Patience::new();
        let impossible = u64::MAX >> 2;
        while let Ok(AppendOutcome::Busy) = given::outcome(
            &self.handles[0],
            &self.tenants[tenant],
            impossible,
            vec![given::event("settle", 1)],
        )
        .await
        {
            patience.pause("a dropped lock to be gone").await;
        }
    }

    async fn page(&self, call: &Call) -> String {
        let Call::Page { handle, row, start, chunks, letters, to, end } = call else { return String::new() };
        let key = self.key(*row);
        let page = PageStart { key, from: seq(start.0), generation: Generation(start.1), owner: start.2 };
        let patience = Patience::new();
        let mut unit = loop {
            match self.handles[*handle].begin(&page).await {
                Ok(unit) => break unit,
                // A page dropped a moment ago may still be on its way out.
                Err(error) if error.kind() == ErrorKind::Unavailable => patience.pause("the row").await,
                Err(error) => return format!("{:?}", error.kind()),
            }
        };
        let mut seen = Vec::new();
        for chunk in chunks {
            for (index, view) in self.views.iter().enumerate() {
                let writes =
                    chunk.iter().filter(|(of, _)| *of == index).map(|(_, write)| write.clone()).collect();
                unit.write(*view, writes).await.expect("a chunk");
                let mut found = unit.load(*view, &KEYS.map(given::key)).await.expect("documents in the page");
                found.sort_by(|a, b| a.key.cmp(&b.key));
                seen.push(found);
            }
        }
        let letters: Vec<DeadLetter> =
            letters.iter().map(|(sequence, member)| letter(key, *sequence, MEMBERS[*member])).collect();
        let ended = match end {
            End::Finish => show(unit.finish(seq(*to), &letters).await),
            End::Drop => {
                drop(unit);
                "dropped".to_owned()
            }
            End::RollBack => {
                unit.roll_back().await;
                "rolled back".to_owned()
            }
        };
        format!("{seen:?} {ended} {:?}", self.stored(*row).await)
    }

    async fn read(&self, operation: &Operation) -> String {
        match operation {
            Operation::Read { handle, tenant, after, up_to, types, events_max, bytes_max } => {
                let types: Option<Vec<EventType>> = types.as_ref().map(|types| {
                    types.iter().map(|index| EventType::new(TYPES[*index]).expect("a type")).collect()
                });
                let query = PageQuery {
                    tenant: self.tenants[*tenant].number,
                    after: seq(*after),
                    up_to: up_to.map(seq),
                    types: types.as_deref(),
                    events_max: *events_max,
                    bytes_max: *bytes_max,
                };
                walk(&self.handles[*handle], query).await
            }
            Operation::Stream { handle, tenant, stream: index, after, events_max, bytes_max } => {
                let stream: StreamId = stream(STREAMS[*index]);
                let query = StreamQuery {
                    tenant: self.tenants[*tenant].number,
                    stream: &stream,
                    after: ver(*after),
                    events_max: *events_max,
                    bytes_max: *bytes_max,
                };
                let page = self.handles[*handle].read_stream(&query).await;
                let own = self.tenants[*tenant].place;
                show(page.map(|page| (page.head, page.place == own, page.version, page.events)))
            }
            Operation::Versions { handle, tenant, streams } => {
                let streams: Vec<_> = streams.iter().map(|index| stream(STREAMS[*index])).collect();
                let found =
                    self.handles[*handle].stream_versions(self.tenants[*tenant].number, &streams).await;
                let own = self.tenants[*tenant].place;
                show(found.map(|found| (found.head, found.place == own, found.streams)))
            }
            Operation::Look { handle, row, after, limit } => {
                self.look(&self.handles[*handle], *row, *after, *limit).await
            }
            other => unreachable!("{other:?} is not a read"),
        }
    }

    async fn look(&self, db: &Db, row: Row, after: usize, limit: u32) -> String {
        let mut shown = format!("{:?}", self.stored(row).await);
        let after = key(KEYS[after]);
        for view in &self.views {
            let set = given::set(*view, self.key(row));
            let part = db.list(set, Some(&after), limit).await.expect("a list");
            shown += &format!(" {part:?} of {:?}", given::documents(db, set).await);
        }
        let letters = db.dead_letters(self.tenants[row.0].number, limit).await.expect("dead letters");
        let place = |letter: &DeadLetter| {
            let projection = self.projections.iter().position(|number| *number == letter.key.projection);
            (projection, letter.key.build, letter.sequence, letter.member.clone(), letter.reason.clone())
        };
        shown + &format!(" {:?}", letters.iter().map(place).collect::<Vec<_>>())
    }
}

/// Reads page after page: where one ends is the store's choice, what they hold together is not.
async fn walk(db: &Db, mut query: PageQuery<'_>) -> String {
    let mut events: Vec<StoredEvent> = Vec::new();
    loop {
        let page = match db.read_page(&query).await {
            Ok(page) => page,
            Err(error) => return show(Err::<(), _>(error)),
        };
        events.extend(page.events);
        let last = query.up_to.map_or(page.head, |up_to| up_to.min(page.head));
        if page.too_large.is_some() || page.through >= last {
            return format!("{} {:?} {events:?}", page.head, page.too_large);
        }
        assert!(page.through > query.after, "{query:?} made no progress");
        query.after = page.through;
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

fn show<T: Debug>(answer: Result<T, Error>) -> String {
    match answer {
        Ok(answer) => format!("{answer:?}"),
        Err(error) => format!("{:?}", error.kind()),
    }
}
