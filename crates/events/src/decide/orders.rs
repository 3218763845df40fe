//! What to do next: which tenants fly, in which kind of flight, with how much of their queues.

use std::sync::Arc;
use std::time::Duration;

use bellwether_storage::{AppendBatch, Place, StreamId, TenantAppend, TenantNo, Timestamp};

use super::batch_flight::BatchFlight;
use super::bounds::back_off;
use super::fold::{Fold, Folded};
use super::lane::Standing;
use super::lock_flight::LockFlight;
use super::writer::{Flight, Probe};
use super::{Append, FlightNo, Order, Task, Writer};

/// Longest pause after failures in a row.
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// Longest pause before a head is waited for again.
const LOCK_PAUSE_MAX: Duration = Duration::from_millis(250);

impl<T> Writer<T> {
    /// The next thing to do; `None` when nothing can be done before an outcome or another append comes.
    ///
    /// A batch that would be small beside the one in flight is [held back](Self::holds_back).
    pub(crate) fn order(&mut self) -> Option<Order> {
        self.next_order(true)
    }

    /// As [`order`](Self::order), but no batch is held back.
    pub(crate) fn order_now(&mut self) -> Option<Order> {
        self.next_order(false)
    }

    /// A batch could fly, but is less than half as large as the one in flight. The callers of the one that has just landed are about to come
    /// back; without waiting for them the two lanes end up with one full and one nearly empty batch. Nothing obliges them to
    /// come, so whoever carries orders out waits for a moment only.
    pub(crate) fn holds_back(&self) -> bool {
        let waiting = self.lines.ready.len();
        self.flying.batches > 0
            && self.flying.batches < self.bounds.batches
            && waiting > 0
            && waiting * 2 < self.flying.batch_tenants
    }

    fn next_order(&mut self, patient: bool) -> Option<Order> {
        match self.probe {
            Probe::Flying => return None,
            Probe::Wanted => {
                self.probe = Probe::Flying;
                let delay = back_off(self.trouble, PAUSE_MAX);
                return Some(self.fly(delay, Flight::Probe, Task::Probe));
            }
            Probe::NotNeeded => {}
        }
        self.order_batch(patient)
            .or_else(|| self.order_large())
            .or_else(|| self.order_read())
            .or_else(|| self.order_lock(false))
            .or_else(|| self.order_lock(true))
    }

    fn order_batch(&mut self, patient: bool) -> Option<Order> {
        while self.flying.batches < self.bounds.batches {
            let mut folds = Vec::new();
            if let Some(group) = self.lines.redo.pop_front() {
                folds.extend(
                    group.into_iter().filter_map(|tenant| self.fold(tenant, self.bounds.tenant_bytes)),
                );
            } else if patient && self.holds_back() {
                return None;
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
                self.flying.batch_tenants += folds.len();
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
        let mut batch = AppendBatch {
            tenants: Vec::with_capacity(folds.len()),
            now: None,
            identity: self.identity.clone(),
        };
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
}
