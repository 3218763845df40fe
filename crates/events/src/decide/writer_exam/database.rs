//! The model of a database: commits per tenant, locks, lost appends that may still arrive, failovers.

use std::collections::BTreeMap;
use std::sync::Arc;

use bellwether_storage::{
    AppendBatch, AppendId, AppendOutcome, AppendReceipt, Error, HeadState, NewEvent, Place, Result, Sequence,
    StreamId, StreamState, StreamVersions, TenantAppend, TenantNo, Timestamp, Version,
};

use super::super::{FlightNo, Found, Look, Task, Write};
use super::{Fate, Ghost, POISON, Stage, World, stream_id};

/// One tenant of the model database.
#[derive(Debug, Default)]
pub(super) struct Log {
    /// Commits, each with its events and append ids.
    pub(super) commits: Vec<(Vec<NewEvent>, Vec<AppendId>)>,
    pub(super) held: bool,
    pub(super) locked: Option<FlightNo>,
    /// Every version each stream has had, with the step.
    pub(super) history: BTreeMap<StreamId, Vec<(u64, Version)>>,
}

impl Log {
    pub(super) fn events(&self) -> impl Iterator<Item = &NewEvent> {
        self.commits.iter().flat_map(|(events, _)| events)
    }

    pub(super) fn head(&self) -> Sequence {
        Sequence::new(self.events().count() as u64)
    }

    pub(super) fn version(&self, stream: &StreamId) -> Version {
        Version::new(self.events().filter(|event| event.stream == *stream).count() as u64)
    }

    /// A commit. The versions must be the next ones: the writer decided on exact facts.
    pub(super) fn commit(&mut self, now: u64, events: &[NewEvent], ids: &[AppendId]) {
        let mut versions: BTreeMap<&StreamId, Version> = BTreeMap::new();
        for event in events {
            let version =
                versions.get(&event.stream).copied().unwrap_or_else(|| self.version(&event.stream)).next();
            assert_eq!(event.version, version, "stream {} is not contiguous", event.stream);
            versions.insert(&event.stream, version);
        }
        for event in events {
            self.history.entry(event.stream.clone()).or_default().push((now, event.version));
        }
        self.commits.push((events.to_vec(), ids.to_vec()));
    }
}

impl World {
    pub(super) fn step_order(&mut self, which: usize, fate: Fate) {
        if self.air.is_empty() {
            return;
        }
        let mut air = self.air.remove(which % self.air.len());
        let flight = air.order.flight;
        let broken = air.life != self.life;
        let unavailable = || Error::unavailable("injected");
        // Once a connection is found broken, or somebody asks anew, the next ones are made to the server that is there.
        if broken {
            self.connected = self.life;
        }
        let fails = broken || fate == Fate::Unavailable;
        match (&air.order.task, std::mem::replace(&mut air.stage, Stage::Begin)) {
            (Task::Append(batch), _) => {
                let strange = air.facts.is_some_and(|facts| facts != self.life);
                let fate = match (broken, strange) {
                    (true, _) => Fate::LostBefore,
                    (false, true) => Fate::Unavailable,
                    (false, false) => fate,
                };
                let result = self.batch(&Arc::clone(batch), fate);
                self.writer.appended(flight, result);
            }
            (Task::Lock { tenant, .. }, Stage::Begin) => {
                let (identity, log) = (self.identity(), self.log(tenant.0 as u8));
                let free = !log.held && log.locked.is_none();
                let state = match free && !fails {
                    true => Ok(HeadState { head: log.head(), place: Place(0), open: true, identity }),
                    false => Err(unavailable()),
                };
                if state.is_ok() {
                    log.locked = Some(flight);
                }
                match self.writer.locked(flight, state) {
                    Some(look) => {
                        air.stage = Stage::Look(look);
                        self.air.push(air);
                    }
                    None => self.unlock(flight),
                }
            }
            (Task::Lock { tenant, .. }, Stage::Look(look)) => {
                let looked = match fails {
                    true => Err(unavailable()),
                    false => Ok(self.look(*tenant, &look)),
                };
                match self.writer.looked(flight, looked) {
                    Some(write) => {
                        air.stage = Stage::Write(write);
                        self.air.push(air);
                    }
                    None => self.unlock(flight),
                }
            }
            (Task::Lock { tenant, .. }, Stage::Write(write)) => {
                let result = self.write(flight, *tenant, write, if broken { Fate::LostBefore } else { fate });
                self.writer.written(flight, result);
            }
            (Task::Read { tenant, streams }, _) => {
                let look = Look { streams: streams.clone(), ids: Vec::new() };
                let versions = match fails {
                    true => Err(unavailable()),
                    false => Ok(self.versions(*tenant, &look.streams)),
                };
                self.writer.read(flight, versions);
            }
            (Task::Find { tenant, after }, _) => {
                let (identity, index) = (self.identity(), after.get() as usize);
                let event = self
                    .log(tenant.0 as u8)
                    .events()
                    .nth(index)
                    .map(|event| (event.id, Timestamp::default()));
                let found = if fails { Err(unavailable()) } else { Ok(Found { event, identity }) };
                self.writer.found(flight, found);
            }
            (Task::Probe, _) => {
                self.connected = self.life;
                let result = if fate == Fate::Unavailable { Err(unavailable()) } else { Ok(self.identity()) };
                self.writer.probed(flight, result);
            }
        }
    }

