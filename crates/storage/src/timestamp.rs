//! Moments, in microseconds.

use serde::{Deserialize, Serialize};

/// Microseconds since 1970-01-01 UTC; negative before it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(i64);

impl Timestamp {
    /// From microseconds since 1970-01-01 UTC.
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Microseconds since 1970-01-01 UTC.
    pub const fn as_micros(self) -> i64 {
        self.0
    }
}
