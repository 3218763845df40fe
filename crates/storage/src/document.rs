//! Documents of views, and dead letters.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use crate::stream::check_name;
use crate::{
    Build, DOCUMENT_KEY_BYTES_MAX, EventId, EventType, ProgressKey, Result, Sequence, TenantNo, Timestamp,
};

/// Name of a view: 1 to 128 bytes without control characters. With its version it has a table of its own.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ViewName(String);

impl ViewName {
    /// Checks and wraps a view's name.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Rejected`](crate::ErrorKind::Rejected) when the name is empty, too long or holds a control character.
    pub fn new(name: impl Into<String>) -> Result<Self> {
        let name = name.into();
        check_name("view name", &name, 128)?;
        Ok(Self(name))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ViewName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Number of a view's table inside one database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ViewNo(pub i32);

/// Key of a document inside its view and tenant: 1 to 1,024 bytes without control characters, compared byte for byte.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DocumentKey(Arc<str>);

impl DocumentKey {
    /// Checks and wraps a document's key.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Rejected`](crate::ErrorKind::Rejected) when the key is empty, too long or holds a control character.
    pub fn new(key: impl AsRef<str>) -> Result<Self> {
        let key = key.as_ref();
        check_name("document key", key, DOCUMENT_KEY_BYTES_MAX)?;
        Ok(Self(key.into()))
    }

    /// The key.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for DocumentKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<&crate::StreamId> for DocumentKey {
    fn from(id: &crate::StreamId) -> Self {
        // A stream id keeps stricter bounds than a key.
        Self(id.as_str().into())
    }
}

/// The documents of one view of one tenant, in one build.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DocumentSet {
    /// The view.
    pub view: ViewNo,
    /// The tenant.
    pub tenant: TenantNo,
    /// The build.
    pub build: Build,
}

/// A stored document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// Its key.
    pub key: DocumentKey,
    /// Its encoded content.
    pub body: Bytes,
}

/// Stores or deletes one document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentWrite {
    /// Its key.
    pub key: DocumentKey,
    /// The new content; `None` deletes (deleting what is not there is fine).
    pub body: Option<Bytes>,
}

impl DocumentWrite {
    /// What this write counts against a byte budget.
    pub fn size(&self) -> usize {
        self.key.as_str().len() + self.body.as_ref().map_or(0, Bytes::len)
    }
}

/// An event that a projection's member could not work on, kept for an operator.
///
/// Keyed by (progress key, sequence, member), so that doing a page again does not double it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetter {
    /// The progress row it belongs to.
    pub key: ProgressKey,
    /// The event.
    pub sequence: Sequence,
    /// Member of a composite that failed; the projection's own name otherwise.
    pub member: String,
    /// The event's id.
    pub event_id: EventId,
    /// The event's type.
    pub event_type: EventType,
    /// Class of the failure: `apply`, `decode`, …
    pub class: String,
    /// What the code said; cut to 4 KiB by the caller.
    pub reason: String,
    /// When, by the database's clock; ignored on write unless a moment was passed in.
    pub at: Timestamp,
}
