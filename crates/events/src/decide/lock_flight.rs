//! The two-step path and the slow lane: lock a head, look, decide, write.

use std::collections::BTreeMap;

use bellwether_storage::{
    AppendId, Error, ErrorKind, HeadState, Result, Sequence, StreamId, StreamState, StreamVersions, TenantNo,
    Timestamp,
};

use super::batch_flight::appends;
use super::fold::Fold;
use super::lane::{Standing, Unresolved};
use super::settle::copy;
use super::writer::Flight;
use super::{Append, FlightNo, Look, Reply, Write, Writer};

/// A locked head under way.
#[derive(Debug)]
pub(super) struct LockFlight<T> {
    tenant: TenantNo,
    slow: bool,
    stage: Stage<T>,
}

#[derive(Debug)]
enum Stage<T> {
    Locking,
    Looking {
        head: Sequence,
        appends: Vec<Append<T>>,
        streams: Vec<StreamId>,
        /// Instead of `appends`: a lost flight to be done again.
        lost: Option<Unresolved<T>>,
    },
    Writing {
        fold: Fold<T>,
        /// What is written was lost before, and failed this often.
        lost_tries: Option<u32>,
        first: Option<bellwether_storage::EventId>,
        head: Sequence,
        life: u64,
    },
}

impl<T> LockFlight<T> {
    pub(super) fn new(tenant: TenantNo, slow: bool) -> Self {
        Self { tenant, slow, stage: Stage::Locking }
    }

    pub(super) fn is_looking(&self) -> bool {
        matches!(self.stage, Stage::Looking { .. })
    }

    pub(super) fn is_writing(&self) -> bool {
        matches!(self.stage, Stage::Writing { .. })
    }
}

impl<T> Writer<T> {
    /// Takes in whether the head is locked. Says what to read under the lock; `None`: let it go.
    pub(crate) fn locked(&mut self, flight: FlightNo, result: Result<HeadState>) -> Option<Look> {
        let (tenant, slow) = match self.flights.get(&flight) {
            Some(Flight::Lock(lock)) => (lock.tenant, lock.slow),
            _ => return None,
        };
        let state = match result {
            Ok(state) => state,
            Err(error) => {
                self.land_lock(flight);
                self.not_locked(tenant, slow, &error);
                return None;
            }
        };
        self.observe(&state.identity);
        let life = self.life;
        let lane = self.lanes.get_mut(&tenant)?;
        if let Some(unresolved) = &mut lane.unresolved
            && (!state.open || state.head != unresolved.expected)
        {
            // Whoever moved the head has fenced the original, or was it.
            unresolved.find = true;
            lane.standing = Standing::Idle;
            self.land_lock(flight);
            self.enlist(tenant);
            return None;
        }
        if !state.open {
            self.land_lock(flight);
            self.moved(tenant, Vec::new());
            return None;
        }
        self.learn(tenant, state.head, state.place);
        // The head is where a lost flight expected it: the flight has not happened, and once it is in under this lock, it cannot
        // happen any more. Until then it must not be mixed with others: it may still arrive.
        let lost = self.lanes.get_mut(&tenant).and_then(|lane| lane.unresolved.take());
        let appends = if lost.is_some() { Vec::new() } else { self.take_prefix(tenant) };
        let again = lost.iter().flat_map(|lost| lost.folded.iter().map(|one| &one.append));
        let all: Vec<&Append<T>> = again.chain(&appends).collect();
        let mut streams: Vec<StreamId> = Vec::new();
        if let Some(known) =
            self.lanes.get(&tenant).and_then(|lane| lane.known).filter(|known| known.life == life)
        {
            for part in all.iter().flat_map(|append| &append.parts).filter(|_| !known.complete) {
                if self.versions.get(tenant, known.era, &part.stream).is_none() {
                    streams.push(part.stream.clone());
                }
            }
        }
        streams.sort();
        streams.dedup();
        let look = Look {
            streams: streams.clone(),
            ids: all.iter().filter_map(|append| append.key.map(|key| key.id)).collect(),
        };
        if let Some(Flight::Lock(lock)) = self.flights.get_mut(&flight) {
            lock.stage = Stage::Looking { head: state.head, appends, streams, lost };
        }
        Some(look)
    }

    /// As much of a queue as one flight takes; at least one append.
    fn take_prefix(&mut self, tenant: TenantNo) -> Vec<Append<T>> {
        let bounds = self.bounds;
        let Some(lane) = self.lanes.get_mut(&tenant) else { return Vec::new() };
        let most = lane.fold_max.unwrap_or(bounds.fold);
        let (mut appends, mut bytes) = (Vec::new(), 0);
        while let Some(front) = lane.queue.front() {
            let fits = appends.len() < most && bytes + front.bytes <= bounds.batch_bytes;
            if !appends.is_empty() && !fits {
                break;
            }
            bytes += front.bytes;
            appends.extend(lane.queue.pop_front());
        }
        appends
    }

    fn not_locked(&mut self, tenant: TenantNo, slow: bool, error: &Error) {
        let waits_max = self.bounds.slow_waits;
        let Some(lane) = self.lanes.get_mut(&tenant) else { return };
        lane.standing = Standing::Idle;
        match error.kind() {
            ErrorKind::Unavailable | ErrorKind::Conflict | ErrorKind::Unknown => {
                // Held by somebody, or the database is away: either way nobody else waits for it here.
                lane.slow = true;
                lane.waits += u32::from(slow);
                if lane.waits < waits_max {
                    return self.enlist(tenant);
                }
                lane.waits = 0;
                lane.slow = false;
                let queued: Vec<_> = lane.queue.drain(..).collect();
                for append in queued {
                    let waited =
                        Error::unavailable(format!("the head of the tenant was not free in time: {error}"))
                            .fix("end the transaction that holds it, then append again");
                    self.reply(append.token, Reply::Failed(waited));
                }
                self.give_up_unresolved(tenant, error);
            }
            ErrorKind::Rejected if lane.unresolved.is_none() => self.moved(tenant, Vec::new()),
            _ if lane.unresolved.is_some() => self.strike_unresolved(tenant, error),
            _ => {
                let queued: Vec<_> = lane.queue.drain(..).collect();
                for append in queued {
                    self.reply(append.token, Reply::Failed(copy(error)));
                }
            }
        }
    }

