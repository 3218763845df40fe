//! How flights end: who is told what, and what goes back to its queue.

use bellwether_storage::{Error, ErrorKind, EventId, Sequence, TenantId, TenantNo, Timestamp};

use super::batch_flight::appends;
use super::fold::{Fold, Folded};
use super::lane::{Standing, Unresolved};
use super::{Append, News, Reply, Writer};

impl<T> Writer<T> {
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
