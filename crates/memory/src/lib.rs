//! A database in memory, with the semantics of a real one and faults on demand.
//!
//! It keeps every rule of the ports in `bellwether-storage`: heads are locked, pages read one snapshot, a unit of work buffers
//! its writes and commits them together with its progress or not at all. Tests of the layers above run against it in
//! microseconds, and the exam compares the SQL adapters with it.
//!
//! # Example
//!
//! ```
//! use bellwether_memory::Memory;
//! use bellwether_storage::{Sequence, TenantId, Tenants, EventLog, PageQuery};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> bellwether_storage::Result<()> {
//! let memory = Memory::new();
//! let tenant = memory.ensure_tenant(&TenantId::new("acme")?).await?;
//!
//! let query = PageQuery { tenant: tenant.number, after: Sequence::ZERO, up_to: None, types: None, events_max: 100, bytes_max: 1 << 20 };
//! let page = memory.another_handle().read_page(&query).await?;
//! assert_eq!((page.head, page.events.len()), (Sequence::ZERO, 0));
//! # Ok(())
//! # }
//! ```
//!
//! # Model
//!
//! A [`Memory`] is one process's handle to a database; a clone is the same handle, [`Memory::another_handle`] is the handle of
//! another process. All state lies behind one short lock that is never held across an await, so every call sees and leaves a
//! consistent whole. Heads and progress rows have asynchronous locks beside it, which is what an open transaction holds.
//!
//! # Faults
//!
//! [`Memory::faults`] loses answers before or after the effect, makes the database unreachable, holds heads, moves heads near the
//! ends of their range, and fails over to a server that has lost the last commits.
//!
//! # What it is not
//!
//! Durable: everything ends with the last handle. It speaks no SQL: statements answer `Unsupported`.
//!
//! # Where to start reading
//!
//! `state.rs` holds what is stored; `log.rs` and `projections.rs` are the two big ports; `faults.rs` is the fault switchboard.

mod database;
mod faults;
mod handle;
mod lock;
mod log;
mod projections;
mod state;
mod unit;

pub use faults::{Answer, Commit, Faults, HeldHead};
pub use handle::Memory;
