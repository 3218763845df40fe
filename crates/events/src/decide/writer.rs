//! The writer of one database: which tenant flies when, and in which kind of flight.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use bellwether_storage::{
    AppendBatch, Error, ErrorKind, EventId, Place, Sequence, ServerIdentity, StreamId, StreamState,
    TenantAppend, TenantId, TenantNo, Timestamp,
};

use super::batch_flight::{BatchFlight, appends};
use super::bounds::back_off;
use super::fold::{Fold, Folded};
use super::lane::{Known, Lane, Standing, Unresolved};
use super::lock_flight::LockFlight;
use super::versions::Versions;
use super::{Append, Bounds, FlightNo, News, Order, Reply, Seen, Task};

/// Longest pause after failures in a row.
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// Longest pause before a head is waited for again.
const LOCK_PAUSE_MAX: Duration = Duration::from_millis(250);

/// The deciding writer of one database.
#[derive(Debug)]
pub(crate) struct Writer<T> {
    pub(super) bounds: Bounds,
    pub(super) lanes: HashMap<TenantNo, Lane<T>>,
    pub(super) versions: Versions,
    lines: Lines,
    pub(super) flights: BTreeMap<FlightNo, Flight<T>>,
    flights_so_far: u64,
    pub(super) flying: Flying,
    pub(super) identity: Option<ServerIdentity>,
    /// Rises with each new identity.
    pub(super) life: u64,
    eras_so_far: u64,
    pub(super) probe: Probe,
    /// Failures of the database in a row.
    pub(super) trouble: u32,
    news: Vec<News<T>>,
    queued: usize,
}

/// Tenants that wait, by what they wait for.
#[derive(Debug, Default)]
struct Lines {
    ready: VecDeque<TenantNo>,
    /// Groups that must fly apart from others while a bad row is searched for.
    redo: VecDeque<Vec<TenantNo>>,
    large: VecDeque<TenantNo>,
    locked: VecDeque<TenantNo>,
    slow: VecDeque<TenantNo>,
    read: VecDeque<TenantNo>,
}

/// Flights under way, by kind.
#[derive(Debug, Default)]
pub(super) struct Flying {
    pub(super) batches: usize,
    pub(super) larges: usize,
    pub(super) locks: usize,
    pub(super) slows: usize,
    pub(super) reads: usize,
}

/// A flight under way.
#[derive(Debug)]
pub(super) enum Flight<T> {
    Batch(BatchFlight<T>),
    Lock(LockFlight<T>),
    Read { tenant: TenantNo, streams: Vec<StreamId> },
    Find { tenant: TenantNo },
    Probe,
}

/// Whether the database must be asked who it is before anything else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Probe {
    NotNeeded,
    Wanted,
    Flying,
}

impl<T> Writer<T> {
    pub(crate) fn new(bounds: Bounds) -> Self {
        Self {
            versions: Versions::new(bounds.versions),
            bounds,
            lanes: HashMap::new(),
            lines: Lines::default(),
            flights: BTreeMap::new(),
            flights_so_far: 0,
            flying: Flying::default(),
            identity: None,
            life: 0,
            eras_so_far: 0,
            probe: Probe::NotNeeded,
            trouble: 0,
            news: Vec::new(),
            queued: 0,
        }
    }

    /// Takes an append in, behind all earlier ones of its tenant. Orders may follow.
    pub(crate) fn queue(&mut self, tenant: TenantNo, id: &TenantId, place: Place, mut append: Append<T>) {
        let lane = self.lanes.entry(tenant).or_insert_with(|| Lane::new(id.clone(), place));
        append.reads_before = lane.reads;
        let seen = append.seen.clone();
        lane.queue.push_back(append);
        self.queued += 1;
        if let Some(seen) = seen {
            self.take_seen(tenant, &seen);
        }
        self.enlist(tenant);
    }

    /// A flight ended without a report.
    pub(crate) fn abandoned(&mut self, flight: FlightNo) {
        let lost = || Error::unknown("the task that carried it out has ended");
        let idle = || Error::unavailable("the task that carried it out has ended");
        match self.flights.get(&flight) {
            None => {}
            Some(Flight::Batch(_)) => self.appended(flight, Err(lost())),
            Some(Flight::Lock(lock)) if lock.is_writing() => self.written(flight, Err(lost())),
            Some(Flight::Lock(lock)) if lock.is_looking() => drop(self.looked(flight, Err(idle()))),
            Some(Flight::Lock(_)) => drop(self.locked(flight, Err(idle()))),
            Some(Flight::Read { .. }) => self.read(flight, Err(idle())),
            Some(Flight::Find { .. }) => self.found(flight, Err(idle())),
            Some(Flight::Probe) => self.probed(flight, Err(idle())),
        }
    }

