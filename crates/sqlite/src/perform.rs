//! What touches the file: connections, the one writer, the readers, and the ports on top of them.

pub(crate) mod file;
pub(crate) mod link;
pub(crate) mod migrate;

pub(crate) mod gate;
pub(crate) mod readers;

pub(crate) mod append;
pub(crate) mod head_lock;
pub(crate) mod page;

pub(crate) mod progress;
pub(crate) mod unit;
pub(crate) mod user_statement;
pub(crate) mod views;

pub(crate) mod discovery;
pub(crate) mod tenants;
