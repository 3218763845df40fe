//! A bank: the events and views of these tests.

use std::collections::BTreeMap;

use bellwether_daemon::{Change, Changed, Composite, Keys, MultiView, StageView, View};
use bellwether_events::{CodecError, Event, Recorded, decode, encode};
use bellwether_storage::Encoding;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum Money {
    Deposited {
        cents: i64,
    },
    Withdrawn {
        cents: i64,
    },
    /// Goes to that many documents from a number on, of that many bytes each.
    Spread {
        first: u64,
        documents: u64,
        bytes: u64,
    },
    /// Makes the user's code panic.
    Cursed,
    /// Is refused by the user's code.
    Odd,
    /// Nobody listens to it.
    Noise,
}

impl Event for Money {
    const TYPES: &'static [&'static str] = &["Deposited", "Withdrawn", "Spread", "Cursed", "Odd"];

    fn type_name(&self) -> &'static str {
        match self {
            Self::Deposited { .. } => "Deposited",
            Self::Withdrawn { .. } => "Withdrawn",
            Self::Spread { .. } => "Spread",
            Self::Cursed => "Cursed",
            Self::Odd => "Odd",
            Self::Noise => "Noise",
        }
    }

    fn encode(&self, encoding: Encoding) -> Result<Vec<u8>, CodecError> {
        encode("Money", encoding, self)
    }

    fn decode(_: &str, encoding: Encoding, body: &[u8]) -> Result<Self, CodecError> {
        decode("Money", encoding, body)
    }
}

pub(crate) fn deposited(cents: i64) -> Money {
    Money::Deposited { cents }
}

fn cents(event: &Money) -> i64 {
    match event {
        Money::Deposited { cents } => *cents,
        Money::Withdrawn { cents } => -cents,
        Money::Cursed => panic!("cursed be this event"),
        _ => 0,
    }
}

/// One document per account. Not idempotent on purpose: an event applied twice shows.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Balance {
    pub(crate) cents: i64,
    pub(crate) events: u64,
}

impl View for Balance {
    const NAME: &'static str = "balance";
    type Event = Money;

    fn apply(&mut self, event: &Recorded<Money>) -> Change {
        self.events += 1;
        self.cents += cents(&event.event);
        match event.event {
            Money::Odd => Change::Refuse("odd".into()),
            _ => Change::Save,
        }
    }
}

/// One document per tenant, in JSON.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Totals {
    pub(crate) events: u64,
    pub(crate) cents: i64,
    /// Sequences in the order they were applied.
    pub(crate) last: u64,
}

impl MultiView for Totals {
    const NAME: &'static str = "totals";
    const ENCODING: Encoding = Encoding::Json;
    type Event = Money;

    fn keys(_: &Recorded<Money>, keys: &mut Keys) {
        keys.push("all");
    }

    fn apply(&mut self, _: &str, event: &Recorded<Money>) -> Change {
        if event.event == Money::Odd {
            return Change::Keep;
        }
        self.events += 1;
        self.cents += cents(&event.event);
        self.last = event.sequence.get();
        Change::Save
    }
}

/// As many documents as the event says.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Fan {
    pub(crate) touched: u64,
    pub(crate) body: String,
}

impl MultiView for Fan {
    const NAME: &'static str = "fan";
    type Event = Money;

    fn keys(event: &Recorded<Money>, keys: &mut Keys) {
        if let Money::Spread { first, documents, .. } = event.event {
            (first..first + documents).for_each(|number| keys.push(format!("document-{number:06}")));
        }
    }

    fn apply(&mut self, _: &str, event: &Recorded<Money>) -> Change {
        let Money::Spread { bytes, .. } = event.event else { return Change::Keep };
        self.touched += 1;
        self.body = "x".repeat(usize::try_from(bytes).unwrap());
        Change::Save
    }
}

/// Second stage: accounts and money of a tenant, and how many accounts have how much.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Sheet {
    pub(crate) accounts: i64,
    pub(crate) cents: i64,
    pub(crate) changes: u64,
}

impl StageView for Sheet {
    const NAME: &'static str = "sheet";
    type Source = Account;
    type Input = i64;

    fn input(source: &Account) -> i64 {
        source.cents
    }

    fn keys(_: &Changed<i64>, keys: &mut Keys) {
        keys.push("all");
    }

    fn apply(&mut self, _: &str, change: &Changed<i64>) -> Change {
        assert_ne!(change.before, change.after, "only changes arrive");
        self.accounts += i64::from(change.after.is_some()) - i64::from(change.before.is_some());
        self.cents += change.after.unwrap_or(0) - change.before.unwrap_or(0);
        self.changes += 1;
        Change::Save
    }
}

/// First stage of the composite: an account that is closed when it is empty.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Account {
    pub(crate) cents: i64,
    pub(crate) notes: BTreeMap<u64, String>,
}

impl View for Account {
    const NAME: &'static str = "account";
    type Event = Money;

    fn apply(&mut self, event: &Recorded<Money>) -> Change {
        self.cents += cents(&event.event);
        match (&event.event, self.cents) {
            (Money::Withdrawn { .. }, 0) => Change::Delete,
            (Money::Odd, _) => {
                self.notes.insert(event.sequence.get(), "odd".into());
                Change::Save
            }
            _ => Change::Save,
        }
    }
}

pub(crate) fn bank() -> Composite {
    Composite::new("bank", 1).stage(|s| s.view::<Account>()).stage(|s| s.stage_view::<Sheet>())
}