    /// Nothing is queued and nothing flies.
    pub(crate) fn is_idle(&self) -> bool {
        self.queued == 0 && self.flights.is_empty()
    }

    /// What is to be said since the last call, in order. Heads come before the replies that follow from them.
    pub(crate) fn news(&mut self) -> Vec<News<T>> {
        std::mem::take(&mut self.news)
    }

    /// The next thing to do; `None` when nothing can be done before an outcome or another append comes.
    pub(crate) fn order(&mut self) -> Option<Order> {
        match self.probe {
            Probe::Flying => return None,
            Probe::Wanted => {
                self.probe = Probe::Flying;
                let delay = back_off(self.trouble, PAUSE_MAX);
                return Some(self.fly(delay, Flight::Probe, Task::Probe));
            }
            Probe::NotNeeded => {}
        }
        self.order_batch()
            .or_else(|| self.order_large())
            .or_else(|| self.order_read())
            .or_else(|| self.order_lock(false))
            .or_else(|| self.order_lock(true))
    }

    fn order_batch(&mut self) -> Option<Order> {
        while self.flying.batches < self.bounds.batches {
            let mut folds = Vec::new();
            if let Some(group) = self.lines.redo.pop_front() {
                folds.extend(
                    group.into_iter().filter_map(|tenant| self.fold(tenant, self.bounds.tenant_bytes)),
                );
            } else {
                let mut bytes = 0;
                while let Some(tenant) = self.lines.ready.front().copied() {
                    let first = self
                        .lanes
                        .get(&tenant)
                        .and_then(|lane| lane.queue.front())
                        .map_or(0, |append| append.bytes);
                    if !folds.is_empty() && bytes + first > self.bounds.batch_bytes {
                        break;
                    }
                    self.lines.ready.pop_front();
                    let room = (self.bounds.batch_bytes - bytes.min(self.bounds.batch_bytes))
                        .min(self.bounds.tenant_bytes);
                    if let Some(entry) = self.fold(tenant, room) {
                        bytes += entry.1.bytes;
                        folds.push(entry);
                    }
                }
                if folds.is_empty() {
                    return None;
                }
            }
            if !folds.is_empty() {
                self.flying.batches += 1;
                return Some(self.fly_batch(folds, false));
            }
        }
        None
    }

    fn order_large(&mut self) -> Option<Order> {
        while self.flying.larges < self.bounds.larges {
            let tenant = self.lines.large.pop_front()?;
            if let Some(entry) = self.fold(tenant, usize::MAX) {
                self.flying.larges += 1;
                return Some(self.fly_batch(vec![entry], true));
            }
        }
        None
    }

    fn fly_batch(&mut self, mut folds: Vec<(TenantNo, Fold<T>)>, large: bool) -> Order {
        folds.sort_by_key(|(tenant, _)| *tenant);
        let mut batch = AppendBatch { tenants: Vec::with_capacity(folds.len()), now: None };
        for (tenant, fold) in &mut folds {
            let place = self.lanes.get(tenant).map_or(Place::default(), |lane| lane.place);
            let events = std::mem::take(&mut fold.events);
            batch.tenants.push(TenantAppend {
                tenant: *tenant,
                expected_head: fold.expected_head,
                place,
                events,
            });
        }
        let batch = Arc::new(batch);
        let flight = BatchFlight { folds, batch: Arc::clone(&batch), life: self.life, large };
        self.fly(Duration::ZERO, Flight::Batch(flight), Task::Append(batch))
    }

    fn order_read(&mut self) -> Option<Order> {
        while self.flying.reads < self.bounds.reads {
            let tenant = self.lines.read.pop_front()?;
            let Some(lane) = self.lanes.get_mut(&tenant) else { continue };
            lane.standing = Standing::Flying;
            if let Some(unresolved) = &lane.unresolved {
                let (after, delay) = (unresolved.expected, back_off(unresolved.tries, PAUSE_MAX));
                self.flying.reads += 1;
                return Some(self.fly(delay, Flight::Find { tenant }, Task::Find { tenant, after }));
            }
            lane.reads += 1;
            lane.reads_in_vain += 1;
            lane.verify = false;
            let streams = self.streams_to_read(tenant);
            self.flying.reads += 1;
            let task = Task::Read { tenant, streams: streams.clone() };
            return Some(self.fly(Duration::ZERO, Flight::Read { tenant, streams }, task));
        }
        None
    }

