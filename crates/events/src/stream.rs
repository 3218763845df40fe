//! A stream: append, read, load, execute.

use std::fmt;
use std::marker::PhantomData;

use bellwether_storage::{Result, StreamId, StreamPage, StreamQuery, StreamState, Version};

use crate::decide::Seen;
use crate::error::from_codec;
use crate::limits::{LOAD_PAGE_BYTES, LOAD_PAGE_EVENTS, READ_BYTES_MAX, READ_EVENTS_MAX};
use crate::{
    Aggregate, AppendError, Appended, Decide, Event, ExecuteError, Expected, Recorded, StreamAppend, Tenant,
};

/// A stream of one tenant, whose events add up to an `A`. Cheap to clone.
pub struct Stream<A> {
    tenant: Tenant,
    id: StreamId,
    _aggregate: PhantomData<fn() -> A>,
}

/// What a command led to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Executed {
    /// The stream's version after it.
    pub version: Version,
    /// Where the events went; `None` when the decision was that nothing happens.
    pub appended: Option<Appended>,
}

impl<A> Stream<A> {
    pub(crate) fn new(tenant: Tenant, id: StreamId) -> Self {
        Self { tenant, id, _aggregate: PhantomData }
    }

    /// Its name inside the tenant.
    pub fn id(&self) -> &StreamId {
        &self.id
    }

    /// The tenant it belongs to.
    pub fn tenant(&self) -> &Tenant {
        &self.tenant
    }
}

impl<A: Aggregate> Stream<A> {
    /// Appends events, whatever the stream's version is. They go in together or not at all; one commit, shared with others.
    ///
    /// # Errors
    ///
    /// `Rejected` when a limit is passed (10,000 events and 64 MiB in an append, 4 MiB an event) or there is no event, before
    /// anything is sent; also when the database refuses it or the tenant takes no appends. `Unavailable`: nothing happened, try
    /// again later. `Unknown`: it may have happened; read the stream, or use [`StreamAppend::id`] to be able to send it again.
    ///
    /// # Cancel safety
    ///
    /// Not cancel safe: a dropped future may or may not have appended.
    pub async fn append(&self, events: impl IntoIterator<Item = A::Event>) -> Result<Appended, AppendError> {
        self.to_append(events).send().await
    }

    /// Appends events if the stream is where it is expected.
    ///
    /// # Errors
    ///
    /// [`AppendError::Conflict`] with what was expected and what is there: read again and decide again. Otherwise as
    /// [`Stream::append`].
    ///
    /// # Cancel safety
    ///
    /// As [`Stream::append`].
    pub async fn append_expecting(
        &self,
        expected: impl Into<Expected>,
        events: impl IntoIterator<Item = A::Event>,
    ) -> Result<Appended, AppendError> {
        self.to_append(events).expecting(expected).send().await
    }

    /// An append about which more is to be said: expected version, headers, an id.
    pub fn to_append(&self, events: impl IntoIterator<Item = A::Event>) -> StreamAppend {
        StreamAppend::new(&self.tenant, &self.id, events)
    }

    /// Reads events of this stream after a version, in order, at most `max` (10,000) of them and at most 8 MiB.
    ///
    /// Go on after the last version of the answer. An empty answer means that there was nothing more.
    ///
    /// # Errors
    ///
    /// `Corrupt` when an event is missing or cannot be decoded; `Unsupported` when the stream holds a type that the event enum
    /// does not know; `Unavailable` when the database cannot be reached: try again.
    ///
    /// # Cancel safety
    ///
    /// Safe: it only reads.
    pub async fn read(&self, after: Version, max: u32) -> Result<Vec<Recorded<A::Event>>> {
        let page = self.page(after, max.clamp(1, READ_EVENTS_MAX), READ_BYTES_MAX).await?;
        page.events.into_iter().map(|event| Recorded::from_stored(self.tenant.id(), event)).collect()
    }

