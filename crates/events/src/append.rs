//! An append with everything that can be said about it.

use bellwether_storage::{Error, PageQuery, Result, Sequence, StreamId, Timestamp, Version};
use uuid::Uuid;

use crate::decide::{AppendKey, Part, Reply, Seen};
use crate::draft::{Draft, encode_headers};
use crate::limits::READ_BYTES_MAX;
use crate::{AppendError, Event, Expected, Headers, Tenant};

/// Where events went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Appended {
    /// Sequence of the first event.
    pub first: Sequence,
    /// Sequence of the last event: whoever has seen it has seen this append.
    pub last: Sequence,
    /// The stream's version after it.
    pub version: Version,
    /// When, by the database's clock.
    pub at: Timestamp,
}

/// Events for one stream, with what is expected of it, headers, and an append id. Made by
/// [`Stream::to_append`](crate::Stream::to_append); sent alone with [`send`](StreamAppend::send) or together with others by
/// [`Tenant::append_all`].
#[must_use = "nothing happens until it is sent"]
#[derive(Debug)]
pub struct StreamAppend {
    tenant: Tenant,
    draft: Result<Draft>,
    expected: Expected,
    headers: Headers,
    id: Option<Uuid>,
    pub(crate) seen: Option<Seen>,
}

impl StreamAppend {
    /// Encodes the events; what is wrong with them shows when it is sent.
    pub(crate) fn new<E: Event>(
        tenant: &Tenant,
        stream: &StreamId,
        events: impl IntoIterator<Item = E>,
    ) -> Self {
        let encoding = tenant.store().config().encoding;
        let mut draft = Draft::default();
        let added = draft.add(stream, encoding, events);
        Self {
            tenant: tenant.clone(),
            draft: added.map(|()| draft),
            expected: Expected::Any,
            headers: Headers::new(),
            id: None,
            seen: None,
        }
    }

    /// Says which version the stream must have. Default: any.
    pub fn expecting(mut self, expected: impl Into<Expected>) -> Self {
        self.expected = expected.into();
        self
    }

    /// Adds a header to every event: correlation, causation, user. At most 16 KiB of them.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.insert(name.into(), value.into());
        self
    }

    /// Gives the append an id of your own. Sent again with the same id and content, however much later, it returns the first
    /// result instead of appending twice.
    ///
    /// The same content must encode to the same bytes: use ordered maps and sets in events that are sent with an id.
    pub fn id(mut self, id: Uuid) -> Self {
        self.id = Some(id);
        self
    }

    /// Sends it. Appends that arrive while a commit is in flight share the next one.
    ///
    /// # Errors
    ///
    /// As [`Stream::append`](crate::Stream::append); `Rejected` also when the id was used for other content.
    ///
    /// # Cancel safety
    ///
    /// Not cancel safe: a dropped future may or may not have appended. Give an append id and send it again.
    pub async fn send(self) -> Result<Appended, AppendError> {
        let tenant = self.tenant.clone();
        let appended = Self::send_all(&tenant, vec![self]).await?;
        appended.first().copied().ok_or_else(|| Error::corrupt("an append without a result").into())
    }

    pub(crate) async fn send_all(tenant: &Tenant, appends: Vec<Self>) -> Result<Vec<Appended>, AppendError> {
        let mut whole = Draft::default();
        let mut id = None;
        let mut seen = None;
        for append in appends {
            if append.tenant.id() != tenant.id() {
                return Err(Error::rejected(format!(
                    "an append to tenant {} among those of tenant {}",
                    append.tenant.id(),
                    tenant.id()
                ))
                .fix("send it with its own tenant; only streams of one tenant go in together")
                .into());
            }
            if append.id.is_some() && id.is_some() && id != append.id {
                return Err(Error::rejected("two append ids in one append")
                    .fix("give one; it stands for the whole")
                    .into());
            }
            id = id.or(append.id);
            seen = seen.or(append.seen);
            let part = append.draft?.into_part(append.expected, encode_headers(&append.headers)?);
            whole.join(part)?;
        }
        if whole.events.is_empty() {
            return Err(Error::rejected("an append without streams")
                .fix("leave it out when there is nothing to append")
                .into());
        }
        let key = id.map(|id| AppendKey { id, digest: whole.digest() });
        let parts: Vec<Part> = whole.parts.clone();
        let reply = tenant.store().append(tenant.id(), whole.parts, whole.events, key, seen).await?;
        match reply {
            Reply::Done { first, versions, at } => Ok(appended(&parts, first, &versions, at)),
            Reply::Repeated(before) => first_result(tenant, &parts, before.first).await,
            Reply::Conflict { part, actual } => Err(AppendError::Conflict {
                stream: parts[part].stream.clone(),
                expected: parts[part].expected,
                actual,
            }),
            Reply::Failed(error) => Err(error.into()),
            Reply::Moved { .. } => Err(Error::unavailable("the tenant has moved").fix("try again").into()),
        }
    }
}

fn appended(parts: &[Part], first: Sequence, versions: &[Version], at: Timestamp) -> Vec<Appended> {
    let ends = parts.iter().scan(first.get() - 1, |end, part| {
        *end += part.count as u64;
        Some(*end)
    });
    let of_part = |((part, version), end): ((&Part, &Version), u64)| Appended {
        first: Sequence::new(end + 1 - part.count as u64),
        last: Sequence::new(end),
        version: *version,
        at,
    };
    parts.iter().zip(versions).zip(ends).map(of_part).collect()
}

/// The result an append with this id had when it went in: the versions are read from its events.
async fn first_result(
    tenant: &Tenant,
    parts: &[Part],
    first: Sequence,
) -> Result<Vec<Appended>, AppendError> {
    let (location, database) = tenant.store().locate(tenant.id()).await?;
    let mut results = Vec::with_capacity(parts.len());
    let mut end = first.get() - 1;
    for part in parts {
        let begin = end + 1;
        end += part.count as u64;
        let last = Sequence::new(end);
        let query = PageQuery {
            tenant: location.tenant,
            after: Sequence::new(end - 1),
            up_to: Some(last),
            types: None,
            events_max: 1,
            bytes_max: READ_BYTES_MAX,
        };
        let page = database.read_page(&query).await?;
        let event = page.events.into_iter().next().filter(|event| event.stream == part.stream);
        let event = event.ok_or_else(|| {
            let stream = part.stream.as_str();
            Error::corrupt(format!(
                "event {last} of an append whose id is recorded is not of stream {stream:?}"
            ))
            .fix("restore the tenant from a backup")
        })?;
        results.push(Appended { first: Sequence::new(begin), last, version: event.version, at: event.at });
    }
    Ok(results)
}
