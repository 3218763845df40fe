//! How large the load budget is, and when it stops.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::decide::budget::Capacity;

/// The byte budget by default: at most this, however much memory there is. Pages of 500 events are read fastest, and more of
/// them at once than fit in here gain nothing.
pub const BYTES_DEFAULT_MAX: u64 = 256 << 20;

/// The byte budget by default is the memory limit divided by this.
pub const BYTES_DEFAULT_FRACTION: u64 = 8;

/// One working chunk of output by default; every page reserves one on top of its events.
pub const CHUNK_BYTES_DEFAULT: u64 = 1 << 20;

/// A chunk is never more than the byte capacity divided by this, so that eight pages can be in flight.
pub const CHUNK_CAPACITY_FRACTION: u64 = 8;

/// Settings of the load budget. Zero is unbounded wherever it says so.
///
/// ```
/// use bellwether_daemon::BudgetConfig;
///
/// let config = BudgetConfig { events_max: 10_000, ..BudgetConfig::default() };
/// config.validate()?;
///
/// let flutters = BudgetConfig { memory_threshold_percent: 3, ..BudgetConfig::default() };
/// assert!(flutters.validate().unwrap_err().to_string().starts_with("memory_threshold_percent"));
/// # Ok::<(), bellwether_daemon::InvalidBudget>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BudgetConfig {
    /// Events loaded and not yet committed. Default zero: unbounded, since bytes are what runs out.
    pub events_max: u64,
    /// Bytes of those events and of the output made of them. Default `None`: an eighth of the memory limit, at most 256 MiB.
    /// Zero is unbounded.
    pub bytes_max: Option<u64>,
    /// Pages in flight; bounds connections too. Default `None`: twice the cores, at least 4, at most 16. Zero is unbounded.
    pub pages_max: Option<u64>,
    /// No new page from this share of the memory limit on, until it has fallen five points below. Default 90. Zero is never.
    pub memory_threshold_percent: u8,
    /// How often memory is read while anybody waits, and at most before an admission. Default 250 ms: a page takes about
    /// that long, and a reading costs a few small files.
    pub memory_interval_ms: u64,
    /// How long a page may hold its room before it is given up. Default 30 s: a page takes far less than a second unless its
    /// database hangs. Zero is for ever.
    pub page_deadline_ms: u64,
    /// One working chunk of output. Default 1 MiB; see [`BudgetConfig::chunk_bytes_within`].
    pub chunk_bytes: u64,
}

impl Default for BudgetConfig {
    fn default() -> BudgetConfig {
        BudgetConfig {
            events_max: 0,
            bytes_max: None,
            pages_max: None,
            memory_threshold_percent: 90,
            memory_interval_ms: 250,
            page_deadline_ms: 30_000,
            chunk_bytes: CHUNK_BYTES_DEFAULT,
        }
    }
}

impl BudgetConfig {
    /// Checks the settings.
    ///
    /// # Errors
    ///
    /// [`InvalidBudget`] names the first field that cannot be, and what it may be.
    pub fn validate(&self) -> Result<(), InvalidBudget> {
        let threshold = self.memory_threshold_percent;
        if threshold != 0 && !(10..=100).contains(&threshold) {
            return Err(InvalidBudget {
                field: "memory_threshold_percent",
                fix: "set 10 to 100, or 0 for never",
            });
        }
        if self.memory_interval_ms == 0 {
            return Err(InvalidBudget { field: "memory_interval_ms", fix: "set at least 1" });
        }
        if self.chunk_bytes == 0 {
            return Err(InvalidBudget {
                field: "chunk_bytes",
                fix: "set at least 1, or leave the default of 1 MiB",
            });
        }
        Ok(())
    }

    /// The chunk, no larger than an eighth of this byte capacity; zero is unbounded.
    ///
    /// ```
    /// use bellwether_daemon::BudgetConfig;
    ///
    /// let config = BudgetConfig::default();
    /// assert_eq!(config.chunk_bytes_within(0), 1 << 20);
    /// assert_eq!(config.chunk_bytes_within(256 << 20), 1 << 20);
    /// assert_eq!(config.chunk_bytes_within(4 << 20), 512 << 10);
    /// ```
    pub fn chunk_bytes_within(&self, bytes_capacity: u64) -> u64 {
        match bytes_capacity {
            0 => self.chunk_bytes,
            capacity => self.chunk_bytes.min((capacity / CHUNK_CAPACITY_FRACTION).max(1)),
        }
    }

    /// The capacity under a memory limit, if one is known.
    pub(crate) fn capacity(&self, memory_limit_bytes: Option<u64>) -> Capacity {
        let bytes_default = || match memory_limit_bytes {
            Some(limit) => (limit / BYTES_DEFAULT_FRACTION).clamp(1, BYTES_DEFAULT_MAX),
            None => BYTES_DEFAULT_MAX,
        };
        Capacity {
            events: self.events_max,
            bytes: self.bytes_max.unwrap_or_else(bytes_default),
            pages: self.pages_max.unwrap_or_else(pages_default),
        }
    }

    pub(crate) fn page_deadline(&self) -> Option<Duration> {
        (self.page_deadline_ms != 0).then(|| Duration::from_millis(self.page_deadline_ms))
    }
}

/// A setting of the load budget that cannot be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{field} cannot be this: {fix}")]
pub struct InvalidBudget {
    /// The field of [`BudgetConfig`].
    pub field: &'static str,
    /// What to do.
    pub fix: &'static str,
}

fn pages_default() -> u64 {
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u64);
    (2 * cores).clamp(4, 16)
}

#[cfg(test)]
mod tests {
    use super::BudgetConfig;

    fn check(bytes_max: Option<u64>, limit: Option<u64>, expected: u64) {
        let config = BudgetConfig { bytes_max, ..BudgetConfig::default() };
        assert_eq!(config.capacity(limit).bytes, expected, "{bytes_max:?} under {limit:?}");
    }

    // T5
    #[test]
    fn the_default_is_an_eighth_of_the_memory_limit_and_at_most_256_mib() {
        check(None, Some(512 << 20), 64 << 20);
        check(None, Some(2 << 30), 256 << 20);
        check(None, Some(64 << 30), 256 << 20);
        check(None, None, 256 << 20);
    }

    // T5
    #[test]
    fn what_is_set_stands_and_zero_is_unbounded() {
        check(Some(16 << 20), Some(512 << 20), 16 << 20);
        check(Some(0), Some(512 << 20), 0);
    }

    #[test]
    fn a_tiny_memory_limit_does_not_turn_into_unbounded() {
        check(None, Some(7), 1);
    }

    #[test]
    fn pages_in_flight_are_between_4_and_16_by_default() {
        let pages = BudgetConfig::default().capacity(None).pages;
        assert!((4..=16).contains(&pages), "{pages}");
        assert_eq!(BudgetConfig { pages_max: Some(0), ..BudgetConfig::default() }.capacity(None).pages, 0);
    }

    #[test]
    fn settings_survive_a_round_trip_and_misspelled_ones_are_refused() {
        let config: BudgetConfig = serde_json::from_str(r#"{"bytes_max": 1048576}"#).unwrap();
        assert_eq!(config, BudgetConfig { bytes_max: Some(1 << 20), ..BudgetConfig::default() });
        assert!(serde_json::from_str::<BudgetConfig>(r#"{"byte_max": 1048576}"#).is_err());
    }
}
