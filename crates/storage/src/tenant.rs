//! Tenants, and where their events lie.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{Error, Result, TENANT_ID_BYTES_MAX};

/// Name of a tenant: 1 to 63 characters of `a-z`, `0-9`, `_`, `-`, the first one a letter or digit.
///
/// Narrow on purpose: the id ends up in agent addresses, file names and log lines. It never becomes SQL text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TenantId(Arc<str>);

impl TenantId {
    /// Checks and wraps a tenant's name.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Rejected`](crate::ErrorKind::Rejected) when the name is not of the form above: choose another, or derive
    /// one (for example a hash) and keep the display name elsewhere.
    pub fn new(id: impl AsRef<str>) -> Result<Self> {
        let id = id.as_ref();
        let allowed = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'_' || c == b'-';
        let first_ok = id.bytes().next().is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
        if !first_ok || id.len() > TENANT_ID_BYTES_MAX || !id.bytes().all(allowed) {
            let shown: String = id.chars().take(80).collect();
            return Err(Error::rejected(format!("tenant id {shown:?} is not allowed"))
                .fix("use 1 to 63 characters of a-z, 0-9, _ and -, starting with a letter or digit"));
        }
        Ok(Self(id.into()))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TenantId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl AsRef<str> for TenantId {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for TenantId {
    type Error = Error;

    fn try_from(id: String) -> Result<Self> {
        Self::new(id)
    }
}

impl From<TenantId> for String {
    fn from(id: TenantId) -> Self {
        id.as_str().to_owned()
    }
}

/// Number of a tenant inside one database: what keys are made of. Meaningless in another database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TenantNo(pub i32);

/// Partition of the events table a tenant's events lie in: a number we choose, stored in the head row.
///
/// 0 to 15 are shared by small tenants; 1000 and above belong to one tenant each (`protocols.md` §7).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place(pub i32);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_narrow_names_are_allowed() {
        for good in ["a", "0", "acme", "a_b", "a-b", &"x".repeat(63)] {
            assert_eq!(TenantId::new(good).unwrap().as_str(), good);
        }
        let long = "x".repeat(64);
        let huge = "x".repeat(10_000);
        for bad in ["", "_a", "-a", "A", "a b", "a'b", "a\"b", "a%", "a\0", "a/b", "ä", "😀", &long, &huge]
        {
            assert!(TenantId::new(bad).is_err(), "{bad:?} was accepted");
        }
    }

    #[test]
    fn a_refusal_never_repeats_a_huge_input() {
        assert!(TenantId::new("é".repeat(10_000)).unwrap_err().to_string().len() < 400);
    }
}
