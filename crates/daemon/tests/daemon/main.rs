//! The daemon on real databases: rows T1 T3–T8 X4.

mod bank;
mod ground;

mod budget;
mod faults;
mod follows;
mod kit;
mod owners;
mod poison;
mod registering;
mod sql;
