//! What the daemon decides: plain synchronous code over plain data.
//!
//! No clock, no tokio, no tracing, no randomness and no order of a hash map: moments are passed in, so every decision can be
//! repeated, tested at random and simulated.

pub(crate) mod back_off;
pub(crate) mod bisect;
pub(crate) mod budget;
#[cfg(test)]
mod budget_exam;
#[cfg(test)]
pub(crate) mod budget_faults;
#[cfg(test)]
mod budget_rules;
pub(crate) mod course;
pub(crate) mod gate;
pub(crate) mod hopper;
pub(crate) mod line;
pub(crate) mod memory;
pub(crate) mod sizing;
pub(crate) mod takeover;
pub(crate) mod tick;