    /// The aggregate as its events leave it now, and the version it is at. Reads the whole stream, 1,000 events or 1 MiB per
    /// round trip.
    ///
    /// # Errors
    ///
    /// As [`Stream::read`].
    ///
    /// # Cancel safety
    ///
    /// Safe: it only reads.
    pub async fn load(&self) -> Result<(A, Version)> {
        let mut loaded = Loaded { state: A::default(), version: Version::ZERO, seen: None };
        self.catch_up(&mut loaded).await?;
        Ok((loaded.state, loaded.version))
    }

    /// Loads the aggregate, decides on a command, and appends the events if nobody was first; else it catches up and decides
    /// again, 32 times at most.
    ///
    /// # Errors
    ///
    /// [`ExecuteError::Rejected`] is the decision's own; [`ExecuteError::Conflict`] when others were first every time;
    /// otherwise as [`Stream::append`] and [`Stream::read`].
    ///
    /// # Cancel safety
    ///
    /// Not cancel safe: a dropped future may or may not have appended.
    pub async fn execute<C>(&self, command: C) -> Result<Executed, ExecuteError<<A as Decide<C>>::Error>>
    where
        A: Decide<C>,
        C: Clone,
    {
        let tries = self.tenant.store().config().execute_tries;
        let mut loaded = Loaded { state: A::default(), version: Version::ZERO, seen: None };
        for tried in 1.. {
            self.catch_up(&mut loaded).await?;
            let version = loaded.version;
            let events = loaded.state.decide(command.clone()).map_err(ExecuteError::Rejected)?;
            if events.is_empty() {
                return Ok(Executed { version, appended: None });
            }
            let mut append = self.to_append(events).expecting(version);
            append.seen = loaded.seen.take();
            match append.send().await {
                Ok(appended) => return Ok(Executed { version: appended.version, appended: Some(appended) }),
                Err(AppendError::Conflict { stream, expected, actual }) if tried >= tries => {
                    return Err(ExecuteError::Conflict { stream, expected, actual, tries });
                }
                Err(AppendError::Conflict { .. }) => {}
                Err(AppendError::Store(error)) => return Err(ExecuteError::Store(error)),
            }
        }
        unreachable!("the loop ends with its last try")
    }

    /// Reads what came since, up to the end of the stream.
    async fn catch_up(&self, loaded: &mut Loaded<A>) -> Result<()> {
        loop {
            let page = self.page(loaded.version, LOAD_PAGE_EVENTS, LOAD_PAGE_BYTES).await?;
            let (last, read) = (page.version, page.events.len());
            for event in &page.events {
                let typed = A::Event::decode(event.event_type.as_str(), event.encoding, &event.body)
                    .map_err(from_codec)?;
                loaded.state.evolve(&typed);
                loaded.version = event.version;
            }
            if loaded.version >= last || read == 0 {
                loaded.seen = Some(Seen {
                    stream: self.id.clone(),
                    state: StreamState { version: last, archived: false },
                    head: page.head,
                    place: page.place,
                    identity: page.identity,
                });
                return Ok(());
            }
        }
    }

    async fn page(&self, after: Version, events_max: u32, bytes_max: u64) -> Result<StreamPage> {
        let (location, database) = self.tenant.store().locate(self.tenant.id()).await?;
        let query = StreamQuery { tenant: location.tenant, stream: &self.id, after, events_max, bytes_max };
        database.read_stream(&query).await
    }
}

/// An aggregate on its way.
struct Loaded<A> {
    state: A,
    version: Version,
    /// The end of the stream, as the last page has shown it.
    seen: Option<Seen>,
}

impl<A> Clone for Stream<A> {
    fn clone(&self) -> Self {
        Self::new(self.tenant.clone(), self.id.clone())
    }
}

impl<A: Aggregate> fmt::Debug for Stream<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream")
            .field("aggregate", &A::NAME)
            .field("tenant", self.tenant.id())
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}
