//! Counting work done.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::DaemonCounters;

/// A number that only rises.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    pub(crate) fn add(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    pub(crate) fn raise(&self, n: u64) {
        self.0.fetch_max(n, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Work of a daemon since its start.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) pages: Count,
    pub(crate) events: Count,
    pub(crate) documents: Count,
    pub(crate) flushes: Count,
    pub(crate) dead_letters: Count,
    pub(crate) retries: Count,
    pub(crate) polls: Count,
    pub(crate) page_bytes_peak: Count,
}

impl Tally {
    pub(crate) fn counters(&self) -> DaemonCounters {
        DaemonCounters {
            pages: self.pages.get(),
            events: self.events.get(),
            documents: self.documents.get(),
            flushes: self.flushes.get(),
            dead_letters: self.dead_letters.get(),
            retries: self.retries.get(),
            polls: self.polls.get(),
            page_bytes_peak: self.page_bytes_peak.get(),
        }
    }
}
