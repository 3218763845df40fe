//! Typed events in streams, on top of the storage ports.

// So that what `#[derive(Event)]` writes reads the same inside and outside of this crate.
extern crate self as bellwether_events;

mod codec;
mod event;
mod recorded;

mod aggregate;
mod given;

mod config;
mod error;
mod expected;
mod limits;

mod append;
mod store;
mod stream;
mod tenant;

mod draft;
mod heads;

mod decide;
mod perform;

#[cfg(test)]
mod examples;

pub use aggregate::{Aggregate, Decide, Plain};
pub use append::{Appended, StreamAppend};
pub use bellwether_macros::Event;
pub use codec::{CodecError, decode, encode, encode_within};
pub use config::StoreConfig;
pub use error::{AppendError, ExecuteError};
pub use event::Event;
pub use expected::Expected;
pub use given::{Given, When, given};
pub use heads::HeadListener;
pub use limits::{APPEND_BYTES_MAX, READ_BYTES_MAX, READ_EVENTS_MAX};
pub use recorded::{Headers, Recorded};
pub use store::Store;
pub use stream::{Executed, Stream};
pub use tenant::Tenant;

/// What `#[derive(Event)]` expands to needs these; not part of the API.
#[doc(hidden)]
pub mod __private {
    pub use std::vec::Vec;

    pub use bellwether_storage::{EVENT_BYTES_MAX, Encoding};
    pub use serde;

    pub use crate::{CodecError, Event, decode};

    /// The content of one event, at most as large as an event may be.
    pub fn encode_content<T: serde::Serialize>(
        name: &str,
        encoding: Encoding,
        content: &T,
    ) -> Result<Vec<u8>, CodecError> {
        crate::encode_within(name, encoding, content, EVENT_BYTES_MAX)
    }

    /// The refusal of a name that no variant has.
    pub fn unknown_type(name: &str, known: &'static [&'static str]) -> CodecError {
        CodecError::UnknownType { name: name.to_owned(), known }
    }
}
