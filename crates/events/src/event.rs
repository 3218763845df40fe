//! The contract of an event type.

use bellwether_storage::Encoding;

use crate::CodecError;

/// A type whose values are events: usually an enum with `#[derive(Event)]`.
///
/// Only the content of a variant is encoded; its name stands beside it, so that databases can filter by type.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an event",
    note = "derive it: `#[derive(Event)] enum … {{ … }}` (every field must be Serialize + Deserialize)"
)]
pub trait Event: Sized + Send + Sync + 'static {
    /// Stable names of all types this enum knows; only these are loaded for a projection that works on it.
    const TYPES: &'static [&'static str];

    /// Stable name of this value's type; one of [`TYPES`](Event::TYPES).
    fn type_name(&self) -> &'static str;

    /// The encoded content.
    ///
    /// # Errors
    ///
    /// [`CodecError::Encode`] when a field has no such form.
    fn encode(&self, encoding: Encoding) -> Result<Vec<u8>, CodecError>;

    /// The value back from its type's name and its content.
    ///
    /// # Errors
    ///
    /// [`CodecError::UnknownType`] for a name not in [`TYPES`](Event::TYPES), [`CodecError::Decode`] when the bytes do not fit.
    fn decode(type_name: &str, encoding: Encoding, body: &[u8]) -> Result<Self, CodecError>;
}
