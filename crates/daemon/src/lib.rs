//! Projections whose tenants take turns under one memory budget.
//!
//! # Example
//!
//! ```
//! use std::{sync::Arc, time::Duration};
//!
//! use bellwether_daemon::{Change, Daemon, ReadViews, View};
//! use bellwether_events::{Event, Recorded, Store};
//! use bellwether_memory::Memory;
//! use bellwether_storage::Database;
//! use bellwether_tenants::{Placed, Rule};
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Debug, Clone, PartialEq, Event)]
//! enum Money { Deposited { cents: i64 } }
//!
//! #[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
//! struct Balance { cents: i64 }
//!
//! impl View for Balance {
//!     const NAME: &'static str = "balance";
//!     type Event = Money;
//!     fn apply(&mut self, event: &Recorded<Money>) -> Change {
//!         let Money::Deposited { cents } = event.event;
//!         self.cents += cents;
//!         Change::Save
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let databases: Vec<Arc<dyn Database>> = vec![Arc::new(Memory::new())];
//! let store = Store::new(databases.clone(), Arc::new(Placed::new(databases, Rule::Single)));
//! let daemon = Daemon::builder(store.clone()).view::<Balance>().start().await?;
//!
//! let acme = store.tenant("acme")?;
//! acme.stream_of::<Money>("a-1")?.append([Money::Deposited { cents: 900 }]).await?;
//!
//! daemon.caught_up(Duration::from_secs(10)).await?;
//! assert_eq!(acme.load::<Balance>("a-1").await?, Some(Balance { cents: 900 }));
//! daemon.stop().await?;
//! # Ok(()) }
//! ```
//!
//! # Model
//!
//! An *agent* is one projection of one tenant: a small task that follows the tenant's head. When there is work it takes the
//! database's permit, reserves room in the node's [`Budget`] (events and bytes, over all databases), loads a page, works on it
//! event by event with a bounded map of documents, and commits documents, dead letters and progress in one transaction. Then it
//! goes to the back of the line. New work is found by one statement per database and tick, however many agents there are, and
//! at once for appends of this process.
//!
//! What users write: a [`View`] (a document per stream), a [`MultiView`] (documents under keys of their choice), a
//! [`Composite`] of views in stages, where a [`StageView`] works on the changes of earlier documents, or a [`SqlProjection`].
//!
//! # Guarantees
//!
//! * Every event is applied exactly once, in order, to the documents of each projection: progress moves in the transaction that
//!   writes them, and an answer that was lost is resolved through the fence, never by repeating.
//! * Memory follows the budget, not the fan-out of an event: output is written in chunks, or the page is cut.
//! * A poison event becomes a dead letter of the member that fails on it, in the page's transaction; everything else goes on.
//! * An idle agent costs a few hundred bytes and no statement. Tenants are found while running.
//!
//! # Limits
//!
//! Views are deterministic and free of side effects: a page may be worked on more than once before it commits. Without a
//! cluster, a second daemon on the same store takes over what it first works on; who was fenced stands by, and takes over when
//! the owner stood still behind the head for ten seconds.
//!
//! # When something fails
//!
//! A page whose database cannot be reached is tried again with back-off; a page past its deadline is given up, rolled back and
//! halved; corrupt data stops the one agent that met it, with a reason in [`Daemon::status`].
//!
//! # Where to start reading
//!
//! `decide/course.rs` says what an agent does next, `perform/agent.rs` does it, `perform/turn.rs` is one page from permit to
//! release, `perform/work.rs` the work in between. `decide/budget.rs` holds the rules of the budget.

mod change;
mod keys;

mod composite;
mod multi_view;
mod readable;
mod sql_projection;
mod stage_view;
mod view;

mod project;
mod reading;

mod config;
mod error;
mod status;

mod builder;
mod daemon;

mod member;
mod projection;

mod decide;
mod perform;

pub use builder::DaemonBuilder;
pub use change::Change;
pub use composite::{Composite, Stage};
pub use config::DaemonConfig;
pub use daemon::Daemon;
pub use error::{DaemonError, NotCaughtUp};
pub use keys::Keys;
pub use multi_view::MultiView;
pub use project::{Foldable, Project, Projected, project};
pub use readable::{AsMultiView, AsStageView, AsView, Readable};
pub use reading::ReadViews;
pub use sql_projection::{Page, SqlProjection, Tx};
pub use stage_view::{Changed, StageView};
pub use status::{AgentState, AgentStatus, DaemonCounters, DaemonStatus};
pub use view::View;

pub use decide::budget::{AgentNo, Ask, Capacity, Reason};
pub use decide::gate::MemoryReading;
pub use decide::hopper::{Hopper, HopperConfig, Pace};
pub use perform::budget::{Budget, Lease, PageOverdue};
pub use perform::budget_config::{
    BYTES_DEFAULT_FRACTION, BYTES_DEFAULT_MAX, BudgetConfig, CHUNK_BYTES_DEFAULT, CHUNK_CAPACITY_FRACTION,
    InvalidBudget,
};
pub use perform::budget_status::{BudgetStatus, Gauge, Holding, InLine};
pub use perform::line::{Line, Turn};
pub use perform::memory::{MemorySource, SystemMemory};
pub use perform::permits::{PERMITS_PER_DATABASE_DEFAULT, Permit, PermitStatus, Permits};
pub use perform::wait_order;
