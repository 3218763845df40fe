//! The daemon on real databases: rows T1 T3–T8 X4.

mod bank;
mod ground;

mod budget;
mod databases;
mod faults;
mod follows;
mod kit;
mod loading;
mod owners;
mod poison;
mod real_bytes;
mod registering;
mod sql;
mod store;
