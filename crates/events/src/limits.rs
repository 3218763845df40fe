//! Bounds of this layer, with their reasons.

/// Bytes of one append over all its events: it is held in memory until it is committed, and it is one transaction under one
/// head. Larger imports go in as several appends.
pub const APPEND_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Bytes one call of `read` returns at most; the page ends early and the next call goes on.
pub const READ_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// Events one call of `read` returns at most.
pub const READ_EVENTS_MAX: u32 = 10_000;

/// Events per round trip while an aggregate is loaded.
pub(crate) const LOAD_PAGE_EVENTS: u32 = 1_000;

/// Bytes per round trip while an aggregate is loaded.
pub(crate) const LOAD_PAGE_BYTES: u64 = 1024 * 1024;
