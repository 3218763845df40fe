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
    /// The value is larger than it may be; encoding stopped there.
    #[error(
        "{what} takes more than {bytes_max} bytes; keep large content elsewhere and its address in the event"
    )]
    TooLarge {
        /// Type of the event or document.
        what: String,
        /// What it may take.
        bytes_max: usize,
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
pub fn encode<T: Serialize + ?Sized>(
    what: &str,
    encoding: Encoding,
    value: &T,
) -> Result<Vec<u8>, CodecError> {
    let failed = |source| CodecError::Encode { what: what.to_owned(), source };
    match encoding {
        Encoding::MessagePack => rmp_serde::to_vec_named(value).map_err(|error| failed(error.into())),
        Encoding::Json => serde_json::to_vec(value).map_err(|error| failed(error.into())),
        other => Err(failed(format!("encoding {other:?} is not supported here").into())),
    }
}

/// Encodes a value into at most `bytes_max` bytes; stops at the first byte beyond, so that a huge value costs no huge buffer.
///
/// # Errors
///
/// As [`encode`]; [`CodecError::TooLarge`] when it does not fit.
pub fn encode_within<T: Serialize + ?Sized>(
    what: &str,
    encoding: Encoding,
    value: &T,
    bytes_max: usize,
) -> Result<Vec<u8>, CodecError> {
    let mut bounded = Bounded { bytes: Vec::new(), bytes_max, full: false };
    let result: Result<(), Box<dyn std::error::Error + Send + Sync>> = match encoding {
        Encoding::MessagePack => rmp_serde::encode::write_named(&mut bounded, value).map_err(Into::into),
        Encoding::Json => serde_json::to_writer(&mut bounded, value).map_err(Into::into),
        other => Err(format!("encoding {other:?} is not supported here").into()),
    };
    match result {
        Ok(()) => Ok(bounded.bytes),
        Err(_) if bounded.full => Err(CodecError::TooLarge { what: what.to_owned(), bytes_max }),
        Err(source) => Err(CodecError::Encode { what: what.to_owned(), source }),
    }
}

/// A buffer that refuses to grow beyond its bound.
struct Bounded {
    bytes: Vec<u8>,
    bytes_max: usize,
    full: bool,
}

impl std::io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if bytes.len() > self.bytes_max - self.bytes.len() {
            self.full = true;
            return Err(std::io::Error::other("the bound is reached"));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
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
        Encoding::MessagePack => {
            let mut decoder = rmp_serde::Deserializer::new(bytes);
            let value = T::deserialize(&mut decoder).map_err(|error| failed(error.into()))?;
            // What stands behind the value was not written by us: the bytes are not what they were.
            match decoder.get_ref().len() {
                0 => Ok(value),
                left => Err(failed(format!("{left} bytes are left over behind the value").into())),
            }
        }
        Encoding::Json => serde_json::from_slice(bytes).map_err(|error| failed(error.into())),
        other => Err(failed(format!("encoding {other:?} is not supported here").into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_left_over_behind_a_value_are_an_error() {
        for encoding in [Encoding::MessagePack, Encoding::Json] {
            let mut bytes = encode("pair", encoding, &(7u64, "seven")).unwrap();
            assert_eq!(decode::<(u64, String)>("pair", encoding, &bytes).unwrap(), (7, "seven".to_owned()));
            for garbage in [0x00, 0x91, 0xc1] {
                bytes.push(garbage);
                assert!(
                    decode::<(u64, String)>("pair", encoding, &bytes).is_err(),
                    "{encoding:?} {garbage:#x}"
                );
            }
        }
    }
}
