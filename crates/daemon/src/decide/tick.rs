//! When a database is asked which heads moved.
//!
//! Soon after work was found, then ever more rarely, up to a longest interval. Where the server can say cheaply that nothing
//! changed, an idle database is not asked at all, except after a full interval, regardless.

use std::time::Duration;

/// The intervals.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TickConfig {
    /// After a read that found work.
    pub(crate) min: Duration,
    /// Of an idle database, reached by doubling.
    pub(crate) max: Duration,
    /// A read after so long even where nothing seems to change.
    pub(crate) full: Duration,
}

/// The tick of one database. Moments are times since the start of the daemon.
#[derive(Debug, Clone)]
pub(crate) struct Tick {
    config: TickConfig,
    interval: Duration,
    last: Duration,
    next: Duration,
    still: bool,
}

impl Tick {
    /// Due at once.
    pub(crate) fn new(config: TickConfig, now: Duration) -> Self {
        Self { config, interval: config.min, last: now, next: now, still: false }
    }

    /// When the next read is due.
    pub(crate) fn due(&self) -> Duration {
        match self.still && self.interval >= self.config.max {
            true => self.last + self.config.full,
            false => self.next,
        }
    }

    /// A read was made; `found` says whether it brought anything new. `jitter` in [0, 1) spreads databases.
    pub(crate) fn polled(&mut self, now: Duration, found: bool, jitter: f64) {
        self.interval = match found {
            true => self.config.min,
            false => (self.interval * 2).min(self.config.max),
        };
        // A change that the server reports only later still counts: stillness must be seen anew after each read.
        self.still = false;
        self.last = now;
        // Earlier by up to a tenth, never later: the longest interval is a promise.
        self.next = now + self.interval.mul_f64(1.0 - jitter.clamp(0.0, 1.0) / 10.0);
    }

    /// The server reports changes of this database since it was last asked: read now.
    pub(crate) fn stirred(&mut self, now: Duration) {
        self.still = false;
        self.next = self.next.min(now);
    }

    /// The server reports that this database did not change.
    pub(crate) fn still(&mut self) {
        self.still = true;
    }

    /// The server cannot say: the interval alone counts.
    pub(crate) fn unsure(&mut self) {
        self.still = false;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CONFIG: TickConfig = TickConfig {
        min: Duration::from_millis(250),
        max: Duration::from_secs(10),
        full: Duration::from_secs(60),
    };

    // T3
    #[test]
    fn an_idle_database_is_asked_ever_more_rarely_up_to_ten_seconds() {
        let mut tick = Tick::new(CONFIG, Duration::ZERO);
        let mut gaps = Vec::new();
        for _ in 0..9 {
            let now = tick.due();
            tick.polled(now, false, 0.0);
            gaps.push((tick.due() - now).as_millis());
        }
        assert_eq!(gaps, [500, 1_000, 2_000, 4_000, 8_000, 10_000, 10_000, 10_000, 10_000]);
    }

    // T3
    #[test]
    fn where_nothing_changes_only_the_full_read_is_left() {
        let mut tick = Tick::new(CONFIG, Duration::ZERO);
        for _ in 0..8 {
            tick.polled(tick.due(), false, 0.0);
        }
        let last = tick.last;
        tick.still();
        assert_eq!(tick.due(), last + CONFIG.full);
        tick.unsure();
        assert_eq!(tick.due(), last + CONFIG.max);
        tick.stirred(last + Duration::from_secs(1));
        assert_eq!(tick.due(), last + Duration::from_secs(1));
    }

    proptest! {
        #[test]
        fn no_database_goes_unasked_longer_than_the_full_interval(steps in prop::collection::vec((0u8..5, 0.0f64..1.0), 1..200)) {
            let mut tick = Tick::new(CONFIG, Duration::ZERO);
            let mut now = Duration::ZERO;
            for (step, jitter) in steps {
                match step {
                    0 => { now = now.max(tick.due()); tick.polled(now, false, jitter); }
                    1 => { now = now.max(tick.due()); tick.polled(now, true, jitter); }
                    2 => tick.stirred(now),
                    3 => tick.still(),
                    _ => tick.unsure(),
                }
                prop_assert!(tick.due() <= tick.last + CONFIG.full);
                prop_assert!(tick.still || tick.due() <= tick.last + CONFIG.max);
                // Work was found: the next read comes within the shortest interval.
                if step == 1 { prop_assert!(tick.due() <= now + CONFIG.min); }
                if step == 2 { prop_assert!(tick.due() <= now); }
            }
        }
    }
}
