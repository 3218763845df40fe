//! What an agent does next: the one place that knows how position, ownership and failures hang together.
//!
//! A position comes only from the fence (`protocols.md` §2.1). What was read is a hint, and a commit whose answer was lost
//! makes the position unsure until the fence has waited for it.

use bellwether_storage::{ErrorKind, FenceClaim, FenceOutcome, Generation, Owner, Progress, Sequence};

/// A position the fence gave, moved on by own commits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Position {
    /// Work goes on after this.
    pub(crate) sequence: Sequence,
    /// The generation to show.
    pub(crate) generation: Generation,
}

/// Where the agent stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// Nothing is known.
    Lost,
    /// Read, not owned.
    Seen(Progress),
    /// Ours, if the row is still exactly this.
    Claim(Progress),
    /// Owned since the fence.
    Holding(Position),
    /// Somebody else owns it.
    Behind(Progress),
    /// Stopped for good.
    Failed,
}

/// What to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Nothing, until the head moves.
    Sleep,
    /// Read the progress row.
    Look,
    /// Position through the fence.
    Fence(FenceClaim),
    /// Work on a page.
    Page(Position),
    /// Watch the owner.
    StandBy(Progress),
    /// Nothing, ever.
    Stop,
}

/// What a failure means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Remedy {
    /// Go on at once: the next step says how.
    GoOn,
    /// Wait, then go on.
    BackOff,
    /// Stop for good.
    Fail,
}

/// The course of one agent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Course {
    standing: Standing,
    owner: Owner,
    /// Whether it ever positioned itself: only the first time it takes over whatever is there.
    fresh: bool,
    failures: u32,
}

impl Course {
    pub(crate) fn new(owner: Owner) -> Self {
        Self { standing: Standing::Lost, owner, fresh: true, failures: 0 }
    }

    /// The next step, given the head as known now.
    pub(crate) fn next(&self, head: Sequence) -> Step {
        match self.standing {
            Standing::Failed => Step::Stop,
            _ if head == Sequence::ZERO => Step::Sleep,
            Standing::Lost => Step::Look,
            Standing::Seen(progress) if progress.sequence >= head => Step::Sleep,
            Standing::Seen(_) if self.fresh => Step::Fence(FenceClaim::TakeOver { seen: None }),
            Standing::Seen(progress) | Standing::Claim(progress) => {
                Step::Fence(FenceClaim::TakeOver { seen: Some(progress) })
            }
            Standing::Holding(position) if position.sequence >= head => Step::Sleep,
            Standing::Holding(position) => Step::Page(position),
            Standing::Behind(progress) => Step::StandBy(progress),
        }
    }

    /// How far it is, as far as it knows.
    pub(crate) fn position(&self) -> Option<Sequence> {
        match self.standing {
            Standing::Lost | Standing::Failed => None,
            Standing::Seen(progress) | Standing::Claim(progress) | Standing::Behind(progress) => {
                Some(progress.sequence)
            }
            Standing::Holding(position) => Some(position.sequence),
        }
    }

    /// The progress row, as read.
    pub(crate) fn looked(&mut self, found: Option<Progress>) {
        let unborn = Progress { sequence: Sequence::ZERO, generation: Generation(0), owner: None };
        let found_row = found.unwrap_or(unborn);
        self.standing = match found_row.owner {
            // Ours, though the answer was lost: the fence waits for a commit still on its way, and `seen` tells if it came.
            Some(owner) if owner == self.owner => Standing::Claim(found_row),
            Some(_) if !self.fresh => Standing::Behind(found_row),
            // A row nobody wrote cannot be compared: take over whatever is there.
            None if found.is_none() => {
                self.fresh = true;
                Standing::Seen(found_row)
            }
            _ => Standing::Seen(found_row),
        };
    }

    /// The fence answered. Returns the position when it is ours.
    pub(crate) fn fenced(&mut self, outcome: FenceOutcome) -> Option<Sequence> {
        match outcome {
            FenceOutcome::Positioned(progress) => {
                self.fresh = false;
                let Progress { sequence, generation, .. } = progress;
                self.standing = Standing::Holding(Position { sequence, generation });
                Some(sequence)
            }
            FenceOutcome::Refused(found) => {
                self.fresh = false;
                self.looked(Some(found));
                None
            }
            _ => {
                self.standing = Standing::Lost;
                None
            }
        }
    }

    /// A page committed up to here.
    pub(crate) fn committed(&mut self, to: Sequence) {
        self.failures = 0;
        if let Standing::Holding(position) = &mut self.standing {
            position.sequence = to;
        }
    }

    /// The owner stood still: take over if the row is still this.
    pub(crate) fn take_over(&mut self, seen: Progress) {
        if matches!(self.standing, Standing::Behind(_)) {
            self.standing = Standing::Claim(seen);
        }
    }

    /// Another life of the server answered: nothing known of the old one counts.
    pub(crate) fn server_changed(&mut self) {
        if self.standing != Standing::Failed {
            self.standing = Standing::Lost;
        }
    }