    fn batch(&mut self, batch: &Arc<AppendBatch>, fate: Fate) -> Result<AppendReceipt> {
        match fate {
            Fate::Unavailable => return Err(Error::unavailable("injected")),
            Fate::Conflict => return Err(Error::conflict("injected")),
            Fate::LostBefore => return Err(Error::unknown("injected")),
            Fate::Late => {
                self.ghosts.push(Ghost::Batch(Arc::clone(batch)));
                return Err(Error::unknown("injected"));
            }
            Fate::Normal | Fate::LostAfter => {}
        }
        let outcomes = self.carry_out(batch)?;
        match fate {
            Fate::LostAfter => Err(Error::unknown("injected")),
            _ => Ok(AppendReceipt { outcomes, identity: self.identity() }),
        }
    }

    fn carry_out(&mut self, batch: &AppendBatch) -> Result<Vec<AppendOutcome>> {
        batch.check_identity(&self.identity())?;
        let step = self.step;
        let outcomes: Vec<_> = batch
            .tenants
            .iter()
            .map(|entry| {
                let log = &self.logs[&(entry.tenant.0 as u8)];
                if log.held || log.locked.is_some() {
                    AppendOutcome::Busy
                } else if log.head() != entry.expected_head {
                    AppendOutcome::Stale { head: log.head(), place: Place(0) }
                } else {
                    AppendOutcome::Done { at: Timestamp::default() }
                }
            })
            .collect();
        let done =
            |(_, outcome): &(&TenantAppend, &AppendOutcome)| matches!(outcome, AppendOutcome::Done { .. });
        let entries: Vec<_> =
            batch.tenants.iter().zip(&outcomes).filter(done).map(|(entry, _)| entry).collect();
        if entries.iter().any(|entry| refused(&entry.events)) {
            return Err(Error::rejected("a row is refused"));
        }
        for entry in entries {
            self.log(entry.tenant.0 as u8).commit(step, &entry.events, &[]);
        }
        Ok(outcomes)
    }

    fn look(&mut self, tenant: TenantNo, look: &Look) -> (Option<StreamVersions>, Vec<AppendId>) {
        let versions = (!look.streams.is_empty()).then(|| self.versions(tenant, &look.streams));
        let log = self.log(tenant.0 as u8);
        let recorded =
            log.commits.iter().flat_map(|(_, ids)| ids).filter(|id| look.ids.contains(&id.id)).cloned();
        (versions, recorded.collect())
    }

    fn versions(&mut self, tenant: TenantNo, streams: &[StreamId]) -> StreamVersions {
        let (identity, log) = (self.identity(), self.log(tenant.0 as u8));
        let state = |stream| StreamState { version: log.version(stream), archived: false };
        StreamVersions {
            head: log.head(),
            place: Place(0),
            streams: streams.iter().map(state).collect(),
            identity,
        }
    }

    fn write(&mut self, flight: FlightNo, tenant: TenantNo, write: Write, fate: Fate) -> Result<Timestamp> {
        if fate == Fate::Late {
            self.ghosts.push(Ghost::Locked(tenant, write));
            return Err(Error::unknown("injected"));
        }
        self.unlock(flight);
        let step = self.step;
        match fate {
            Fate::Unavailable => return Err(Error::unavailable("injected")),
            Fate::Conflict => return Err(Error::conflict("injected")),
            Fate::LostBefore => return Err(Error::unknown("injected")),
            _ if refused(&write.events) => return Err(Error::rejected("a row is refused")),
            _ => self.log(tenant.0 as u8).commit(step, &write.events, &write.ids),
        }
        match fate {
            Fate::LostAfter => Err(Error::unknown("injected")),
            _ => Ok(Timestamp::default()),
        }
    }

    fn unlock(&mut self, flight: FlightNo) {
        for log in self.logs.values_mut().filter(|log| log.locked == Some(flight)) {
            log.locked = None;
        }
    }

    pub(super) fn other(&mut self, tenant: u8, stream: u8) {
        let (step, stream) = (self.step, stream_id(stream));
        let event = self.event(&stream);
        let log = self.log(tenant);
        if !log.held && log.locked.is_none() {
            let version = log.version(&stream).next();
            log.commit(step, &[NewEvent { version, ..event }], &[]);
        }
    }

    /// A lost append arrives at last, or ends.
    pub(super) fn ghost(&mut self, which: usize, commits: bool) {
        if self.ghosts.is_empty() {
            return;
        }
        let step = self.step;
        match self.ghosts.remove(which % self.ghosts.len()) {
            Ghost::Batch(batch) if commits => drop(self.carry_out(&batch)),
            Ghost::Batch(_) => {}
            Ghost::Locked(tenant, write) => {
                let log = self.log(tenant.0 as u8);
                log.locked = None;
                if commits && !refused(&write.events) {
                    log.commit(step, &write.events, &write.ids);
                }
            }
        }
    }

    /// Another server answers, without the last commits of every tenant.
    pub(super) fn fail_over(&mut self, lose: usize) {
        self.life += 1;
        self.ghosts.clear();
        let step = self.step;
        for log in self.logs.values_mut() {
            log.locked = None;
            log.held = false;
            let keep = log.commits.len().saturating_sub(lose);
            for (events, _) in log.commits.drain(keep..) {
                self.failed_over = true;
                self.lost.extend(events.iter().map(|event| event.id));
            }
            let streams: Vec<_> = log.history.keys().cloned().collect();
            for stream in streams {
                let version = log.version(&stream);
                log.history.entry(stream).or_default().push((step, version));
            }
        }
    }
}

fn refused(events: &[NewEvent]) -> bool {
    events.iter().any(|event| event.stream == stream_id(POISON))
}
