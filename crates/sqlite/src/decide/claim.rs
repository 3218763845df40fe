//! Who may hold a progress row.

use bellwether_storage::{FenceClaim, FenceOutcome, Generation, Owner, Progress, Sequence};

/// A row nobody was positioned on yet.
pub(crate) const UNTOUCHED: Progress =
    Progress { sequence: Sequence::ZERO, generation: Generation(0), owner: None };

/// Decides one claim of `owner` against the stored row.
pub(crate) fn decide(stored: Progress, owner: Owner, claim: FenceClaim) -> FenceOutcome {
    let generation = match claim {
        FenceClaim::Granted(generation) => {
            ((generation, Some(owner)) >= (stored.generation, stored.owner)).then_some(generation)
        }
        FenceClaim::TakeOver { seen } => seen
            .is_none_or(|seen| seen == stored)
            .then_some(Generation(stored.generation.0.saturating_add(1))),
        _ => None,
    };
    match generation {
        Some(generation) => {
            FenceOutcome::Positioned(Progress { sequence: stored.sequence, generation, owner: Some(owner) })
        }
        None => FenceOutcome::Refused(stored),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn owner(number: u128) -> Owner {
        Owner(uuid::Uuid::from_u128(number))
    }

    fn stored(generation: i64, by: u128) -> Progress {
        Progress { sequence: Sequence::new(7), generation: Generation(generation), owner: Some(owner(by)) }
    }

    #[test]
    fn a_grant_wins_by_generation_then_owner_and_may_repeat() {
        let granted =
            |generation, by| decide(stored(5, 2), owner(by), FenceClaim::Granted(Generation(generation)));
        assert_eq!(granted(6, 1), FenceOutcome::Positioned(stored(6, 1)));
        assert_eq!(granted(5, 3), FenceOutcome::Positioned(stored(5, 3)));
        assert_eq!(granted(5, 2), FenceOutcome::Positioned(stored(5, 2)));
        assert_eq!(granted(5, 1), FenceOutcome::Refused(stored(5, 2)));
        assert_eq!(granted(4, 9), FenceOutcome::Refused(stored(5, 2)));
    }

    #[test]
    fn of_two_that_saw_the_same_row_one_takes_over() {
        let seen = stored(5, 2);
        let claim = FenceClaim::TakeOver { seen: Some(seen) };
        let FenceOutcome::Positioned(taken) = decide(seen, owner(3), claim) else { panic!("refused") };
        assert_eq!(taken, stored(6, 3));
        assert_eq!(decide(taken, owner(4), claim), FenceOutcome::Refused(taken));
    }

    #[test]
    fn without_a_seen_row_whatever_is_there_is_taken() {
        let claim = FenceClaim::TakeOver { seen: None };
        assert_eq!(decide(stored(5, 2), owner(3), claim), FenceOutcome::Positioned(stored(6, 3)));
        let fresh = Progress { sequence: Sequence::ZERO, generation: Generation(1), owner: Some(owner(3)) };
        assert_eq!(decide(UNTOUCHED, owner(3), claim), FenceOutcome::Positioned(fresh));
    }
}