    /// All streams of the first append, known or not (a read may be there to verify them), and unknown ones of the next.
    fn streams_to_read(&mut self, tenant: TenantNo) -> Vec<StreamId> {
        let mut streams: Vec<StreamId> = Vec::new();
        let Some(lane) = self.lanes.get(&tenant) else { return streams };
        let era = lane.known.filter(|known| known.life == self.life).map(|known| known.era);
        for (index, append) in lane.queue.iter().enumerate() {
            if append.parts.len() > self.bounds.cached_streams
                || (index > 0 && streams.len() >= self.bounds.read_streams)
            {
                break;
            }
            for part in &append.parts {
                let cached = era.and_then(|era| self.versions.get(tenant, era, &part.stream));
                if index == 0 || cached.is_none() {
                    streams.push(part.stream.clone());
                }
            }
        }
        streams.sort();
        streams.dedup();
        streams
    }

    fn order_lock(&mut self, slow: bool) -> Option<Order> {
        let (flying, most) = match slow {
            true => (self.flying.slows, self.bounds.slows),
            false => (self.flying.locks, self.bounds.locks),
        };
        if flying >= most {
            return None;
        }
        let line = if slow { &mut self.lines.slow } else { &mut self.lines.locked };
        let tenant = line.pop_front()?;
        let lane = self.lanes.get_mut(&tenant)?;
        lane.standing = Standing::Flying;
        lane.fresh = false;
        let (wait, delay) = match slow {
            true => (self.bounds.slow_wait, back_off(lane.waits, LOCK_PAUSE_MAX)),
            false => (self.bounds.lock_wait, Duration::ZERO),
        };
        match slow {
            true => self.flying.slows += 1,
            false => self.flying.locks += 1,
        }
        Some(self.fly(delay, Flight::Lock(LockFlight::new(tenant, slow)), Task::Lock { tenant, wait }))
    }

    fn fly(&mut self, delay: Duration, flight: Flight<T>, task: Task) -> Order {
        self.flights_so_far += 1;
        let number = FlightNo(self.flights_so_far);
        self.flights.insert(number, flight);
        Order { flight: number, delay, task }
    }

    /// Decides on as much of a tenant's queue as fits, on cached versions. `None` when nothing can fly; the tenant then stands
    /// where it belongs.
    fn fold(&mut self, tenant: TenantNo, bytes_max: usize) -> Option<(TenantNo, Fold<T>)> {
        let (life, bounds) = (self.life, self.bounds);
        let lane = self.lanes.get_mut(&tenant)?;
        lane.standing = Standing::Idle;
        let Some(known) = lane.known.filter(|known| known.life == life) else {
            self.enlist(tenant);
            return None;
        };
        let mut fold = Fold::new(known.head);
        let mut taken = 0;
        while let Some(front) = lane.queue.front() {
            let fits = fold.folded.is_empty() || taken + front.bytes <= bytes_max;
            let alone = front.bytes > bounds.tenant_bytes;
            let cached = front.key.is_none() && !front.doubted && front.parts.len() <= bounds.cached_streams;
            let few = fold.folded.len() < lane.fold_max.unwrap_or(bounds.fold);
            if !cached || !fits || !few || (alone && (bytes_max < usize::MAX || !fold.folded.is_empty())) {
                break;
            }
            let Some(append) = lane.queue.pop_front() else { break };
            taken += append.bytes;
            let known_state = |stream: &StreamId, append: &Append<T>| {
                self.versions
                    .get(tenant, known.era, stream)
                    .or_else(|| known.state_of(stream, append, self.identity.as_ref()))
            };
            if let Some(append) = fold.push(append, &[], known_state) {
                lane.queue.push_front(append);
                break;
            }
        }
        if fold.events.is_empty() {
            self.settle_without_flight(tenant, fold.folded);
            return None;
        }
        lane.standing = Standing::Flying;
        lane.fresh = false;
        Some((tenant, fold))
    }

