//! One store under operations: performs what was decided, and shows what came of it.

use std::collections::BTreeMap;
use std::fmt::Debug;

use bellwether_storage::{
    AppendBatch, AppendOutcome, Build, DeadLetter, Error, ErrorKind, EventType, FenceClaim, FenceRequest,
    Generation, NewEvent, PageQuery, PageStart, Place, Progress, ProgressKey, ProjectionNo, StoredEvent,
    StreamId, StreamQuery, TenantAppend, TenantEntry, Timestamp, ViewNo,
};
use uuid::Uuid;

use super::call::Call;
use super::operation::{End, Operation, Row};
use crate::given::{self, Db, Patience, key, seq, stream, ver};
use crate::unit::letter;

pub(super) const STREAMS: [&str; 4] = ["a", "b", "A", "it's 100%_\u{e9}"];
pub(super) const TYPES: [&str; 4] = ["One", "Two", "one", "O_e"];
pub(super) const KEYS: [&str; 6] = ["a", "b", "A", "a%", "\u{e9}", "e\u{301}"];
const MEMBERS: [&str; 2] = ["m", "M"];

/// One store with the tenants of one sequence.
pub(super) struct Side {
    pub(super) handles: [Db; 2],
    pub(super) tenants: Vec<TenantEntry>,
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

    /// A row as stored here.
    pub(super) async fn stored(&self, row: Row) -> Option<Progress> {
        given::progress(&self.handles[0], self.key(row)).await
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
        for tenant in entries.keys() {
            self.settle(*tenant).await;
        }
        let tenants = entries.iter().map(entry).collect();
        let sent = AppendBatch { tenants, now: Some(Timestamp::from_micros(now)), identity: None };
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
            "dropped".to_owned()
        } else {
            // As the writer does: what is already recorded is not appended again.
            let fresh: Vec<_> =
                ids.iter().filter(|id| known.iter().all(|known| known.id != id.id)).cloned().collect();
            show(lock.append(events, &fresh, Some(Timestamp::from_micros(*now))).await)
        };
        format!("{head} {versions:?} {known:?} {ended}")
    }

    /// Waits until nothing that was given up or refused still holds the head: a server may answer before it has let go.
    async fn settle(&self, tenant: usize) {
        let patience = Patience::new();
        let impossible = u64::MAX >> 2;
        loop {
            let probe = vec![given::event("settle", 1)];
            match given::outcome(&self.handles[0], &self.tenants[tenant], impossible, probe).await {
                Ok(AppendOutcome::Stale { .. }) => return,
                Ok(AppendOutcome::Busy) => patience.pause("the head to be let go").await,
                Err(error) if error.kind() == ErrorKind::Unavailable => patience.pause("the head").await,
                other => panic!("an append under an impossible head was answered {other:?}"),
            }
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

fn show<T: Debug>(answer: Result<T, Error>) -> String {
    match answer {
        Ok(answer) => format!("{answer:?}"),
        Err(error) => format!("{:?}", error.kind()),
    }
}
