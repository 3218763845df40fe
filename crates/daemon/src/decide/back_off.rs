//! How long to wait after a failure, and chance that can be repeated.

use std::time::Duration;

/// Wait before try number `failures` + 1: doubles from `min` up to `max`, shortened by up to a half so that many who failed
/// together do not come back together. `jitter` in [0, 1).
pub(crate) fn back_off(failures: u32, min: Duration, max: Duration, jitter: f64) -> Duration {
    let doublings = failures.saturating_sub(1).min(32);
    let full = min.saturating_mul(2u32.saturating_pow(doublings)).min(max);
    full.mul_f64(1.0 - jitter.clamp(0.0, 1.0) / 2.0)
}

/// A number in [0, 1) that depends on nothing but these: chance with a seed and labels (SplitMix64).
pub(crate) fn fraction(seed: u64, label: u64, count: u64) -> f64 {
    let mut z = seed ^ label.rotate_left(32) ^ count.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = z.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn waits_rise_to_the_ceiling_and_never_reach_zero(failures in 1u32..100, seed: u64, label: u64) {
            let (min, max) = (Duration::from_millis(100), Duration::from_secs(60));
            let jitter = fraction(seed, label, failures.into());
            prop_assert!((0.0..1.0).contains(&jitter));
            let wait = back_off(failures, min, max, jitter);
            prop_assert!(wait >= min / 2 && wait <= max);
            prop_assert!(back_off(failures + 1, min, max, 0.0) >= back_off(failures, min, max, 0.0));
        }
    }

    #[test]
    fn those_who_failed_together_come_back_apart() {
        let mut waits: Vec<_> = (0..100)
            .map(|agent| {
                back_off(3, Duration::from_millis(100), Duration::from_secs(60), fraction(7, agent, 3))
            })
            .collect();
        waits.sort();
        waits.dedup();
        assert!(waits.len() > 95);
    }
}
