//! What only a store in a file has to prove; the rest is the exam.

mod given;

mod file;
mod log;
mod page;
mod statements;
