//! Directory of tenants: which tenant lives in which database.
//!
//! # Example
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> bellwether_storage::Result<()> {
//! use std::sync::Arc;
//! use bellwether_memory::Memory;
//! use bellwether_storage::{DatabaseNo, Directory, ErrorKind, TenantId};
//! use bellwether_tenants::{Placed, Rule};
//!
//! let directory = Placed::new(vec![Arc::new(Memory::new()), Arc::new(Memory::new())], Rule::Explicit);
//! let acme = TenantId::new("acme")?;
//! assert_eq!(directory.locate(&acme).await.unwrap_err().kind(), ErrorKind::Rejected);
//!
//! directory.place(&acme, DatabaseNo(1)).await?;
//! assert_eq!(directory.locate(&acme).await?.database, DatabaseNo(1));
//! # Ok(()) }
//! ```
//!
//! # Model
//!
//! Every database keeps the register of its own tenants. The directory is the sum of these registers, read when asked and
//! remembered. A [`Rule`] says what happens to a tenant nobody knows: with one database it is created there; with several
//! it must be placed by name first, so that a typo never becomes a tenant.
//!
//! # Guarantees and limits
//!
//! * An answer is remembered until [`forget`](bellwether_storage::Directory::forget); who meets a closed or missing tenant
//!   forgets and asks again.
//! * A tenant found in two databases is refused as corrupt, naming both: nothing is read from or written to either.
//! * Two processes that place the same tenant into two databases at the same instant are found out afterwards, not
//!   prevented: without a control database there is no row both would have to write.
//!
//! # Where to start reading
//!
//! [`Placed`]; its rule is the pure function in `decide/residence.rs`.

mod decide;
mod placed;

pub use placed::{Placed, Rule};
