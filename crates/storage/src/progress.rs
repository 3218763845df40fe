//! How far a projection is, and who may move it.

use std::fmt;

use uuid::Uuid;

use crate::stream::check_name;
use crate::{Result, Sequence, TenantNo};

/// Name of a projection: 1 to 128 bytes without control characters.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProjectionName(String);

impl ProjectionName {
    /// Checks and wraps a projection's name.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Rejected`](crate::ErrorKind::Rejected) when the name is empty, too long or holds a control character.
    pub fn new(name: impl Into<String>) -> Result<Self> {
        let name = name.into();
        check_name("projection name", &name, 128)?;
        Ok(Self(name))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ProjectionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Number of a projection inside one database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProjectionNo(pub i32);

/// One build of a projection's documents. A rebuild is a new build beside the active one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Build(pub i32);

impl Build {
    /// The build every projection starts with.
    pub const FIRST: Self = Self(1);
}

/// Key of a progress row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProgressKey {
    /// The tenant.
    pub tenant: TenantNo,
    /// The projection.
    pub projection: ProjectionNo,
    /// Version of the projection's code.
    pub version: u32,
    /// Build of its documents.
    pub build: Build,
}

/// Counts grants of one agent; a write of an older generation is refused.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Generation(pub i64);

/// One incarnation of a process. A restarted process is another owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner(pub Uuid);

/// A progress row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Everything up to here has been worked on.
    pub sequence: Sequence,
    /// The newest grant that positioned itself here.
    pub generation: Generation,
    /// Who holds that grant; `None` before the first.
    pub owner: Option<Owner>,
}

/// With what right a runner positions itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FenceClaim {
    /// By a grant of the leader: succeeds if `(generation, owner)` is larger than the stored pair, or equal to it.
    Granted(Generation),
    /// Without a cluster: takes the row over at the stored generation + 1. With `seen`, only if the row is still exactly
    /// that: two that stand by never both take over.
    TakeOver {
        /// The row the decision was made on; `None` takes over whatever is there.
        seen: Option<Progress>,
    },
}

/// Asks to become the one who may move a progress row.
#[derive(Debug, Clone, Copy)]
pub struct FenceRequest {
    /// The row; created at sequence zero when it is not there.
    pub key: ProgressKey,
    /// By what right.
    pub claim: FenceClaim,
}

/// What became of a fence request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FenceOutcome {
    /// The row is ours; start from here.
    Positioned(Progress),
    /// Somebody else's claim is stronger. With a grant in hand, take ownership again above this generation.
    Refused(Progress),
}
