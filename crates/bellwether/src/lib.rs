//! Event-sourced software for thousands of tenants in one process: an event store, and projections that take turns under one
//! memory budget.
//!
//! This crate re-exports the family and adds nothing: [`open`] a store, append typed events to the streams of a
//! [`Tenant`](events::Tenant), let a [`Node`] keep documents up to date, read them back.
//!
//! # Example
//!
//! ```
//! use std::time::Duration;
//! use bellwether::prelude::*;
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Debug, Clone, PartialEq, Event)]
//! enum Thermometer {
//!     Read { celsius: i64 },
//! }
//!
//! #[derive(Default)]
//! struct Sensor;
//!
//! impl Aggregate for Sensor {
//!     const NAME: &'static str = "sensor";
//!     type Event = Thermometer;
//!     fn evolve(&mut self, _event: &Thermometer) {}
//! }
//!
//! #[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
//! struct Hottest {
//!     celsius: i64,
//! }
//!
//! impl View for Hottest {
//!     const NAME: &'static str = "hottest";
//!     type Event = Thermometer;
//!     fn apply(&mut self, recorded: &Recorded<Thermometer>) -> Change {
//!         let Thermometer::Read { celsius } = recorded.event;
//!         self.celsius = self.celsius.max(celsius);
//!         Change::Save
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), bellwether::BoxError> {
//! let store = bellwether::open("memory:").await?;
//! let node = Node::builder(store.clone()).view::<Hottest>().start().await?;
//!
//! let tenant = store.tenant("acme")?;
//! tenant.stream::<Sensor>("roof")?.append([Thermometer::Read { celsius: 31 }, Thermometer::Read { celsius: 28 }]).await?;
//!
//! node.caught_up(Duration::from_secs(10)).await?;
//! assert_eq!(tenant.load::<Hottest>("roof").await?, Some(Hottest { celsius: 31 }));
//! node.stop().await?;
//! # Ok(()) }
//! ```
//!
//! # Tests
//!
//! Decisions and views are tested without a store, by `events::given` and `daemon::project`:
//!
//! ```
//! use bellwether::daemon::project;
//! # use bellwether::prelude::*;
//! # use serde::{Deserialize, Serialize};
//! # #[derive(Debug, Clone, PartialEq, Event)]
//! # enum Thermometer { Read { celsius: i64 } }
//! # #[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
//! # struct Highest { celsius: i64 }
//! # impl MultiView for Highest {
//! #     const NAME: &'static str = "highest";
//! #     type Event = Thermometer;
//! #     fn keys(_: &Recorded<Thermometer>, keys: &mut Keys) { keys.push("all"); }
//! #     fn apply(&mut self, _: &str, recorded: &Recorded<Thermometer>) -> Change {
//! #         let Thermometer::Read { celsius } = recorded.event;
//! #         self.celsius = self.celsius.max(celsius);
//! #         Change::Save
//! #     }
//! # }
//! project::<Highest>()
//!     .given("acme", [Thermometer::Read { celsius: 31 }, Thermometer::Read { celsius: 28 }])
//!     .then("all", Highest { celsius: 31 });
//! ```
//!
//! # Features
//!
//! `sqlite` (default), `memory` (default), `postgres`: the stores [`open`] knows.

pub use bellwether_daemon as daemon;
pub use bellwether_events as events;
pub use bellwether_node as node;
pub use bellwether_storage as storage;
pub use bellwether_tenants as tenants;

pub use bellwether_node::{Fleet, Node, open, open_fleet};
pub use bellwether_storage::{BoxError, Error, Result};

/// `#[derive(Event)]` of a crate that depends on this one needs it; not part of the API.
#[doc(hidden)]
pub use bellwether_events::__private;

/// What most programs use.
pub mod prelude {
    pub use bellwether_daemon::{
        Change, Changed, Composite, DaemonConfig, Keys, MultiView, Page, ReadViews, SqlProjection, StageView,
        Tx, View,
    };
    pub use bellwether_events::{Aggregate, Decide, Event, Expected, Recorded, Store, Stream, Tenant};
    pub use bellwether_node::Node;
    pub use bellwether_storage::{Sequence, TenantId, Timestamp, Version};
}
