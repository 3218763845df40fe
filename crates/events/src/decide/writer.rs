//! The writer of one database: its state, its way in, and the line each tenant belongs to.

use std::collections::{BTreeMap, HashMap, VecDeque};

use bellwether_storage::{Error, Place, ServerIdentity, StreamId, TenantId, TenantNo};

use super::batch_flight::BatchFlight;
use super::facts::Known;
use super::lane::{Lane, Standing};
use super::lock_flight::LockFlight;
use super::versions::Versions;
use super::{Append, Bounds, FlightNo, News};

/// The deciding writer of one database.
#[derive(Debug)]
pub(crate) struct Writer<T> {
    pub(super) bounds: Bounds,
    pub(super) lanes: HashMap<TenantNo, Lane<T>>,
    pub(super) versions: Versions,
    pub(super) lines: Lines,
    pub(super) flights: BTreeMap<FlightNo, Flight<T>>,
    pub(super) flights_so_far: u64,
    pub(super) flying: Flying,
    pub(super) identity: Option<ServerIdentity>,
    /// Rises with each new identity.
    pub(super) life: u64,
    pub(super) eras_so_far: u64,
    pub(super) probe: Probe,
    /// Failures of the database in a row.
    pub(super) trouble: u32,
    pub(super) news: Vec<News<T>>,
    pub(super) queued: usize,
}

/// Tenants that wait, by what they wait for.
#[derive(Debug, Default)]
pub(super) struct Lines {
    pub(super) ready: VecDeque<TenantNo>,
    /// Groups that must fly apart from others while a bad row is searched for.
    pub(super) redo: VecDeque<Vec<TenantNo>>,
    pub(super) large: VecDeque<TenantNo>,
    pub(super) locked: VecDeque<TenantNo>,
    pub(super) slow: VecDeque<TenantNo>,
    pub(super) read: VecDeque<TenantNo>,
}

/// Flights under way, by kind.
#[derive(Debug, Default)]
pub(super) struct Flying {
    pub(super) batches: usize,
    /// Tenants in those batches.
    pub(super) batch_tenants: usize,
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

    /// The database does not answer as it should: ask who it is, after a pause, before anything else.
    pub(super) fn distrust(&mut self) {
        self.trouble = self.trouble.saturating_add(1);
        if self.probe == Probe::NotNeeded {
            self.probe = Probe::Wanted;
        }
    }
}
