//! Typed events in streams, on top of the storage ports.
//!
//! # Example
//!
//! ```
//! use std::sync::Arc;
//!
//! use bellwether_events::{Aggregate, Decide, Event, Expected, Store, given};
//! use bellwether_memory::Memory;
//! use bellwether_storage::Database;
//! use bellwether_tenants::{Placed, Rule};
//!
//! #[derive(Debug, Clone, PartialEq, Event)]
//! enum Money {
//!     Opened { owner: String },
//!     Deposited { cents: i64 },
//!     Withdrawn { cents: i64 },
//! }
//!
//! #[derive(Default)]
//! struct Account {
//!     cents: i64,
//! }
//!
//! impl Aggregate for Account {
//!     const NAME: &'static str = "account";
//!     type Event = Money;
//!     fn evolve(&mut self, event: &Money) {
//!         match event {
//!             Money::Opened { .. } => {}
//!             Money::Deposited { cents } => self.cents += cents,
//!             Money::Withdrawn { cents } => self.cents -= cents,
//!         }
//!     }
//! }
//!
//! #[derive(Clone)]
//! struct Withdraw(i64);
//!
//! #[derive(Debug, PartialEq, thiserror::Error)]
//! #[error("{have} cents in the account, {want} asked for")]
//! struct Short { have: i64, want: i64 }
//!
//! impl Decide<Withdraw> for Account {
//!     type Error = Short;
//!     fn decide(&self, Withdraw(want): Withdraw) -> Result<Vec<Money>, Short> {
//!         if want > self.cents {
//!             return Err(Short { have: self.cents, want });
//!         }
//!         Ok(vec![Money::Withdrawn { cents: want }])
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // Decisions are tested without a store.
//! given::<Account>([Money::Deposited { cents: 5 }]).when(Withdraw(9)).then_err(Short { have: 5, want: 9 });
//!
//! // Any store will do: `bellwether_sqlite::Sqlite::open("hello.db").await?` keeps everything in a file.
//! let databases: Vec<Arc<dyn Database>> = vec![Arc::new(Memory::new())];
//! let store = Store::new(databases.clone(), Arc::new(Placed::new(databases, Rule::Single)));
//! let account = store.tenant("acme")?.stream::<Account>("a-1")?;
//! account.append_expecting(Expected::None, [Money::Opened { owner: "Ada".into() }]).await?;
//! account.append([Money::Deposited { cents: 900 }]).await?;
//! account.execute(Withdraw(250)).await?;
//! assert_eq!(account.load().await?.0.cents, 650);
//! # Ok(()) }
//! ```
//!
//! # Model
//!
//! A [`Store`] holds databases; a [`Tenant`] lives in one of them; a [`Stream`] belongs to one tenant. There is no stream without
//! [`Store::tenant`], and none of them does I/O until it is used. Events are values of an enum with `#[derive(Event)]`: a stored
//! name and the variant's content, as MessagePack or, by choice, JSON ([`StoreConfig::encoding`]). An [`Aggregate`] is what a
//! stream's events add up to, rebuilt whenever it is loaded; [`Decide`] turns a command into events, without I/O.
//!
//! One *writer* per database carries appends out. Appends that arrive while a commit is in flight share the next one; the writer
//! knows the heads and stream versions it left behind, so that an append normally takes one statement and no read.
//!
//! # Guarantees
//!
//! * An append goes in as a whole or not at all; its events have neighbouring sequences.
//! * Appends of one caller to one tenant go in, in the order in which they were handed in.
//! * A [`Conflict`](AppendError::Conflict) was true at some moment between call and answer, whatever was cached.
//! * A conflict, a limit or a row the database refuses fails its own caller only. A tenant whose head somebody else holds keeps
//!   nobody else waiting.
//! * A lost answer is resolved before anybody is told. Only when that fails as well, the error is `Unknown`.
//! * An append with an id ([`StreamAppend::id`]) returns its first result when it is sent again, from any process.
//!
//! # Limits
//!
//! 4 MiB an event, 16 KiB of headers an event, 10,000 events and 64 MiB an append: all checked while encoding, before anything
//! is sent, without allocating beyond them. A tenant has at most 4 MiB of appends waiting for a commit, a database 64 MiB; callers
//! beyond wait ([`StoreConfig`]).
//!
//! # Failure handling
//!
//! A database that cannot be reached is tried again with growing pauses for about ten seconds, a held head for about a minute;
//! then the callers get `Unavailable`: nothing happened. After a failover everything cached is void. [`Store::close`] commits
//! what was taken.
//!
//! # Where to start reading
//!
//! `stream.rs` for what users call; `decide.rs` for the deciding writer, a plain machine; `perform/` for the tasks around it.

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
