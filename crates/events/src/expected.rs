//! What an append expects of its stream.

use std::fmt;

use bellwether_storage::Version;

/// The version a stream must have for an append to go in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Expected {
    /// Any, none included: the append never conflicts.
    #[default]
    Any,
    /// The stream must not exist.
    None,
    /// The stream must be exactly here. Zero is the same as [`Expected::None`].
    Exact(Version),
}

impl From<Version> for Expected {
    fn from(version: Version) -> Self {
        Self::Exact(version)
    }
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("any version"),
            Self::None => f.write_str("no such stream"),
            Self::Exact(version) => write!(f, "version {version}"),
        }
    }
}
