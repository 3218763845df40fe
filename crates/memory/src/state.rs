//! What is stored: plain maps that clone cheaply enough to be kept as history.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use bellwether_storage::{
    AppendId, Build, DeadLetter, DocumentKey, EVENT_BYTES_MAX, EVENTS_PER_APPEND_MAX, Error,
    HEADERS_BYTES_MAX, NewEvent, Place, Progress, ProgressKey, ProjectionName, ProjectionNo, Result,
    Sequence, StoredEvent, StreamId, StreamState, TenantId, TenantNo, Timestamp, Version, ViewName, ViewNo,
};
use bytes::Bytes;
use uuid::Uuid;

/// Everything a database holds. A clone is a snapshot: events are shared, the maps are copied.
#[derive(Debug, Clone, Default)]
pub(crate) struct State {
    pub(crate) tenants: BTreeMap<TenantNo, Tenant>,
    pub(crate) tenants_by_id: HashMap<TenantId, TenantNo>,
    pub(crate) projections: HashMap<ProjectionName, ProjectionNo>,
    pub(crate) views: HashMap<(ViewName, u32), ViewNo>,
    pub(crate) progress: BTreeMap<ProgressKey, Progress>,
    pub(crate) documents: HashMap<(ViewNo, TenantNo, Build), BTreeMap<DocumentKey, Bytes>>,
    pub(crate) dead_letters: BTreeMap<DeadLetterKey, DeadLetter>,
    /// Counts commits that move heads; discovery's cursor.
    pub(crate) moves: u64,
}

/// Order in which dead letters are listed: tenant, projection, version, build, sequence, member.
pub(crate) type DeadLetterKey = (TenantNo, ProjectionNo, u32, Build, Sequence, String);

/// One tenant: its head row and its log.
#[derive(Debug, Clone)]
pub(crate) struct Tenant {
    pub(crate) id: TenantId,
    pub(crate) head: Sequence,
    pub(crate) place: Place,
    pub(crate) open: bool,
    pub(crate) at: Timestamp,
    /// Value of [`State::moves`] when the head last moved.
    pub(crate) moved: u64,
    pub(crate) events: BTreeMap<Sequence, Arc<StoredEvent>>,
    pub(crate) versions: BTreeMap<(StreamId, Version), Sequence>,
    pub(crate) append_ids: HashMap<Uuid, AppendId>,
}

impl State {
    /// The tenant, or the refusal that reads and locks of an unknown one give.
    pub(crate) fn tenant(&self, number: TenantNo) -> Result<&Tenant> {
        self.tenants.get(&number).ok_or_else(|| no_such_tenant(number))
    }

    /// The tenant, to be changed.
    pub(crate) fn tenant_mut(&mut self, number: TenantNo) -> Result<&mut Tenant> {
        self.tenants.get_mut(&number).ok_or_else(|| no_such_tenant(number))
    }

    /// Registers a tenant with an open head at zero.
    pub(crate) fn add_tenant(&mut self, id: &TenantId) -> Result<TenantNo> {
        let last = self.tenants.keys().next_back().map_or(0, |number| number.0);
        let number = TenantNo(last.checked_add(1).ok_or_else(|| exhausted("tenant"))?);
        self.moves += 1;
        let tenant = Tenant {
            id: id.clone(),
            head: Sequence::ZERO,
            place: Place::default(),
            open: true,
            at: Timestamp::from_micros(i64::MIN),
            moved: self.moves,
            events: BTreeMap::new(),
            versions: BTreeMap::new(),
            append_ids: HashMap::new(),
        };
        self.tenants.insert(number, tenant);
        self.tenants_by_id.insert(id.clone(), number);
        Ok(number)
    }

