//! Composition of Bellwether: opening stores, wiring, start and stop order. No rule of its own.
//!
//! # Example
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
//! let store = bellwether_node::open("memory:").await?;
//! let node = bellwether_node::Node::builder(store.clone()).budget_bytes(16 * 1024 * 1024).start().await?;
//! assert!(store.tenants().await?.is_empty());
//! node.stop().await?;
//! # Ok(()) }
//! ```
//!
//! # Model
//!
//! [`open`] turns an address into a [`Store`](bellwether_events::Store) over one database, [`open_fleet`] into one over several.
//! A [`Node`] runs the projections registered with its builder, for every tenant of the store, in this process. It stops in
//! reverse order of its start: first the projections (pages in flight end or roll back), then the store (appends that were
//! accepted are committed), then the connections.
//!
//! # Where to start reading
//!
//! `open.rs` for addresses, `node.rs` for the order of start and stop.

mod node;
mod open;

pub use node::{Node, NodeBuilder, NodeError};
pub use open::{Fleet, open, open_database, open_fleet};