    /// Verdicts without anything to append: what a read later than the append has shown is told, the rest needs one.
    fn settle_without_flight(&mut self, tenant: TenantNo, folded: Vec<Folded<T>>) {
        let Some(lane) = self.lanes.get_mut(&tenant) else { return };
        let mut confirmed = Vec::new();
        let mut open = Vec::new();
        for one in folded {
            match open.is_empty() && lane.fresh && one.append.reads_before < lane.reads {
                true => confirmed.push(one),
                false => open.push(one.append),
            }
        }
        lane.verify = !open.is_empty();
        lane.put_back(open.into_iter());
        if !confirmed.is_empty() {
            lane.reads_in_vain = 0;
        }
        self.tell(confirmed, Timestamp::default());
        self.enlist(tenant);
    }

    /// Puts a tenant that stands nowhere into the line it belongs to.
    pub(super) fn enlist(&mut self, tenant: TenantNo) {
        let (life, bounds) = (self.life, self.bounds);
        let Some(lane) = self.lanes.get_mut(&tenant) else { return };
        if lane.standing != Standing::Idle {
            return;
        }
        let line = if let Some(unresolved) = &lane.unresolved {
            match (unresolved.find, lane.slow) {
                (true, _) => &mut self.lines.read,
                (false, true) => &mut self.lines.slow,
                (false, false) => &mut self.lines.locked,
            }
        } else {
            let Some(front) = lane.queue.front() else { return };
            let large = front.bytes > bounds.tenant_bytes;
            if lane.known.is_none() && !large {
                self.eras_so_far += 1;
                lane.known = Some(Known::guess(self.eras_so_far, life));
            }
            let known = lane.known.filter(|known| known.life == life);
            let decidable = known.is_some_and(|known| {
                front.parts.iter().all(|part| {
                    known.state_of(&part.stream, front, self.identity.as_ref()).is_some()
                        || self.versions.get(tenant, known.era, &part.stream).is_some()
                })
            });
            let many = front.parts.len() > bounds.cached_streams;
            if lane.slow {
                &mut self.lines.slow
            } else if front.key.is_some()
                || front.doubted
                || many
                || lane.stales >= bounds.stales
                || lane.reads_in_vain >= 2
            {
                &mut self.lines.locked
            } else if !decidable || lane.verify {
                &mut self.lines.read
            } else if large {
                &mut self.lines.large
            } else {
                &mut self.lines.ready
            }
        };
        line.push_back(tenant);
        lane.standing = Standing::Waiting;
    }

    /// Flies a group of tenants apart from all others.
    pub(super) fn redo(&mut self, group: Vec<TenantNo>) {
        for tenant in &group {
            if let Some(lane) = self.lanes.get_mut(tenant) {
                lane.standing = Standing::Waiting;
            }
        }
        self.lines.redo.push_back(group);
    }

    /// Notes who answered. Everything known from another life is void.
    pub(super) fn observe(&mut self, identity: &ServerIdentity) {
        self.trouble = 0;
        if self.identity.as_ref() != Some(identity) {
            // The first answer of all confirms the guesses made before it.
            self.life += u64::from(self.identity.is_some());
            self.identity = Some(identity.clone());
        }
    }

    /// Notes a tenant's head as somebody else left it, and where its events lie.
    pub(super) fn learn(&mut self, tenant: TenantNo, head: Sequence, place: Place) {
        let life = self.life;
        let Some(lane) = self.lanes.get_mut(&tenant) else { return };
        lane.place = place;
        match &mut lane.known {
            Some(known) if known.life == life && known.head == head => known.guess = false,
            known => {
                self.eras_so_far += 1;
                *known = Some(Known {
                    head,
                    complete: head == Sequence::ZERO,
                    guess: false,
                    since: head,
                    era: self.eras_so_far,
                    life,
                });
            }
        }
    }

    /// Forgets a tenant's head and versions: the next decision reads them.
    pub(super) fn forget(&mut self, tenant: TenantNo) {
        self.eras_so_far += 1;
        let era = self.eras_so_far;
        if let Some(lane) = self.lanes.get_mut(&tenant) {
            // A life that never was, so that the tenant is not taken for a new one.
            lane.known = Some(Known { life: u64::MAX, era, ..Known::guess(era, u64::MAX) });
        }
    }

