//! Rules without I/O.

pub(crate) mod residence;
