//! Streams, and the two numbers of an event.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{Error, Result, STREAM_ID_BYTES_MAX};

/// Name of a stream inside a tenant: 1 to 512 bytes of UTF-8 without control characters.
///
/// Compared byte for byte: names that differ only in case or in Unicode normal form are different streams.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct StreamId(Arc<str>);

impl StreamId {
    /// Checks and wraps a stream's name.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Rejected`](crate::ErrorKind::Rejected) when the name is empty, too long or holds a control character.
    pub fn new(id: impl AsRef<str>) -> Result<Self> {
        let id = id.as_ref();
        check_name("stream id", id, STREAM_ID_BYTES_MAX)?;
        Ok(Self(id.into()))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for StreamId {
    type Error = Error;

    fn try_from(id: String) -> Result<Self> {
        Self::new(id)
    }
}

impl From<StreamId> for String {
    fn from(id: StreamId) -> Self {
        id.as_str().to_owned()
    }
}

/// Refuses empty, too long and control characters; the message never repeats a huge input.
pub(crate) fn check_name(what: &str, name: &str, bytes_max: usize) -> Result<()> {
    let problem = if name.is_empty() {
        "is empty".to_owned()
    } else if name.len() > bytes_max {
        format!("has {} bytes", name.len())
    } else if name.chars().any(char::is_control) {
        "holds a control character".to_owned()
    } else {
        return Ok(());
    };
    let shown: String = name.chars().take(80).collect();
    Err(Error::rejected(format!("{what} {shown:?} {problem}"))
        .fix(format!("use 1 to {bytes_max} bytes of UTF-8 without control characters")))
}

macro_rules! number {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(u64);

        impl $name {
            /// Before the first.
            pub const ZERO: Self = Self(0);
            /// The largest number a database can hold.
            pub const MAX: Self = Self(i64::MAX as u64);

            /// Wraps a number.
            ///
            /// # Panics
            ///
            /// When it is larger than a database can hold (2⁶³ − 1).
            pub const fn new(number: u64) -> Self {
                assert!(number <= Self::MAX.0, "number exceeds 2^63 - 1");
                Self(number)
            }

            /// The number.
            pub const fn get(self) -> u64 {
                self.0
            }

            /// The number as databases store it.
            pub const fn as_i64(self) -> i64 {
                self.0 as i64
            }

            /// From a stored number.
            ///
            /// # Errors
            ///
            /// [`ErrorKind::Corrupt`](crate::ErrorKind::Corrupt) when it is negative.
            pub fn from_i64(number: i64) -> Result<Self> {
                u64::try_from(number)
                    .map(Self)
                    .map_err(|_| Error::corrupt(format!("negative {} {number}", stringify!($name).to_lowercase())))
            }

            /// This number plus `n`.
            ///
            /// # Panics
            ///
            /// When the sum is larger than a database can hold.
            pub const fn plus(self, n: u64) -> Self {
                Self::new(self.0 + n)
            }

            /// The next number.
            pub const fn next(self) -> Self {
                self.plus(1)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

number! {
    /// Position of an event in its tenant: 1, 2, 3 …, contiguous at commit, in commit order. Zero is "before the first".
    ///
    /// Sequences of different tenants say nothing about each other.
    Sequence
}

number! {
    /// Position of an event in its stream: 1, 2, 3 …. Zero is "the stream does not exist".
    Version
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_names_are_refused_or_kept_apart() {
        for good in ["a'b", "a\"b", "a%", "a_", "😀", "Σ", "e\u{301}", "\u{e9}", &"x".repeat(512)] {
            assert_eq!(StreamId::new(good).unwrap().as_str(), good);
        }
        for bad in ["", "a\0b", "a\nb", &"x".repeat(513), &"x".repeat(10_000)] {
            assert!(StreamId::new(bad).is_err());
        }
        assert_ne!(StreamId::new("e\u{301}").unwrap(), StreamId::new("\u{e9}").unwrap());
    }

    #[test]
    fn negative_numbers_are_corrupt() {
        assert_eq!(Sequence::from_i64(-1).unwrap_err().kind(), crate::ErrorKind::Corrupt);
        assert_eq!(Sequence::from_i64(i64::MAX).unwrap(), Sequence::MAX);
    }
}
