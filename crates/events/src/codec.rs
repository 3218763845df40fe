//! Bytes of events, documents and headers.

use bellwether_storage::Encoding;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A value could not be turned into bytes or back.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CodecError {
    /// The value cannot be encoded.
    #[error("cannot encode {what}: {source}")]
    Encode {
        /// Type of the event or document.
        what: String,
        /// What the encoder said.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The bytes are not what the type expects.
    #[error("cannot decode {what}: {source}")]
    Decode {
        /// Type of the event or document.
        what: String,
        /// What the decoder said.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// No variant of the enum has this name.
    #[error("unknown event type {name:?}; this program knows {known:?}")]
    UnknownType {
        /// The stored name.
        name: String,
        /// Names the enum declares.
        known: &'static [&'static str],
    },
}

/// Encodes a value; MessagePack is written with field names, so that fields may come and go.
///
/// # Errors
///
/// [`CodecError::Encode`] when the value has no such form (for example a map with composite keys in JSON).
pub fn encode<T: Serialize + ?Sized>(what: &str, encoding: Encoding, value: &T) -> Result<Vec<u8>, CodecError> {
    let failed = |source| CodecError::Encode { what: what.to_owned(), source };
    match encoding {
        Encoding::MessagePack => rmp_serde::to_vec_named(value).map_err(|error| failed(error.into())),
        Encoding::Json => serde_json::to_vec(value).map_err(|error| failed(error.into())),
        other => Err(failed(format!("encoding {other:?} is not supported here").into())),
    }
}

/// Decodes a value.
///
/// # Errors
///
/// [`CodecError::Decode`] when the bytes are not what the type expects.
pub fn decode<T: DeserializeOwned>(what: &str, encoding: Encoding, bytes: &[u8]) -> Result<T, CodecError> {
    let failed = |source| CodecError::Decode { what: what.to_owned(), source };
    match encoding {
        Encoding::MessagePack => rmp_serde::from_slice(bytes).map_err(|error| failed(error.into())),
        Encoding::Json => serde_json::from_slice(bytes).map_err(|error| failed(error.into())),
        other => Err(failed(format!("encoding {other:?} is not supported here").into())),
    }
}
