//! Errors of starting, waiting and stopping.

use std::time::Duration;

use bellwether_storage::{Error, Sequence, TenantId};

use crate::AgentState;

/// The daemon could not start or stop.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DaemonError {
    /// A number of the configuration does not fit.
    #[error("configuration field {field} {problem}; {fix}")]
    Config {
        /// The field.
        field: &'static str,
        /// What is wrong with it.
        problem: String,
        /// What to do.
        fix: String,
    },
    /// A projection is not registered rightly: its name is used twice, a stage takes from a document nobody makes.
    #[error("projection {projection}: {problem}; {fix}")]
    Projection {
        /// The projection.
        projection: String,
        /// What is wrong with it.
        problem: String,
        /// What to do.
        fix: String,
    },
    /// A projection in SQL meets a database that does not speak a dialect of its.
    #[error(
        "projection {projection} is written in SQL for {dialects}, but database {database} {problem}; use another store, or register it as a View"
    )]
    NoSql {
        /// The projection.
        projection: String,
        /// The dialects it supports.
        dialects: String,
        /// The database.
        database: String,
        /// What that speaks.
        problem: String,
    },
    /// A database refused or could not be reached.
    #[error("database {database}: {source}")]
    Storage {
        /// The database.
        database: String,
        /// What it said.
        source: Error,
    },
    /// Pages in flight did not end in time and were dropped: they roll back.
    #[error("{pages} agents did not end within {after:?} and were dropped; their pages roll back")]
    StopDeadline {
        /// How many.
        pages: usize,
        /// The deadline.
        after: Duration,
    },
}

impl DaemonError {
    pub(crate) fn config(field: &'static str, problem: &str, fix: &str) -> Self {
        Self::Config { field, problem: problem.to_owned(), fix: fix.to_owned() }
    }

    pub(crate) fn projection(projection: &str, problem: impl Into<String>, fix: impl Into<String>) -> Self {
        Self::Projection { projection: projection.to_owned(), problem: problem.into(), fix: fix.into() }
    }
}

/// Who is behind, after waiting.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NotCaughtUp {
    /// At least this agent has not reached the head of its tenant, and `agents_behind - 1` others.
    #[error(
        "projection {projection} of tenant {tenant} is at {progress} of {head} ({state}) after {after:?}; {agents_behind} agents are behind"
    )]
    Behind {
        /// The projection.
        projection: String,
        /// The tenant.
        tenant: TenantId,
        /// How far it is.
        progress: Sequence,
        /// The head it should have reached.
        head: Sequence,
        /// What it is doing.
        state: AgentState,
        /// How long was waited.
        after: Duration,
        /// How many agents are behind, this one included.
        agents_behind: usize,
    },
    /// The heads could not be read.
    #[error("cannot read the heads: {0}")]
    Storage(#[from] Error),
}
