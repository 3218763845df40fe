//! How decisions are carried out: tasks, timers, locks and databases.

pub(crate) mod agent;
pub(crate) mod budget;
pub(crate) mod budget_config;
#[cfg(test)]
mod budget_exam;
pub(crate) mod budget_status;
pub(crate) mod desk;
pub(crate) mod discovery;
pub(crate) mod fleet;
mod letters;
pub(crate) mod line;
pub(crate) mod memory;
pub(crate) mod permits;
pub(crate) mod positions;
mod room;
mod route;
pub(crate) mod sentinel;
pub(crate) mod site;
mod sql;
pub(crate) mod sync;
pub(crate) mod tally;
mod turn;
pub(crate) mod turns;
pub mod wait_order;
mod work;
