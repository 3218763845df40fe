//! The tasks of this workspace, as a library so that the whole-system tests can run [`tidy`] too.
//!
//! Nothing here depends on the crates of the workspace: a task builds and starts what they provide, so that it works
//! while one of them is broken. Start reading at [`tidy`] for the rules, at [`mod@test`] for how servers are provided.

pub mod demo;
pub mod test;
pub mod tidy;
pub mod workspace;

/// A failure in words for whoever ran the task.
pub type Error = Box<dyn std::error::Error + Send + Sync>;
