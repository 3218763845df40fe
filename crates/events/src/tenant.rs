//! A tenant of a store: the way to its streams, and its events in the order they were committed.

use bellwether_storage::{EventType, PageQuery, Result, Sequence, StreamId, TenantId};

use crate::limits::{READ_BYTES_MAX, READ_EVENTS_MAX};
use crate::{Aggregate, AppendError, Appended, Event, Plain, Recorded, Store, Stream, StreamAppend};

/// A tenant. Cheap to clone; checks nothing against a database until it is used.
#[derive(Debug, Clone)]
pub struct Tenant {
    store: Store,
    id: TenantId,
}

impl Tenant {
    pub(crate) fn new(store: Store, id: TenantId) -> Self {
        Self { store, id }
    }

    /// Its name.
    pub fn id(&self) -> &TenantId {
        &self.id
    }

    /// The store it is a tenant of.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// A stream of this tenant, with the aggregate its events add up to. The id is taken exactly as given: no prefix, no
    /// change of case. The id alone names the stream, so where aggregates share ids, prefix them: `account/a-1`. No I/O.
    ///
    /// # Errors
    ///
    /// `Rejected` when the id is empty, has more than 512 bytes or holds a control character.
    pub fn stream<A: Aggregate>(&self, id: impl AsRef<str>) -> Result<Stream<A>> {
        Ok(Stream::new(self.clone(), StreamId::new(id)?))
    }

    /// A stream that only records: events without an aggregate.
    ///
    /// # Errors
    ///
    /// As [`Tenant::stream`].
    pub fn stream_of<E: Event>(&self, id: impl AsRef<str>) -> Result<Stream<Plain<E>>> {
        self.stream(id)
    }

    /// Appends to several streams of this tenant, all or nothing, in one commit. One result per entry, in order.
    ///
    /// An append id given to one of the entries stands for the whole.
    ///
    /// # Errors
    ///
    /// [`AppendError::Conflict`] names the first stream that is not where it was expected. `Rejected` when there is no entry, a
    /// limit is passed, an entry belongs to another tenant, or two different append ids are given. Otherwise as
    /// [`Stream::append`]. Nothing has happened unless the kind is `Unknown`.
    ///
    /// # Cancel safety
    ///
    /// Not cancel safe: a dropped future may or may not have appended. Give an append id and send it again.
    pub async fn append_all(&self, appends: Vec<StreamAppend>) -> Result<Vec<Appended>, AppendError> {
        StreamAppend::send_all(self, appends).await
    }

    /// Sequence of the tenant's last committed event; zero when there is none. One round trip.
    ///
    /// # Errors
    ///
    /// `Unavailable` when the database cannot be reached: try again.
    ///
    /// # Cancel safety
    ///
    /// Safe: it only reads.
    pub async fn head(&self) -> Result<Sequence> {
        let (location, database) = self.store.locate(&self.id).await?;
        Ok(database.stream_versions(location.tenant, &[]).await?.head)
    }

    /// Reads events of this tenant after a sequence, in order, at most `max` (10,000) of them and at most 8 MiB: only types
    /// that `E` knows are loaded, the others are passed over in the database.
    ///
    /// Go on after the last sequence of the answer. An empty answer means that there was nothing more.
    ///
    /// # Errors
    ///
    /// `Corrupt` on a hole or a body that cannot be decoded; `Unavailable` when the database cannot be reached: try again.
    ///
    /// # Cancel safety
    ///
    /// Safe: it only reads.
    pub async fn read<E: Event>(&self, after: Sequence, max: u32) -> Result<Vec<Recorded<E>>> {
        let types = E::TYPES.iter().map(EventType::new).collect::<Result<Vec<_>>>()?;
        let (location, database) = self.store.locate(&self.id).await?;
        let mut query = PageQuery {
            tenant: location.tenant,
            after,
            up_to: None,
            types: Some(&types),
            events_max: max.clamp(1, READ_EVENTS_MAX),
            bytes_max: READ_BYTES_MAX,
        };
        // A page can end early behind many events of other types: go on until there is one, or up to the head of the first.
        loop {
            let page = database.read_page(&query).await?;
            if let Some((_, size)) = page.too_large {
                query.bytes_max = size;
                continue;
            }
            if !page.events.is_empty() || page.through >= page.head || page.through == query.after {
                return page.events.into_iter().map(|event| Recorded::from_stored(&self.id, event)).collect();
            }
            query.up_to = query.up_to.or(Some(page.head));
            query.after = page.through;
            if query.up_to.is_some_and(|last| query.after >= last) {
                return Ok(Vec::new());
            }
        }
    }
}