    /// Something failed; `None` is a page that exceeded its deadline, whose outcome nobody knows.
    pub(crate) fn failed(&mut self, kind: Option<ErrorKind>) -> Remedy {
        self.failures = self.failures.saturating_add(1);
        match kind {
            Some(ErrorKind::Corrupt | ErrorKind::Unsupported) => {
                self.standing = Standing::Failed;
                Remedy::Fail
            }
            // Somebody else's fence passed: what the row says now decides.
            Some(ErrorKind::Fenced) => {
                self.standing = Standing::Lost;
                if self.failures > 1 { Remedy::BackOff } else { Remedy::GoOn }
            }
            Some(ErrorKind::Unavailable | ErrorKind::Conflict | ErrorKind::Rejected) => Remedy::BackOff,
            Some(ErrorKind::Unknown) if self.failures == 1 => {
                self.standing = Standing::Lost;
                Remedy::GoOn
            }
            _ => {
                self.standing = Standing::Lost;
                Remedy::BackOff
            }
        }
    }

    /// Failures since the last committed page.
    pub(crate) fn failures(&self) -> u32 {
        self.failures
    }
}

#[cfg(test)]
mod tests {
    use bellwether_storage::Error;
    use proptest::prelude::*;
    use uuid::Uuid;

    use super::*;

    const ME: Owner = Owner(Uuid::from_u128(1));
    const OTHER: Owner = Owner(Uuid::from_u128(2));

    fn row(sequence: u64, owner: Owner) -> Progress {
        Progress { sequence: Sequence::new(sequence), generation: Generation(3), owner: Some(owner) }
    }

    fn holding() -> Course {
        let mut course = Course::new(ME);
        course.looked(None);
        course.fenced(FenceOutcome::Positioned(row(5, ME)));
        course
    }

    // T3
    #[test]
    fn an_agent_of_a_tenant_without_events_does_nothing() {
        assert_eq!(Course::new(ME).next(Sequence::ZERO), Step::Sleep);
    }

    // T3
    #[test]
    fn what_is_caught_up_is_not_even_fenced() {
        let mut course = Course::new(ME);
        course.looked(Some(row(9, OTHER)));
        assert_eq!(course.next(Sequence::new(9)), Step::Sleep);
        assert_eq!(course.next(Sequence::new(10)), Step::Fence(FenceClaim::TakeOver { seen: None }));
    }

    // X4
    #[test]
    fn an_unknown_commit_is_resolved_by_looking_and_fencing_never_by_repeating() {
        let mut course = holding();
        assert_eq!(course.failed(Some(ErrorKind::Unknown)), Remedy::GoOn);
        assert_eq!(course.next(Sequence::new(9)), Step::Look);
        course.looked(Some(row(5, ME)));
        assert_eq!(
            course.next(Sequence::new(9)),
            Step::Fence(FenceClaim::TakeOver { seen: Some(row(5, ME)) })
        );
        // The commit came in between: the fence says so, and the claim is made on that.
        course.fenced(FenceOutcome::Refused(row(7, ME)));
        assert_eq!(
            course.next(Sequence::new(9)),
            Step::Fence(FenceClaim::TakeOver { seen: Some(row(7, ME)) })
        );
    }

    #[test]
    fn who_was_fenced_stands_by_and_takes_over_only_on_a_verdict() {
        let mut course = holding();
        course.failed(Some(ErrorKind::Fenced));
        course.looked(Some(row(5, OTHER)));
        assert_eq!(course.next(Sequence::new(9)), Step::StandBy(row(5, OTHER)));
        course.take_over(row(6, OTHER));
        assert_eq!(
            course.next(Sequence::new(9)),
            Step::Fence(FenceClaim::TakeOver { seen: Some(row(6, OTHER)) })
        );
        course.fenced(FenceOutcome::Refused(row(7, OTHER)));
        assert_eq!(course.next(Sequence::new(9)), Step::StandBy(row(7, OTHER)));
    }

    #[test]
    fn corrupt_and_unsupported_stop_for_good() {
        for error in [Error::corrupt("hole"), Error::unsupported("no sql")] {
            let mut course = holding();
            assert_eq!(course.failed(Some(error.kind())), Remedy::Fail);
            course.server_changed();
            assert_eq!(course.next(Sequence::new(9)), Step::Stop);
        }
    }

    proptest! {
        #[test]
        fn a_page_is_only_ever_worked_on_from_what_the_fence_or_an_own_commit_said(
            inputs in prop::collection::vec((0u8..7, 0u64..20, prop::bool::ANY), 1..200),
        ) {
            let mut course = Course::new(ME);
            let mut positioned: Option<Sequence> = None;
            for (input, number, mine) in inputs {
                let found = row(number, if mine { ME } else { OTHER });
                match (input, course.next(Sequence::new(20))) {
                    (0, _) => { course.server_changed(); positioned = None; }
                    (1, _) => { course.failed(Some(ErrorKind::Unknown)); positioned = None; }
                    (2, _) => { course.failed(Some(ErrorKind::Unavailable)); }
                    (3, Step::Page(position)) => {
                        let to = Sequence::new(position.sequence.get().max(number));
                        course.committed(to);
                        positioned = Some(to);
                    }
                    (_, Step::Look) => course.looked(Some(found)),
                    (4, Step::Fence(_)) => { course.fenced(FenceOutcome::Refused(found)); }
                    (_, Step::Fence(_)) => positioned = course.fenced(FenceOutcome::Positioned(row(number, ME))),
                    (_, Step::StandBy(_)) => course.take_over(found),
                    _ => {}
                }
                if let Step::Page(position) = course.next(Sequence::new(20)) {
                    prop_assert_eq!(Some(position.sequence), positioned);
                }
            }
        }
    }
}
