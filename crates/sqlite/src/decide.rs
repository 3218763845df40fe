//! Rules without I/O: which appends are acceptable, whose turn it is to write, who may hold a progress row, which SQL a user
//! may run inside a page.

pub(crate) mod admission;
pub(crate) mod claim;
pub(crate) mod guard;
pub(crate) mod turns;
