//! Given, when, then: tests of decisions, without a store and without a runtime.

use std::fmt::Debug;

use crate::{Aggregate, Decide};

/// An aggregate that has lived through these events.
#[must_use = "say `.when(command)`"]
pub fn given<A: Aggregate>(events: impl IntoIterator<Item = A::Event>) -> Given<A> {
    let mut state = A::default();
    for event in events {
        state.evolve(&event);
    }
    Given { state }
}

/// The state before the command.
#[derive(Debug)]
pub struct Given<A> {
    state: A,
}

impl<A: Aggregate> Given<A> {
    /// Decides on a command.
    pub fn when<C>(self, command: C) -> When<A, C>
    where
        A: Decide<C>,
    {
        let outcome = self.state.decide(command);
        When { state: self.state, outcome }
    }

    /// The state itself, to look at what the events added up to.
    pub fn state(&self) -> &A {
        &self.state
    }
}

/// What the decision was.
#[must_use = "say `.then(events)` or `.then_err(error)`"]
#[derive(Debug)]
pub struct When<A: Decide<C>, C> {
    state: A,
    outcome: Result<Vec<A::Event>, A::Error>,
}

impl<A: Decide<C>, C> When<A, C> {
    /// Expects exactly these events; returns the state after them, to go on.
    ///
    /// # Panics
    ///
    /// When the decision was another one.
    #[track_caller]
    pub fn then(self, expected: impl IntoIterator<Item = A::Event>) -> Given<A>
    where
        A::Event: PartialEq + Debug,
    {
        let expected: Vec<_> = expected.into_iter().collect();
        let mut state = self.state;
        match self.outcome {
            Ok(events) => {
                assert_eq!(events, expected, "the decision of {} was another one", A::NAME);
                for event in &events {
                    state.evolve(event);
                }
                Given { state }
            }
            Err(error) => panic!("{} refused ({error}), expected {expected:?}", A::NAME),
        }
    }

    /// Expects that nothing happens, without an error.
    ///
    /// # Panics
    ///
    /// When the decision was another one.
    #[track_caller]
    pub fn then_nothing(self) -> Given<A>
    where
        A::Event: PartialEq + Debug,
    {
        self.then([])
    }

    /// Expects this refusal.
    ///
    /// # Panics
    ///
    /// When the decision was another one.
    #[track_caller]
    pub fn then_err(self, expected: A::Error)
    where
        A::Event: Debug,
        A::Error: PartialEq,
    {
        match self.outcome {
            Ok(events) => panic!("{} decided {events:?}, expected the refusal {expected:?}", A::NAME),
            Err(error) => assert_eq!(error, expected, "{} refused for another reason", A::NAME),
        }
    }

    /// The decision as it is, for other checks.
    ///
    /// # Errors
    ///
    /// The refusal of the decision.
    pub fn outcome(self) -> Result<Vec<A::Event>, A::Error> {
        self.outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::examples::{Account, Money, Short, Withdraw};

    // X7
    #[test]
    fn decisions_read_as_given_when_then() {
        given::<Account>([Money::Deposited { cents: 100 }])
            .when(Withdraw { cents: 40 })
            .then([Money::Withdrawn { cents: 40 }])
            .when(Withdraw { cents: 0 })
            .then_nothing();
        given::<Account>([]).when(Withdraw { cents: 1 }).then_err(Short { have: 0, want: 1 });
    }

    #[test]
    #[should_panic(expected = "the decision of account was another one")]
    fn another_decision_fails_the_test() {
        given::<Account>([Money::Deposited { cents: 100 }])
            .when(Withdraw { cents: 40 })
            .then([Money::Withdrawn { cents: 41 }]);
    }

    #[test]
    #[should_panic(expected = "account refused")]
    fn a_refusal_fails_a_test_that_expects_events() {
        given::<Account>([]).when(Withdraw { cents: 1 }).then([]);
    }

    #[test]
    #[should_panic(expected = "expected the refusal")]
    fn events_fail_a_test_that_expects_a_refusal() {
        given::<Account>([Money::Deposited { cents: 9 }])
            .when(Withdraw { cents: 1 })
            .then_err(Short { have: 9, want: 1 });
    }
}
