//! The memory gate: no new page while the process is short of memory.
//!
//! It closes when the memory in use reaches the threshold, and opens only when it has fallen five points below: between the two
//! it stays as it is, so that it does not flutter with every page. What cannot be read closes nothing.

/// Points between closing and opening again.
const HYSTERESIS_PERCENT: u64 = 5;

/// Memory in use, and how much there may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryReading {
    /// Bytes in use that cannot be given back without pain: page cache that the kernel would drop anyway is left out.
    pub used_bytes: u64,
    /// The limit those bytes count against.
    pub limit_bytes: u64,
}

impl MemoryReading {
    /// How full it is: 1.0 at the limit.
    pub fn fullness(self) -> f64 {
        self.used_bytes as f64 / (self.limit_bytes.max(1)) as f64
    }

    /// Whether at least so many percent of the limit are in use.
    fn reaches(self, percent: u64) -> bool {
        u128::from(self.used_bytes) * 100 >= u128::from(self.limit_bytes) * u128::from(percent)
    }
}

/// The gate and the threshold it closes at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Gate {
    close_percent: u64,
    open: bool,
}

impl Gate {
    /// An open gate that closes at so many percent of the limit; zero never closes.
    pub(crate) fn new(close_percent: u64) -> Gate {
        Gate { close_percent, open: true }
    }

    /// Takes in a reading, the tightest of several; says whether the gate is open now.
    pub(crate) fn observe(&mut self, reading: Option<MemoryReading>) -> bool {
        self.open = match reading {
            _ if self.close_percent == 0 => true,
            None => true,
            Some(reading) if self.open => !reading.reaches(self.close_percent),
            Some(reading) => !reading.reaches(self.close_percent.saturating_sub(HYSTERESIS_PERCENT)),
        };
        self.open
    }
}

#[cfg(test)]
mod tests {
    use super::{Gate, MemoryReading};

    fn check(close_percent: u64, readings: &[(u64, bool)]) {
        let mut gate = Gate::new(close_percent);
        for (used_bytes, open) in readings {
            let reading = MemoryReading { used_bytes: *used_bytes, limit_bytes: 1_000 };
            assert_eq!(gate.observe(Some(reading)), *open, "at {used_bytes} of 1000, in {readings:?}");
        }
    }

    // T6, B6
    #[test]
    fn it_closes_at_the_threshold_and_opens_five_points_below() {
        check(
            90,
            &[
                (899, true),
                (900, false),
                (899, false),
                (850, false),
                (849, true),
                (899, true),
                (2_000, false),
            ],
        );
    }

    #[test]
    fn a_threshold_of_zero_never_closes() {
        check(0, &[(0, true), (1_000, true), (5_000, true)]);
    }

    #[test]
    fn what_cannot_be_read_opens_the_gate() {
        let mut gate = Gate::new(90);
        assert!(!gate.observe(Some(MemoryReading { used_bytes: 95, limit_bytes: 100 })));
        assert!(gate.observe(None));
    }

    #[test]
    fn the_largest_figures_do_not_overflow() {
        let mut gate = Gate::new(90);
        assert!(!gate.observe(Some(MemoryReading { used_bytes: u64::MAX, limit_bytes: u64::MAX })));
    }
}
