//! Three tenants, one projection, one SQLite file, no server: `cargo run -p bellwether --example hello`
use std::time::Duration;

use bellwether::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Event)]
enum Money {
    Opened { owner: String },
    Deposited { cents: i64 },
    Withdrawn { cents: i64 },
}

#[derive(Default)]
struct Account {
    cents: i64,
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

#[derive(Clone)]
struct Withdraw(i64);

#[derive(Debug, PartialEq, thiserror::Error)]
#[error("{have} cents in the account, {want} asked for")]
struct Short {
    have: i64,
    want: i64,
}

impl Decide<Withdraw> for Account {
    type Error = Short;
    fn decide(&self, Withdraw(want): Withdraw) -> Result<Vec<Money>, Short> {
        if want > self.cents {
            return Err(Short { have: self.cents, want });
        }
        Ok(vec![Money::Withdrawn { cents: want }])
    }
}

#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
struct Totals {
    accounts: u64,
    cents: i64,
} // one document per tenant

impl MultiView for Totals {
    const NAME: &'static str = "totals";
    type Event = Money;
    fn keys(_: &Recorded<Money>, keys: &mut Keys) {
        keys.push("all");
    }
    fn apply(&mut self, _key: &str, recorded: &Recorded<Money>) -> Change {
        match &recorded.event {
            Money::Opened { .. } => self.accounts += 1,
            Money::Deposited { cents } => self.cents += cents,
            Money::Withdrawn { cents } => self.cents -= cents,
        }
        Change::Save
    }
}

#[tokio::main]
async fn main() -> Result<(), bellwether::BoxError> {
    let store = bellwether::open("sqlite:hello.db").await?;
    let node = Node::builder(store.clone()).multi_view::<Totals>().start().await?;
    for name in ["acme", "globex", "initech"] {
        let account = store.tenant(name)?.stream::<Account>("account/a-1")?;
        account.append([Money::Opened { owner: name.into() }, Money::Deposited { cents: 900 }]).await?;
        account.execute(Withdraw(250)).await?;
    }
    node.caught_up(Duration::from_secs(10)).await?;
    for tenant in store.tenants().await? {
        println!("{tenant}: {:?}", store.tenant(&tenant)?.load::<Totals>("all").await?);
    }
    node.stop().await?;
    Ok(())
}
