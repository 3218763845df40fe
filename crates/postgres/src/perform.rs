//! Connections: pools of them, one at a time, and what must be done before the first is used.

pub(crate) mod blockers;
pub(crate) mod link;
pub(crate) mod migrate;
pub(crate) mod pool;
