//! What an adapter brings to the exam.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bellwether_storage::{Database, Sequence, TenantNo};

/// An adapter that sits the exam.
pub trait Enrolment: Send + 'static {
    /// What the cases run on.
    type Subject: Subject;

    /// Cases that cannot apply to this adapter, each with the reason. Their names are checked against the list.
    fn not_applicable() -> &'static [NotApplicable];

    /// A fresh, empty database. Nothing of another case may be in it.
    ///
    /// # Errors
    ///
    /// [`Missing`] when this machine lacks what the adapter needs (a server's binaries): the case is reported as skipped,
    /// and fails where `CI` or `BELLWETHER_REQUIRE_SERVERS` is set.
    fn fresh() -> impl Future<Output = Result<Self::Subject, Missing>> + Send;
}

/// One fresh database, as two processes see it, and what no port offers.
///
/// The hooks reach behind the adapter's back (a driver connection of the test's own); they panic when they do not succeed.
#[async_trait]
pub trait Subject: Send + Sync + 'static {
    /// The handle of one process.
    fn first(&self) -> &Arc<dyn Database>;

    /// The handle of another process to the same database: nothing in memory is shared with the first.
    fn second(&self) -> &Arc<dyn Database>;

    /// Raises a tenant's head to this number, without events below it.
    async fn raise_head(&self, tenant: TenantNo, head: Sequence);

    /// Deletes one event's row.
    async fn remove_event(&self, tenant: TenantNo, sequence: Sequence);

    /// Opens or closes a tenant for appends.
    async fn set_open(&self, tenant: TenantNo, open: bool);

    /// Arms disturbance number `step` (0, 1, 2 …) for the next commit of this kind through [`Subject::first`]: the connection
    /// breaks, or the answer is lost, at one more point of the call. False when there is no such disturbance any more.
    async fn disturb(&self, commit: Commit, step: u32) -> bool {
        panic!("no disturbance {step} of {commit:?} here: list the case as not applicable, with the reason")
    }

    /// Descriptions of the schema made at once and of the schema that came through every migration.
    async fn schemas(&self) -> Schemas {
        panic!("no schema here: list the case as not applicable, with the reason")
    }

    /// Prepares every SQL file of the adapter against this database.
    async fn prepare_all(&self) -> Vec<Prepared> {
        panic!("no SQL files here: list the case as not applicable, with the reason")
    }

    /// How long the case that holds an append open holds it. 30 s, unless waiting proves nothing here.
    fn held_open(&self) -> Duration {
        Duration::from_secs(30)
    }
}

/// A call that commits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Commit {
    /// [`EventLog::append`](bellwether_storage::EventLog::append).
    Append,
    /// [`HeadLock::append`](bellwether_storage::HeadLock::append).
    LockedAppend,
    /// [`UnitOfWork::finish`](bellwether_storage::UnitOfWork::finish).
    Finish,
}

/// Two descriptions of a schema in the adapter's own terms: equal text means equal schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schemas {
    /// Of a database made today.
    pub fresh: String,
    /// Of a database made by the first version and brought up one migration at a time.
    pub migrated: String,
}

/// What became of preparing one SQL file.
#[derive(Debug, Clone)]
pub struct Prepared {
    /// Path of the file below `sql/`.
    pub file: String,
    /// What the database said against it, if anything.
    pub refused: Option<String>,
}

/// A case that cannot apply to an adapter.
#[derive(Debug, Clone, Copy)]
pub struct NotApplicable {
    /// Name of the case.
    pub case: &'static str,
    /// Why it cannot apply; a sentence for a reader who doubts it.
    pub reason: &'static str,
}

/// What this machine lacks.
#[derive(Debug, Clone)]
pub struct Missing {
    /// What is missing and how to install it.
    pub reason: String,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}