    /// Remembers versions at the head a tenant is known to have.
    pub(super) fn remember(
        &mut self,
        tenant: TenantNo,
        states: impl IntoIterator<Item = (StreamId, StreamState)>,
    ) {
        let Some(era) = self.lanes.get(&tenant).and_then(|lane| lane.known).map(|known| known.era) else {
            return;
        };
        for (stream, state) in states {
            let Some((loser, of)) = self.versions.put(tenant, era, stream, state) else { continue };
            if let Some(known) = self.lanes.get_mut(&loser).and_then(|lane| lane.known.as_mut())
                && known.era == of
            {
                known.complete = false;
                known.since = known.head;
            }
        }
    }

    /// Uses what a caller's own read has shown, where it is news.
    fn take_seen(&mut self, tenant: TenantNo, seen: &Seen) {
        let usable = |lane: &Lane<T>| lane.standing != Standing::Flying && lane.unresolved.is_none();
        if !self.lanes.get(&tenant).is_some_and(usable) {
            return;
        }
        match &self.identity {
            Some(identity) if *identity != seen.identity => return,
            Some(_) => {}
            None => self.observe(&seen.identity),
        }
        let known =
            self.lanes.get(&tenant).and_then(|lane| lane.known).filter(|known| known.life == self.life);
        if known.is_none_or(|known| known.guess || known.head <= seen.head) {
            self.learn(tenant, seen.head, seen.place);
            self.remember(tenant, [(seen.stream.clone(), seen.state)]);
        }
    }

    /// Replies to callers whose decisions are confirmed.
    pub(super) fn tell(&mut self, folded: impl IntoIterator<Item = Folded<T>>, at: Timestamp) {
        for Folded { append, verdict } in folded {
            let reply = verdict.reply(&append, at);
            self.reply(append.token, reply);
        }
    }

    pub(super) fn reply(&mut self, token: T, reply: Reply) {
        self.queued -= 1;
        self.news.push(News::Reply(token, reply));
    }

    /// A flight went in: what it left behind is known, and its callers are told.
    pub(super) fn went_in(
        &mut self,
        tenant: TenantNo,
        fold: Fold<T>,
        head: Sequence,
        at: Timestamp,
        same_life: bool,
    ) {
        let Some(lane) = self.lanes.get_mut(&tenant) else { return };
        lane.standing = Standing::Idle;
        lane.went_in();
        let id = lane.id.clone();
        let still = lane.known.as_mut().filter(|known| same_life && known.head == fold.expected_head);
        match still {
            Some(known) => {
                known.head = head;
                known.guess = false;
                self.remember(tenant, fold.streams);
            }
            None => self.forget(tenant),
        }
        self.head_moved(tenant, id, head);
        self.tell(fold.folded, at);
        self.enlist(tenant);
    }

    pub(super) fn head_moved(&mut self, tenant: TenantNo, id: TenantId, head: Sequence) {
        self.news.push(News::Head { tenant, id, head });
    }

    /// Puts a flight that did nothing back. Each of its appends that has failed too often is told `error`.
    pub(super) fn strike(&mut self, tenant: TenantNo, appends: Vec<Append<T>>, error: &Error) {
        let mut left = Vec::new();
        for mut append in appends {
            append.strikes += 1;
            match append.strikes > self.bounds.strikes {
                true => self.reply(append.token, Reply::Failed(given_up(error))),
                false => left.push(append),
            }
        }
        if let Some(lane) = self.lanes.get_mut(&tenant) {
            lane.put_back(left.into_iter());
            lane.standing = Standing::Idle;
        }
        self.enlist(tenant);
    }

    /// Keeps a flight whose answer was lost until its outcome is known.
    pub(super) fn unresolved(
        &mut self,
        tenant: TenantNo,
        fold: Fold<T>,
        first: Option<EventId>,
        error: &Error,
    ) {
        let Some(first) = first else {
            return self.strike(tenant, appends(fold), error);
        };
        self.forget(tenant);
        let Some(lane) = self.lanes.get_mut(&tenant) else { return };
        lane.standing = Standing::Idle;
        lane.unresolved = Some(Unresolved {
            expected: fold.expected_head,
            first,
            folded: fold.folded,
            find: false,
            tries: 0,
        });
        self.enlist(tenant);
    }

