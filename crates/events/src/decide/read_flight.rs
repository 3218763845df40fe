//! Outcomes of reads: versions, the event that tells whose append won, who answers.

use bellwether_storage::{Error, ErrorKind, Result, ServerIdentity, StreamVersions, TenantNo};

use super::lane::Standing;
use super::settle::copy;
use super::writer::{Flight, Probe};
use super::{FlightNo, Found, Reply, Writer};

impl<T> Writer<T> {
    /// Takes versions in.
    pub(crate) fn read(&mut self, flight: FlightNo, result: Result<StreamVersions>) {
        let Some(Flight::Read { tenant, streams }) = self.flights.remove(&flight) else { return };
        self.flying.reads -= 1;
        if let Some(lane) = self.lanes.get_mut(&tenant) {
            lane.standing = Standing::Idle;
        }
        match result {
            Ok(versions) => {
                self.observe(&versions.identity);
                self.learn(tenant, versions.head, versions.place);
                self.remember(tenant, streams.into_iter().zip(versions.streams));
                if let Some(lane) = self.lanes.get_mut(&tenant) {
                    lane.fresh = true;
                }
                self.enlist(tenant);
            }
            Err(error) => self.not_read(tenant, &error),
        }
    }

    fn not_read(&mut self, tenant: TenantNo, error: &Error) {
        let Some(lane) = self.lanes.get_mut(&tenant) else { return };
        lane.verify = true;
        match error.kind() {
            ErrorKind::Rejected => self.moved(tenant, Vec::new()),
            ErrorKind::Unavailable | ErrorKind::Conflict | ErrorKind::Unknown => {
                let queued = lane.queue.drain(..).collect();
                self.distrust();
                self.strike(tenant, queued, error);
            }
            _ => {
                let queued: Vec<_> = lane.queue.drain(..).collect();
                for append in queued {
                    self.reply(append.token, Reply::Failed(copy(error)));
                }
            }
        }
    }

    /// Takes in which event stands where a lost flight's first one would.
    pub(crate) fn found(&mut self, flight: FlightNo, result: Result<Found>) {
        let Some(Flight::Find { tenant }) = self.flights.remove(&flight) else { return };
        self.flying.reads -= 1;
        let found = match result {
            Ok(found) => found,
            Err(error) => {
                self.distrust();
                return self.strike_unresolved(tenant, &error);
            }
        };
        self.observe(&found.identity);
        self.forget(tenant);
        let Some(lane) = self.lanes.get_mut(&tenant) else { return };
        lane.standing = Standing::Idle;
        let Some(unresolved) = lane.unresolved.take() else { return self.enlist(tenant) };
        match found.event.filter(|(id, _)| *id == unresolved.first) {
            Some((_, at)) => {
                lane.went_in();
                let (id, count) = (lane.id.clone(), unresolved.folded.iter().map(|one| one.count()).sum());
                self.head_moved(tenant, id, unresolved.expected.plus(count));
                self.tell(unresolved.folded, at);
            }
            // Somebody else's append stands there, or nothing does: this one never will.
            None => lane.put_back(unresolved.folded.into_iter().map(|one| one.append)),
        }
        self.enlist(tenant);
    }

    /// Takes in who answers.
    pub(crate) fn probed(&mut self, flight: FlightNo, result: Result<ServerIdentity>) {
        let Some(Flight::Probe) = self.flights.remove(&flight) else { return };
        match result {
            Ok(identity) => {
                self.probe = Probe::NotNeeded;
                // Who answers is no proof that work goes well again: pauses grow until some does.
                let trouble = self.trouble;
                self.observe(&identity);
                self.trouble = trouble;
            }
            Err(error) => {
                self.probe = Probe::NotNeeded;
                self.strike_all(&error);
                // Callers that were told leave nothing to probe for.
                if !self.is_idle() {
                    self.distrust();
                }
            }
        }
    }
}
