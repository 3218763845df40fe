//! Finding the event that spoils a page, by doing smaller pages.
//!
//! A page may be cut at any event, so every half that goes well is committed and done with; the culprit is alone after at most
//! ⌈log₂ n⌉ cuts (9 for a page of 500).

/// How much of a page to try. Counts are events of the page at hand.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Bisect {
    /// Events among which the culprit is, from the front of what is left; zero when nobody is suspected.
    suspects: usize,
    /// Events to try at once while there are suspects.
    part: usize,
}

/// What a failed part leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// Try again; [`Bisect::take`] says how much.
    Smaller,
    /// It was one event: that is the one.
    Found,
}

impl Bisect {
    /// How many of the `left` events to work on now.
    pub(crate) fn take(&self, left: usize) -> usize {
        match self.suspects {
            0 => left,
            _ => self.part.min(left).max(1),
        }
    }

    /// A part of `tried` events failed.
    pub(crate) fn failed(&mut self, tried: usize) -> Part {
        if tried <= 1 {
            *self = Self::default();
            return Part::Found;
        }
        *self = Self { suspects: tried, part: tried / 2 };
        Part::Smaller
    }

    /// A part went well, and `done` events of it are committed.
    pub(crate) fn passed(&mut self, done: usize) {
        self.suspects = self.suspects.saturating_sub(done);
        if self.suspects == 0 {
            *self = Self::default();
        } else {
            // The culprit is in the rest, so there is no use in trying all of it.
            self.part = (self.suspects / 2).max(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Works through a page in which these events fail; returns the events found and the number of failed passes.
    fn check(len: usize, bad: &[usize]) -> (Vec<usize>, usize) {
        let (mut bisect, mut at, mut found, mut failed) = (Bisect::default(), 0, Vec::new(), 0);
        while at < len {
            let take = bisect.take(len - at);
            let spoiled = (at..at + take).any(|event| bad.contains(&event) && !found.contains(&event));
            if !spoiled {
                bisect.passed(take);
                at += take;
                continue;
            }
            failed += 1;
            if bisect.failed(take) == Part::Found {
                found.push(at);
            }
        }
        (found, failed)
    }

    #[test]
    fn one_bad_event_in_a_page_of_500_takes_at_most_ten_failed_passes() {
        for bad in 0..500 {
            let (found, failed) = check(500, &[bad]);
            assert_eq!(found, [bad]);
            assert!(failed <= 10, "{failed} failed passes for event {bad}");
        }
    }

    proptest! {
        #[test]
        fn exactly_the_bad_events_are_found(len in 1usize..600, bad in prop::collection::btree_set(0usize..600, 0..6)) {
            let bad: Vec<_> = bad.into_iter().filter(|event| *event < len).collect();
            let (found, failed) = check(len, &bad);
            prop_assert_eq!(&found, &bad);
            prop_assert!(failed <= 11 * bad.len());
        }
    }
}