    /// A resolution failed; after too many the callers learn that the outcome is not known.
    pub(super) fn strike_unresolved(&mut self, tenant: TenantNo, error: &Error) {
        let strikes = self.bounds.strikes;
        let Some(lane) = self.lanes.get_mut(&tenant) else { return };
        lane.standing = Standing::Idle;
        let too_often = lane.unresolved.as_mut().is_some_and(|unresolved| {
            unresolved.tries += 1;
            unresolved.tries > strikes
        });
        if too_often {
            self.give_up_unresolved(tenant, error);
        }
        self.enlist(tenant);
    }

    /// Tells callers that the outcome is not known.
    pub(super) fn give_up_unresolved(&mut self, tenant: TenantNo, error: &Error) {
        let unresolved = self.lanes.get_mut(&tenant).and_then(|lane| lane.unresolved.take());
        for one in unresolved.into_iter().flat_map(|unresolved| unresolved.folded) {
            self.reply(one.append.token, Reply::Failed(not_known(error)));
        }
    }

    /// The tenant does not live here: everybody is told, so that they ask the directory again.
    pub(super) fn moved(&mut self, tenant: TenantNo, appends: Vec<Append<T>>) {
        self.forget(tenant);
        let Some(lane) = self.lanes.get_mut(&tenant) else { return };
        lane.standing = Standing::Idle;
        lane.went_in();
        lane.fold_max = None;
        let queued: Vec<_> = lane.queue.drain(..).collect();
        for append in appends.into_iter().chain(queued) {
            self.reply(append.token, Reply::Moved { parts: append.parts, events: append.events });
        }
    }

    /// The database does not answer as it should: ask who it is, after a pause, before anything else.
    pub(super) fn distrust(&mut self) {
        self.trouble = self.trouble.saturating_add(1);
        if self.probe == Probe::NotNeeded {
            self.probe = Probe::Wanted;
        }
    }

    /// Strikes every append that waits; those with too many are told `error`.
    pub(super) fn strike_all(&mut self, error: &Error) {
        let mut tenants: Vec<_> = self.lanes.keys().copied().collect();
        tenants.sort();
        for tenant in tenants {
            let Some(lane) = self.lanes.get_mut(&tenant) else { continue };
            if lane.standing != Standing::Waiting {
                continue;
            }
            if lane.unresolved.as_mut().is_some_and(|unresolved| {
                unresolved.tries += 1;
                unresolved.tries > self.bounds.strikes
            }) {
                self.give_up_unresolved(tenant, error);
            }
            let Some(lane) = self.lanes.get_mut(&tenant) else { continue };
            let mut told = Vec::new();
            for mut append in std::mem::take(&mut lane.queue) {
                append.strikes += 1;
                match append.strikes > self.bounds.strikes {
                    true => told.push(append.token),
                    false => lane.queue.push_back(append),
                }
            }
            for token in told {
                self.reply(token, Reply::Failed(given_up(error)));
            }
        }
    }
}

impl Known {
    /// A tenant nobody has asked about, taken for a new one.
    pub(super) fn guess(era: u64, life: u64) -> Self {
        Self { head: Sequence::ZERO, complete: true, guess: true, since: Sequence::ZERO, era, life }
    }

    /// State of a stream that is not cached, where it follows from something else.
    fn state_of<T>(
        &self,
        stream: &StreamId,
        append: &Append<T>,
        identity: Option<&ServerIdentity>,
    ) -> Option<StreamState> {
        if self.complete {
            return Some(StreamState::default());
        }
        // Since that read only this writer has written, and what it wrote is cached.
        let seen = append.seen.as_ref()?;
        let valid = seen.stream == *stream
            && Some(&seen.identity) == identity
            && self.since <= seen.head
            && seen.head <= self.head;
        valid.then_some(seen.state)
    }
}

/// The same error for one of several callers.
pub(super) fn copy(error: &Error) -> Error {
    Error::new(error.kind(), error.to_string())
}

fn given_up(error: &Error) -> Error {
    let kind = match error.kind() {
        ErrorKind::Conflict => ErrorKind::Conflict,
        _ => ErrorKind::Unavailable,
    };
    Error::new(kind, format!("nothing was appended, after many tries: {error}"))
        .fix("try again later; the database must be reachable and its heads free")
}

fn not_known(error: &Error) -> Error {
    Error::unknown(format!("it is not known whether the events were appended: {error}"))
        .fix("read the stream, or append again with the same append id, once the database can be reached")
}
