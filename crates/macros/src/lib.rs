//! `#[derive(Event)]`: stable names and encoded contents for the variants of an enum.
//!
//! Use it through `bellwether` or `bellwether-events`, which re-export it beside the trait it implements.
//!
//! # Example
//!
//! ```
//! use bellwether_events::Event;
//!
//! #[derive(Debug, PartialEq, Event)]
//! enum Account {
//!     #[event(name = "account-opened")]
//!     Opened { owner: String },
//!     Deposited {
//!         cents: i64,
//!         #[serde(default)]
//!         note: String,
//!     },
//!     Closed,
//! }
//!
//! assert_eq!(Account::TYPES, ["account-opened", "Deposited", "Closed"]);
//!
//! // Only the content is stored beside the name, and fields may be added.
//! # use bellwether_storage::Encoding;
//! let json = Account::Opened { owner: "Ada".into() }.encode(Encoding::Json)?;
//! assert_eq!(json, br#"{"owner":"Ada"}"#);
//! let old = Account::decode("Deposited", Encoding::Json, br#"{"cents":5}"#)?;
//! assert_eq!(old, Account::Deposited { cents: 5, note: String::new() });
//! # Ok::<(), bellwether_events::CodecError>(())
//! ```
//!
//! # Model
//!
//! An event is stored as a *name* and a *content*. The name stands in a column of its own, so that a database can filter by it;
//! the content is the variant's fields alone, without the enum around them. For each variant the derive writes two private
//! structs with the variant's fields: one that borrows them to be encoded, one that owns them to be decoded. The enum itself
//! needs neither `Serialize` nor `Deserialize`.
//!
//! # Guarantees
//!
//! * The name is the variant's identifier as written, or what `#[event(name = "…")]` says. Nothing else changes it: no
//!   `rename_all`, no module path. Renaming a variant without keeping its name makes stored events unreadable, so keep it.
//! * A name means the same in a whole tenant, whatever enum declares it: a projection may declare an enum of its own with just
//!   the types it wants. So two enums of one tenant that mean different things by `Opened` need different names, for example
//!   `#[event(name = "account-opened")]`.
//! * Two variants of one enum never share a name, and every name can be stored: both are compile errors.
//! * A variant without fields is stored as an empty map, so that it may get fields later.
//!
//! # Attributes
//!
//! | Where | What |
//! |---|---|
//! | variant, or the struct itself | `#[event(name = "account-opened")]`: the stored name, 1 to 128 bytes without control characters |
//! | field | `#[serde(…)]` as usual: `rename`, `alias`, `default`, `with`, `skip`, `flatten`, … |
//! | variant, or the struct itself | `#[serde(rename_all = …)]`, `#[serde(deny_unknown_fields)]`: for the fields of the content |
//! | enum | `#[serde(rename_all_fields = …)]`: for the fields of every variant |
//!
//! Other `#[serde(…)]` attributes of an enum or variant concern a serde form of the whole enum, which is not what is stored;
//! they are left alone.
//!
//! # Where to start reading
//!
//! `input.rs` says what may be derived and what is refused; `expand.rs` writes the code.

mod attributes;
mod expand;
mod input;
mod root;

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

/// Makes an enum (each variant a type of event) or a struct (one type of event) an `Event`.
///
/// Every field must be `Serialize + Deserialize`; the type itself need not be. See the crate's page for names,
/// attributes and an example.
#[proc_macro_derive(Event, attributes(event, serde))]
pub fn event(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    match input::EventInput::from_derive(&input) {
        Ok(event) => expand::expand(&event, &root::private_path()).into(),
        Err(error) => error.into_compile_error().into(),
    }
}
