//! Numbers of a daemon, with units in their names.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{BudgetConfig, DaemonError, HopperConfig};

/// Every limit of a daemon. Plain values, so that files, environment and tests share them; missing fields take defaults.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DaemonConfig {
    /// The load budget: what may be loaded and not yet committed, over all databases.
    pub budget: BudgetConfig,
    /// What one agent may have in flight, and the size of a page.
    pub hopper: HopperConfig,
    /// Pages in flight per database: bounds its connections. A database that stands fewer says so itself. Zero is unbounded.
    pub pages_per_database: u32,
    /// Bytes of a page's events: the most one page may ask for, unless a single event is larger.
    pub page_bytes_max: u64,
    /// One page at a time per projection, over all its tenants and databases, in the order they came.
    pub single_file: bool,
    /// A runner that was fenced takes over when the owner's progress stood still behind the head for so long.
    pub takeover_after_ms: u64,
    /// How often standing-by agents look at the owner's progress: one statement per database.
    pub standby_poll_ms: u64,
    /// Discovery: time to the next read after one that found work.
    pub discovery_min_ms: u64,
    /// Discovery: time between reads of an idle database, reached by doubling.
    pub discovery_max_ms: u64,
    /// Discovery: a read after so long even where the server reports no activity.
    pub discovery_full_ms: u64,
    /// How often a server is asked which of its databases changed.
    pub sieve_ms: u64,
    /// First wait of an agent whose page failed; doubles from there.
    pub back_off_min_ms: u64,
    /// Longest wait of an agent whose page failed.
    pub back_off_max_ms: u64,
    /// Time given to pages in flight when the daemon stops; then they are dropped and roll back.
    pub stop_deadline_ms: u64,
    /// Seed of the jitter; the same seed spreads waits in the same way.
    pub seed: u64,
}

impl Default for DaemonConfig {
    fn default() -> Self {
        Self {
            budget: BudgetConfig::default(),
            hopper: HopperConfig::default(),
            pages_per_database: 4,
            page_bytes_max: 4 * 1024 * 1024,
            single_file: false,
            takeover_after_ms: 10_000,
            standby_poll_ms: 1_000,
            discovery_min_ms: 250,
            discovery_max_ms: 10_000,
            discovery_full_ms: 60_000,
            sieve_ms: 1_000,
            back_off_min_ms: 100,
            back_off_max_ms: 60_000,
            stop_deadline_ms: 10_000,
            seed: 0,
        }
    }
}

impl DaemonConfig {
    /// Checks that the numbers fit together.
    ///
    /// # Errors
    ///
    /// [`DaemonError::Config`] names the field and the fix.
    pub fn validate(&self) -> Result<(), DaemonError> {
        let positive = [
            ("hopper.page_events", self.hopper.page_events),
            ("hopper.rebuild_page_events", self.hopper.rebuild_page_events),
            ("page_bytes_max", self.page_bytes_max),
            ("takeover_after_ms", self.takeover_after_ms),
            ("standby_poll_ms", self.standby_poll_ms),
            ("discovery_min_ms", self.discovery_min_ms),
            ("sieve_ms", self.sieve_ms),
            ("back_off_min_ms", self.back_off_min_ms),
        ];
        for (field, value) in positive {
            if value == 0 {
                return Err(DaemonError::config(field, "is zero", "give it at least 1"));
            }
        }
        self.budget
            .validate()
            .map_err(|invalid| DaemonError::config(invalid.field, "cannot be this", invalid.fix))?;
        for (field, min, max) in [
            ("discovery_max_ms", self.discovery_min_ms, self.discovery_max_ms),
            ("discovery_full_ms", self.discovery_max_ms, self.discovery_full_ms),
            ("back_off_max_ms", self.back_off_min_ms, self.back_off_max_ms),
            ("takeover_after_ms", self.standby_poll_ms, self.takeover_after_ms),
        ] {
            if max < min {
                return Err(DaemonError::config(
                    field,
                    &format!("is {max}"),
                    &format!("give it at least {min}"),
                ));
            }
        }
        Ok(())
    }

    pub(crate) fn stop_deadline(&self) -> Duration {
        Duration::from_millis(self.stop_deadline_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_valid_and_a_refusal_names_the_field() {
        DaemonConfig::default().validate().unwrap();
        let refused = DaemonConfig { discovery_max_ms: 1, ..DaemonConfig::default() }.validate().unwrap_err();
        assert!(refused.to_string().contains("discovery_max_ms"), "{refused}");
        let refused = DaemonConfig { sieve_ms: 0, ..DaemonConfig::default() }.validate().unwrap_err();
        assert!(refused.to_string().contains("sieve_ms"), "{refused}");
    }
}
