//! The two primitives the [desk](super::desk) is built from, named in one place so that loom can put its own in their stead.

pub(crate) use std::sync::{Arc, Mutex};
