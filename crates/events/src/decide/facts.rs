//! What is known of tenants and their streams, and when it is void.

use bellwether_storage::{Place, Sequence, ServerIdentity, StreamId, StreamState, TenantNo};

use super::lane::{Lane, Standing};
use super::{Append, Seen, Writer};

/// The head left behind, and what follows from it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known {
    pub(super) head: Sequence,
    /// Every stream that is not cached does not exist.
    pub(super) complete: bool,
    /// Nobody said so: a tenant met for the first time is taken for a new one, which costs nothing if it is not.
    pub(super) guess: bool,
    /// Since this head only this writer has written, and it has forgotten nothing.
    pub(super) since: Sequence,
    /// The era of its cached versions.
    pub(super) era: u64,
    /// The life of the server that said so.
    pub(super) life: u64,
}

impl<T> Writer<T> {
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
    pub(super) fn take_seen(&mut self, tenant: TenantNo, seen: &Seen) {
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
}

impl Known {
    /// A tenant nobody has asked about, taken for a new one.
    pub(super) fn guess(era: u64, life: u64) -> Self {
        Self { head: Sequence::ZERO, complete: true, guess: true, since: Sequence::ZERO, era, life }
    }

    /// State of a stream that is not cached, where it follows from something else.
    pub(super) fn state_of<T>(
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
