//! A page's events, decoded once per event type.

use std::any::{Any, TypeId};
use std::panic::{AssertUnwindSafe, catch_unwind};

use bellwether_events::{CodecError, Event, Headers, Recorded};
use bellwether_storage::{Encoding, StoredEvent, TenantId};

use super::Refused;
use super::documents::panic_text;

/// An event type (usually an enum): the names it knows and how a page is decoded as it.
#[derive(Clone, Copy)]
pub(crate) struct EventSet {
    pub(crate) id: TypeId,
    pub(crate) types: &'static [&'static str],
    pub(crate) decode: fn(&TenantId, &[StoredEvent]) -> Box<dyn Decoded>,
}

impl EventSet {
    pub(crate) fn of<E: Event>() -> Self {
        Self { id: TypeId::of::<E>(), types: E::TYPES, decode: decode::<E> }
    }
}

/// What became of one event of a page in one set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Slot {
    /// Of a type that the set does not know.
    Other,
    /// Decoded; its place among the decoded ones.
    At(usize),
    /// It cannot be decoded.
    Failed(Refused),
}

/// A page's events as one set.
pub(crate) trait Decoded: Send + Sync {
    /// What became of the page's event at `index`.
    fn slot(&self, index: usize) -> &Slot;
    /// A decoded event, as `Recorded<E>`.
    fn event(&self, at: usize) -> &dyn Any;
    /// Itself, for who knows the type.
    fn as_any(&self) -> &dyn Any;
}

/// A page's events, decoded as `E`.
pub(crate) struct DecodedEvents<E> {
    slots: Vec<Slot>,
    pub(crate) events: Vec<Recorded<E>>,
}

impl<E: Event> Decoded for DecodedEvents<E> {
    fn slot(&self, index: usize) -> &Slot {
        &self.slots[index]
    }

    fn event(&self, at: usize) -> &dyn Any {
        &self.events[at]
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

fn decode<E: Event>(tenant: &TenantId, stored: &[StoredEvent]) -> Box<dyn Decoded> {
    let mut decoded = DecodedEvents::<E> {
        slots: Vec::with_capacity(stored.len()),
        events: Vec::with_capacity(stored.len()),
    };
    for event in stored {
        let slot = match E::TYPES.contains(&event.event_type.as_str()) {
            false => Slot::Other,
            true => match recorded::<E>(tenant, event) {
                Ok(event) => {
                    decoded.events.push(event);
                    Slot::At(decoded.events.len() - 1)
                }
                Err(refused) => Slot::Failed(refused),
            },
        };
        decoded.slots.push(slot);
    }
    Box::new(decoded)
}

fn recorded<E: Event>(tenant: &TenantId, stored: &StoredEvent) -> Result<Recorded<E>, Refused> {
    let refused = |reason: String| Refused { class: "decode", reason };
    let content = || -> Result<(E, Headers), CodecError> {
        let event = E::decode(stored.event_type.as_str(), stored.encoding, &stored.body)?;
        let headers = match stored.headers.is_empty() {
            true => Headers::new(),
            false => bellwether_events::decode("headers", Encoding::MessagePack, &stored.headers)?,
        };
        Ok((event, headers))
    };
    let (event, headers) = catch_unwind(AssertUnwindSafe(content))
        .map_err(|panic| refused(format!("panicked: {}", panic_text(panic))))?
        .map_err(|error| refused(error.to_string()))?;
    Ok(Recorded {
        tenant: tenant.clone(),
        stream: stored.stream.clone(),
        sequence: stored.sequence,
        version: stored.version,
        id: stored.id,
        at: stored.at,
        headers,
        event,
    })
}
