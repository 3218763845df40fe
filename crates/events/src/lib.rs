//! Typed events in streams, on top of the storage ports.
//!
//! (Overview, model, guarantees and a running example come with the store.)

mod codec;
mod event;
mod heads;
mod recorded;

pub use codec::{CodecError, decode, encode};
pub use event::Event;
pub use heads::HeadListener;
pub use recorded::{Headers, Recorded};

/// What `#[derive(Event)]` expands to needs these; not part of the API.
#[doc(hidden)]
pub mod __private {
    pub use bellwether_storage::Encoding;
    pub use serde;
}
