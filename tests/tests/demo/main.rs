//! The main job as a user runs it: the demo as a process of its own, on real stores, killed and restarted, lied to and asked.

mod answers;
mod crashes;
mod history;
mod inputs;
mod process;
mod sharing;
