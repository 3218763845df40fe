//! The asynchronous shell of the writer: carries out what `decide/` orders, and chooses nothing itself.

mod flight;
mod listeners;
mod room;
mod writer;

pub(crate) use listeners::Listeners;
pub(crate) use room::Room;
pub(crate) use writer::{Submission, WriterHandle};
