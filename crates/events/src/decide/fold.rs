//! Deciding: appends in their order over the versions their predecessors leave.

use std::collections::BTreeMap;

use bellwether_storage::{AppendId, Error, NewEvent, Sequence, StreamId, StreamState, Timestamp, Version};

use super::{Append, Reply};
use crate::Expected;

/// Appends of one tenant, decided against one head.
#[derive(Debug)]
pub(super) struct Fold<T> {
    pub(super) expected_head: Sequence,
    pub(super) folded: Vec<Folded<T>>,
    /// What goes in, numbered.
    pub(super) events: Vec<NewEvent>,
    /// Append ids to be recorded with it.
    pub(super) ids: Vec<AppendId>,
    /// Streams as they are after it.
    pub(super) streams: BTreeMap<StreamId, StreamState>,
    pub(super) bytes: usize,
}

/// An append and what was decided.
#[derive(Debug)]
pub(super) struct Folded<T> {
    pub(super) append: Append<T>,
    pub(super) verdict: Verdict,
}

/// A decision. Exact if the head is the expected one.
#[derive(Debug)]
pub(super) enum Verdict {
    Write {
        first: Sequence,
        versions: Vec<Version>,
    },
    Repeat(AppendId),
    OtherContent(AppendId),
    Conflict {
        part: usize,
        actual: Version,
    },
    Archived {
        part: usize,
    },
    /// No sequence is left for so many events.
    Exhausted,
}

impl<T> Fold<T> {
    pub(super) fn new(expected_head: Sequence) -> Self {
        Self {
            expected_head,
            folded: Vec::new(),
            events: Vec::new(),
            ids: Vec::new(),
            streams: BTreeMap::new(),
            bytes: 0,
        }
    }

    /// Decides on an append. `known` answers for streams this fold has not touched; when it cannot, the append comes back.
    pub(super) fn push(
        &mut self,
        append: Append<T>,
        recorded: &[AppendId],
        mut known: impl FnMut(&StreamId, &Append<T>) -> Option<StreamState>,
    ) -> Option<Append<T>> {
        let left = Sequence::MAX.get() - self.expected_head.get() - self.events.len() as u64;
        if append.events.len() as u64 > left {
            self.folded.push(Folded { append, verdict: Verdict::Exhausted });
            return None;
        }
        let first = self.expected_head.plus(self.events.len() as u64 + 1);
        if let Some(verdict) = self.repeated(&append, recorded) {
            self.folded.push(Folded { append, verdict });
            return None;
        }
        // States of this append's own streams; several parts may name the same one.
        let mut own: Vec<(usize, StreamState)> = Vec::with_capacity(append.parts.len());
        let mut versions = Vec::with_capacity(append.parts.len());
        let mut verdict = None;
        for (index, part) in append.parts.iter().enumerate() {
            let before = own.iter().rev().find(|(at, _)| append.parts[*at].stream == part.stream);
            let state = match before {
                Some((_, state)) => *state,
                None => {
                    match self.streams.get(&part.stream).copied().or_else(|| known(&part.stream, &append)) {
                        Some(state) => state,
                        None => return Some(append),
                    }
                }
            };
            if verdict.is_some() {
                continue;
            }
            let expected = match part.expected {
                Expected::Any => true,
                Expected::None => state.version == Version::ZERO,
                Expected::Exact(version) => state.version == version,
            };
            if state.archived {
                verdict = Some(Verdict::Archived { part: index });
            } else if !expected {
                verdict = Some(Verdict::Conflict { part: index, actual: state.version });
            }
            let version = state.version.plus(part.count as u64);
            own.push((index, StreamState { version, archived: false }));
            versions.push(version);
        }
        let verdict = verdict.unwrap_or(Verdict::Write { first, versions });
        if let Verdict::Write { versions, .. } = &verdict {
            self.take(&append, first, versions);
        }
        self.folded.push(Folded { append, verdict });
        None
    }

    /// Numbers the events of an append that goes in.
    fn take(&mut self, append: &Append<T>, first: Sequence, versions: &[Version]) {
        let mut events = append.events.iter();
        for (part, last) in append.parts.iter().zip(versions) {
            for back in (0..part.count as u64).rev() {
                if let Some(event) = events.next() {
                    let version = Version::new(last.get() - back);
                    self.events.push(NewEvent { version, ..event.clone() });
                }
            }
            self.streams.insert(part.stream.clone(), StreamState { version: *last, archived: false });
        }
        if let Some(key) = &append.key {
            let count = u32::try_from(append.events.len()).unwrap_or(u32::MAX);
            self.ids.push(AppendId { id: key.id, digest: key.digest, first, count });
        }
        self.bytes += append.bytes;
    }

    fn repeated(&self, append: &Append<T>, recorded: &[AppendId]) -> Option<Verdict> {
        let key = append.key?;
        let before = recorded.iter().chain(&self.ids).find(|before| before.id == key.id)?;
        Some(match before.digest == key.digest {
            true => Verdict::Repeat(before.clone()),
            false => Verdict::OtherContent(before.clone()),
        })
    }
}

impl<T> Folded<T> {
    /// How many events it adds.
    pub(super) fn count(&self) -> u64 {
        match self.verdict {
            Verdict::Write { .. } => self.append.events.len() as u64,
            _ => 0,
        }
    }
}

impl Verdict {
    /// The reply, once the decision is confirmed.
    pub(super) fn reply<T>(self, append: &Append<T>, at: Timestamp) -> Reply {
        match self {
            Self::Write { first, versions } => Reply::Done { first, versions, at },
            Self::Repeat(before) => Reply::Repeated(before),
            Self::Conflict { part, actual } => Reply::Conflict { part, actual },
            Self::OtherContent(before) => Reply::Failed(
                Error::rejected(format!(
                    "append id {} was used for other content, of {} events from sequence {}",
                    before.id, before.count, before.first
                ))
                .fix("use a new id for new content, and the same content with the same id"),
            ),
            Self::Exhausted => Reply::Failed(
                Error::rejected("no sequence is left in this tenant").fix("go on in another tenant"),
            ),
            Self::Archived { part } => Reply::Failed(
                Error::rejected(format!("stream {:?} is archived", append.parts[part].stream.as_str()))
                    .fix("append to another stream"),
            ),
        }
    }
}
