//! The exam every store of Bellwether sits.
//!
//! One list of cases, each a plain async function over a [`Subject`]: an empty database with handles of two processes, and a few
//! hooks for what no port offers (raise a head, delete a row). An adapter enrols in one file and gets one named test per case.
//!
//! # Example: how an adapter enrols
//!
//! In `tests/exam.rs` of the adapter. This one enrols the store in memory:
//!
//! ```
//! use std::sync::Arc;
//! use async_trait::async_trait;
//! use bellwether_conformance::{Commit, Enrolment, Missing, NotApplicable, Prepared, Schemas, Subject};
//! use bellwether_memory::Memory;
//! use bellwether_storage::{Database, Sequence, TenantNo};
//!
//! struct Mine { memory: Memory, first: Arc<dyn Database>, second: Arc<dyn Database> }
//!
//! impl Enrolment for Mine {
//!     type Subject = Mine;
//!     fn not_applicable() -> &'static [NotApplicable] {
//!         &[NotApplicable { case: "every_sql_file_prepares", reason: "it speaks no SQL" }]
//!     }
//!     async fn fresh() -> Result<Mine, Missing> {
//!         let memory = Memory::new();
//!         let (first, second) = (Arc::new(memory.clone()), Arc::new(memory.another_handle()));
//!         Ok(Mine { memory, first, second })
//!     }
//! }
//!
//! #[async_trait]
//! impl Subject for Mine {
//!     fn first(&self) -> &Arc<dyn Database> { &self.first }
//!     fn second(&self) -> &Arc<dyn Database> { &self.second }
//!     async fn raise_head(&self, tenant: TenantNo, head: Sequence) { assert!(self.memory.faults().raise_head(tenant, head)); }
//!     async fn remove_event(&self, tenant: TenantNo, at: Sequence) { assert!(self.memory.faults().remove_event(tenant, at)); }
//!     async fn set_open(&self, tenant: TenantNo, open: bool) { assert!(self.memory.faults().set_open(tenant, open)); }
//! }
//!
//! // Then, one line: bellwether_conformance::exam!(mine, Mine);
//! bellwether_conformance::sit::<Mine>("a_tenant_is_ensured_once");
//! ```
//!
//! # Model
//!
//! [`cases`] is the list; [`exam!`] turns it into tests; [`sit`] runs one case on a fresh subject. What cannot apply to an
//! adapter stands in its [`Enrolment::not_applicable`] with the reason, which is printed: no case is skipped silently, and a name
//! that is not in the list fails.
//!
//! # What a case may assume
//!
//! Nothing but the documentation of the ports. Where a port leaves a choice (how far a page looks, whether discovery repeats),
//! the case accepts every choice.
//!
//! # Teeth
//!
//! The crate's own tests run the list against faulty stores, each broken in one way, and fail unless the case that guards against
//! that fault goes red.
//!
//! # Where to start reading
//!
//! `subject.rs` says what an adapter brings, `list.rs` is the list; the other files hold the cases, one noun each.

mod list;
mod sitting;
mod subject;

mod given;

#[doc(hidden)]
pub mod append;
#[doc(hidden)]
pub mod cancelled;
#[doc(hidden)]
pub mod clock;
#[doc(hidden)]
pub mod discovery;
#[doc(hidden)]
pub mod fence;
#[doc(hidden)]
pub mod handle;
#[doc(hidden)]
pub mod hostile;
#[doc(hidden)]
pub mod letters;
#[doc(hidden)]
pub mod lock;
#[doc(hidden)]
pub mod numbers;
#[doc(hidden)]
pub mod outcome;
#[doc(hidden)]
pub mod page;
#[doc(hidden)]
pub mod schema;
#[doc(hidden)]
pub mod sql;
#[doc(hidden)]
pub mod stream;
#[doc(hidden)]
pub mod tenants;
#[doc(hidden)]
pub mod unit;
#[doc(hidden)]
pub mod views;
#[doc(hidden)]
pub mod writers;

#[doc(hidden)]
pub mod agreement;

pub use list::{Case, CaseFuture, cases};
pub use sitting::{check_list, sit};
pub use subject::{Commit, Enrolment, Missing, NotApplicable, Prepared, Schemas, Subject};
