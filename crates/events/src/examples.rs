//! The account that the tests of this crate open, fill and empty.

use crate::{Aggregate, Decide, Event};

#[derive(Debug, Clone, PartialEq, Event)]
pub(crate) enum Money {
    Opened { owner: String },
    Deposited { cents: i64 },
    Withdrawn { cents: i64 },
}

#[derive(Debug, Default)]
pub(crate) struct Account {
    pub(crate) cents: i64,
}

impl Aggregate for Account {
    const NAME: &'static str = "account";

    type Event = Money;

    fn evolve(&mut self, event: &Money) {
        match event {
            Money::Opened { .. } => {}
            Money::Deposited { cents } => self.cents += cents,
            Money::Withdrawn { cents } => self.cents -= cents,
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Withdraw {
    pub(crate) cents: i64,
}

#[derive(Debug, PartialEq, thiserror::Error)]
#[error("{have} cents in the account, {want} asked for")]
pub(crate) struct Short {
    pub(crate) have: i64,
    pub(crate) want: i64,
}

impl Decide<Withdraw> for Account {
    type Error = Short;

    fn decide(&self, command: Withdraw) -> Result<Vec<Money>, Short> {
        match command.cents {
            0 => Ok(Vec::new()),
            want if want > self.cents => Err(Short { have: self.cents, want }),
            cents => Ok(vec![Money::Withdrawn { cents }]),
        }
    }
}
