//! When a runner that stands by takes over: the owner's progress stood still, behind the head, for too long.

use std::time::Duration;

use bellwether_storage::{Progress, Sequence};

/// What a standing-by runner has seen of the owner. Moments are times of its own monotonic clock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Takeover {
    seen: Progress,
    /// Since when `seen` has not changed while it was behind.
    since: Duration,
}

/// What an observation led to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The owner is alive, or has nothing to do, or may still move.
    Wait,
    /// Take over, if the row is still exactly this.
    TakeOver(Progress),
}

impl Takeover {
    /// Begins to observe.
    pub(crate) fn new(seen: Progress, now: Duration) -> Self {
        Self { seen, since: now }
    }

    /// Whether the owner has nothing to do, as far as was seen, so that its row need not be read. Its time begins when that ends.
    pub(crate) fn rests(&mut self, now: Duration, head: Sequence) -> bool {
        let rests = self.seen.sequence >= head;
        if rests {
            self.since = now;
        }
        rests
    }

    /// The row as read now, and the tenant's head as known now.
    pub(crate) fn observe(
        &mut self,
        now: Duration,
        found: Progress,
        head: Sequence,
        after: Duration,
    ) -> Verdict {
        if found != self.seen || found.sequence >= head {
            *self = Self::new(found, now);
            return Verdict::Wait;
        }
        match now.saturating_sub(self.since) >= after {
            true => Verdict::TakeOver(found),
            false => Verdict::Wait,
        }
    }
}

#[cfg(test)]
mod tests {
    use bellwether_storage::Generation;
    use proptest::prelude::*;

    use super::*;

    fn at(sequence: u64) -> Progress {
        Progress { sequence: Sequence::new(sequence), generation: Generation(1), owner: None }
    }

    const AFTER: Duration = Duration::from_secs(10);

    #[test]
    fn progress_that_stands_still_behind_the_head_is_taken_over_after_ten_seconds() {
        let mut takeover = Takeover::new(at(5), Duration::ZERO);
        let head = Sequence::new(9);
        assert_eq!(takeover.observe(Duration::from_millis(9_999), at(5), head, AFTER), Verdict::Wait);
        assert_eq!(takeover.observe(Duration::from_secs(10), at(5), head, AFTER), Verdict::TakeOver(at(5)));
    }

    #[test]
    fn an_owner_with_nothing_to_do_is_left_alone_however_long() {
        let mut takeover = Takeover::new(at(5), Duration::ZERO);
        for hour in 0..24 {
            let now = Duration::from_secs(3_600 * hour);
            assert_eq!(takeover.observe(now, at(5), Sequence::new(5), AFTER), Verdict::Wait);
        }
        // The time counts from the last moment at which it was not behind.
        let behind = Duration::from_secs(3_600 * 23 + 5);
        assert_eq!(takeover.observe(behind, at(5), Sequence::new(6), AFTER), Verdict::Wait);
    }

    #[test]
    fn while_an_owner_is_not_behind_its_time_does_not_run_though_nobody_reads_its_row() {
        let mut takeover = Takeover::new(at(5), Duration::ZERO);
        let hour = Duration::from_secs(3_600);
        assert!(takeover.rests(hour, Sequence::new(5)));
        assert!(!takeover.rests(hour, Sequence::new(6)));
        assert_eq!(takeover.observe(hour, at(5), Sequence::new(6), AFTER), Verdict::Wait);
        assert_eq!(takeover.observe(hour + AFTER, at(5), Sequence::new(6), AFTER), Verdict::TakeOver(at(5)));
    }

    proptest! {
        #[test]
        fn who_moved_within_the_time_is_never_taken_over(steps in prop::collection::vec((1u64..20_000, prop::bool::ANY), 1..100)) {
            let (mut now, mut moved_at, mut sequence) = (Duration::ZERO, Duration::ZERO, 0);
            let mut takeover = Takeover::new(at(0), now);
            for (gap, moves) in steps {
                now += Duration::from_millis(gap);
                if moves { sequence += 1; moved_at = now; }
                let verdict = takeover.observe(now, at(sequence), Sequence::new(1_000_000), AFTER);
                if verdict != Verdict::Wait {
                    prop_assert!(now - moved_at >= AFTER);
                    prop_assert_eq!(verdict, Verdict::TakeOver(at(sequence)));
                }
            }
        }
    }
}
