//! Every bound of the writer, with its reason.

use std::time::Duration;

use bellwether_storage::{APPENDS_PER_TENANT_AND_BATCH_BYTES_MAX, BATCH_BYTES_MAX};

/// Bounds of one database's writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bounds {
    /// Bytes of a shared batch.
    pub(crate) batch_bytes: usize,
    /// Bytes of one tenant in a shared batch; an append beyond it flies alone.
    pub(crate) tenant_bytes: usize,
    /// Appends of one tenant in one flight.
    pub(crate) fold: usize,
    /// Shared batches in flight: one fills while the other syncs.
    pub(crate) batches: usize,
    /// Large appends in flight.
    pub(crate) larges: usize,
    /// Tenants in the two-step path.
    pub(crate) locks: usize,
    /// Tenants whose head is waited for.
    pub(crate) slows: usize,
    /// Reads in flight.
    pub(crate) reads: usize,
    /// Streams of one read, beyond those of the first append.
    pub(crate) read_streams: usize,
    /// Streams of one append that is decided on cached versions; one with more reads under the lock.
    pub(crate) cached_streams: usize,
    /// Batches that found a head locked before the tenant goes to the slow lane.
    pub(crate) skips: u32,
    /// Batches that found another head before the tenant goes to the two-step path.
    pub(crate) stales: u32,
    /// How long the two-step path waits for a head.
    pub(crate) lock_wait: Duration,
    /// How long the slow lane waits for a head, each time.
    pub(crate) slow_wait: Duration,
    /// How often the slow lane waits before the callers are told.
    pub(crate) slow_waits: u32,
    /// Flights of an append that may fail before its caller is told.
    pub(crate) strikes: u32,
    /// Streams whose versions are kept.
    pub(crate) versions: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            batch_bytes: BATCH_BYTES_MAX,
            tenant_bytes: APPENDS_PER_TENANT_AND_BATCH_BYTES_MAX,
            fold: 1_024,
            batches: 2,
            larges: 1,
            locks: 2,
            slows: 2,
            reads: 4,
            read_streams: 256,
            cached_streams: 64,
            skips: 3,
            stales: 2,
            // Long enough for a commit that is just ending, short enough that the two-step path never turns into a slow lane.
            lock_wait: Duration::from_millis(50),
            slow_wait: Duration::from_secs(2),
            slow_waits: 30,
            strikes: 10,
            versions: 65_536,
        }
    }
}

/// Wait before the next try after this many failures in a row: none, then 25 ms doubling up to `most`.
pub(super) fn back_off(failures: u32, most: Duration) -> Duration {
    match failures {
        0 => Duration::ZERO,
        _ => Duration::from_millis(25 << failures.min(10)).min(most),
    }
}