    /// Puts checked events behind the head. [`Tenant::check`] must have accepted them against this very state.
    pub(crate) fn append(
        &mut self,
        number: TenantNo,
        events: &[NewEvent],
        now: Option<Timestamp>,
    ) -> Result<Timestamp> {
        self.moves += 1;
        let moves = self.moves;
        let tenant = self.tenant_mut(number)?;
        let at = now.unwrap_or_else(clock).max(tenant.at);
        let mut sequence = tenant.head;
        for event in events {
            sequence = sequence.next();
            let stored = StoredEvent {
                sequence,
                stream: event.stream.clone(),
                version: event.version,
                id: event.id,
                event_type: event.event_type.clone(),
                encoding: event.encoding,
                body: event.body.clone(),
                headers: event.headers.clone(),
                at,
            };
            tenant.versions.insert((event.stream.clone(), event.version), sequence);
            tenant.events.insert(sequence, Arc::new(stored));
        }
        tenant.head = sequence;
        tenant.at = at;
        tenant.moved = moves;
        Ok(at)
    }
}

impl Tenant {
    /// Last version of a stream.
    pub(crate) fn stream(&self, stream: &StreamId) -> StreamState {
        let from = (stream.clone(), Version::ZERO);
        let to = (stream.clone(), Version::MAX);
        let version =
            self.versions.range(from..=to).next_back().map_or(Version::ZERO, |((_, version), _)| *version);
        StreamState { version, archived: false }
    }

    /// Events of one stream after a version, in order.
    pub(crate) fn stream_after(
        &self,
        stream: &StreamId,
        after: Version,
    ) -> impl Iterator<Item = (Version, Option<&Arc<StoredEvent>>)> {
        let from = Bound::Excluded((stream.clone(), after.min(Version::MAX)));
        let to = Bound::Included((stream.clone(), Version::MAX));
        // Excluded(x)..Included(x) is a legal, empty range.
        self.versions.range((from, to)).map(|((_, version), sequence)| (*version, self.events.get(sequence)))
    }

    /// Refuses what a database would refuse: too much, too large, a version that is taken.
    pub(crate) fn check(&self, events: &[NewEvent]) -> Result<()> {
        if events.is_empty() {
            return Err(Error::rejected("an append without events").fix("leave the tenant out of the batch"));
        }
        if events.len() > EVENTS_PER_APPEND_MAX {
            return Err(Error::rejected(format!(
                "{} events in one append, at most {EVENTS_PER_APPEND_MAX}",
                events.len()
            ))
            .fix("split the append"));
        }
        if self.head.get().checked_add(events.len() as u64).is_none_or(|last| last > Sequence::MAX.get()) {
            return Err(exhausted("sequence"));
        }
        let mut own = std::collections::HashSet::with_capacity(events.len());
        for event in events {
            if event.body.len() > EVENT_BYTES_MAX || event.headers.len() > HEADERS_BYTES_MAX {
                return Err(Error::rejected(format!(
                    "an event of stream {:?} has {} bytes of body and {} of headers",
                    event.stream.as_str(),
                    event.body.len(),
                    event.headers.len()
                ))
                .fix(format!(
                    "keep bodies within {EVENT_BYTES_MAX} and headers within {HEADERS_BYTES_MAX} bytes"
                )));
            }
            let key = (event.stream.clone(), event.version);
            if event.version == Version::ZERO
                || event.version > Version::MAX
                || self.versions.contains_key(&key)
                || !own.insert(key)
            {
                return Err(Error::rejected(format!(
                    "version {} of stream {:?} cannot be written: it is zero or taken",
                    event.version,
                    event.stream.as_str()
                ))
                .fix("read the stream's version again and decide anew"));
            }
        }
        Ok(())
    }
}

/// The refusal for a tenant that is not here.
pub(crate) fn no_such_tenant(number: TenantNo) -> Error {
    Error::rejected(format!("no tenant {} in this database", number.0))
        .fix("ask the directory where the tenant lives")
}

/// The refusal when a number has come to its end.
pub(crate) fn exhausted(what: &str) -> Error {
    Error::rejected(format!("no {what} number is left")).fix("use another database")
}

/// The database's clock.
pub(crate) fn clock() -> Timestamp {
    let micros = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros());
    Timestamp::from_micros(i64::try_from(micros).unwrap_or(i64::MAX))
}