    /// Takes in what was read under the lock. Says what to append; `None`: let the lock go.
    pub(crate) fn looked(
        &mut self,
        flight: FlightNo,
        result: Result<(Option<StreamVersions>, Vec<AppendId>)>,
    ) -> Option<Write> {
        let Some(Flight::Lock(lock)) = self.flights.get_mut(&flight) else { return None };
        let tenant = lock.tenant;
        let stage = std::mem::replace(&mut lock.stage, Stage::Locking);
        let Stage::Looking { head, mut appends, streams, lost } = stage else { return None };
        let (versions, recorded) = match result {
            Ok(read) => read,
            Err(error) => {
                self.land_lock(flight);
                self.distrust();
                match lost {
                    Some(lost) => self.still_lost(tenant, lost, &error),
                    None => self.strike(tenant, appends, &error),
                }
                return None;
            }
        };
        let lost_tries = lost.as_ref().map(|lost| lost.tries);
        appends.extend(lost.into_iter().flat_map(|lost| lost.folded).map(|one| one.append));
        let read = versions.map(|versions| versions.streams).unwrap_or_default();
        let read: BTreeMap<StreamId, StreamState> = streams.into_iter().zip(read).collect();
        let known = self.lanes.get(&tenant).and_then(|lane| lane.known);
        let mut fold = Fold::new(head);
        let mut left = Vec::new();
        for append in appends {
            let state = |stream: &StreamId, _: &Append<T>| {
                let known = known?;
                let cached = self.versions.get(tenant, known.era, stream);
                read.get(stream).copied().or(cached).or(known.complete.then(StreamState::default))
            };
            match left.is_empty() {
                true => left.extend(fold.push(append, &recorded, state)),
                false => left.push(append),
            }
        }
        self.remember(tenant, read);
        if let Some(lane) = self.lanes.get_mut(&tenant) {
            lane.put_back(left.into_iter());
        }
        if fold.events.is_empty() {
            self.land_lock(flight);
            if let Some(lane) = self.lanes.get_mut(&tenant) {
                lane.standing = Standing::Idle;
                lane.went_in();
            }
            self.tell(fold.folded, Timestamp::default());
            self.enlist(tenant);
            return None;
        }
        let write = Write { events: std::mem::take(&mut fold.events), ids: std::mem::take(&mut fold.ids) };
        let stage = Stage::Writing {
            fold,
            lost_tries,
            first: write.events.first().map(|event| event.id),
            head: head.plus(write.events.len() as u64),
            life: self.life,
        };
        if let Some(Flight::Lock(lock)) = self.flights.get_mut(&flight) {
            lock.stage = stage;
        }
        Some(write)
    }

    /// Takes in what became of the append under the lock.
    pub(crate) fn written(&mut self, flight: FlightNo, result: Result<Timestamp>) {
        let Some(lock) = self.land_lock(flight) else { return };
        let tenant = lock.tenant;
        let Stage::Writing { fold, lost_tries, first, head, life } = lock.stage else { return };
        let error = match result {
            Ok(at) => {
                let same_life = life == self.life;
                return self.went_in(tenant, fold, head, at, same_life);
            }
            Err(error) => error,
        };
        match error.kind() {
            ErrorKind::Unknown => {
                self.distrust();
                self.unresolved(tenant, fold, first, &error);
            }
            ErrorKind::Unavailable | ErrorKind::Conflict => {
                self.distrust();
                match (lost_tries, first) {
                    (Some(tries), Some(first)) => {
                        let (expected, folded) = (fold.expected_head, fold.folded);
                        self.still_lost(
                            tenant,
                            Unresolved { expected, first, folded, find: false, tries },
                            &error,
                        );
                    }
                    _ => self.strike(tenant, appends(fold), &error),
                }
            }
            // A lost flight that is refused now was refused then: its rows are the same.
            _ if fold.folded.len() == 1 => {
                if let Some(lane) = self.lanes.get_mut(&tenant) {
                    lane.standing = Standing::Idle;
                }
                for one in fold.folded {
                    self.reply(one.append.token, Reply::Failed(copy(&error)));
                }
                self.enlist(tenant);
            }
            _ => {
                if let Some(lane) = self.lanes.get_mut(&tenant) {
                    lane.fold_max = Some((fold.folded.len() / 2).max(1));
                    lane.put_back(appends(fold).into_iter());
                    lane.standing = Standing::Idle;
                }
                self.enlist(tenant);
            }
        }
    }

    /// A lost flight could not be done again: it may still arrive.
    fn still_lost(&mut self, tenant: TenantNo, lost: Unresolved<T>, error: &Error) {
        self.forget(tenant);
        if let Some(lane) = self.lanes.get_mut(&tenant) {
            lane.unresolved = Some(lost);
        }
        self.strike_unresolved(tenant, error);
    }

    fn land_lock(&mut self, flight: FlightNo) -> Option<LockFlight<T>> {
        let Some(Flight::Lock(lock)) = self.flights.remove(&flight) else { return None };
        match lock.slow {
            true => self.flying.slows -= 1,
            false => self.flying.locks -= 1,
        }
        Some(lock)
    }
}
