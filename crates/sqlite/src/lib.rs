//! The SQLite store of Bellwether: one file, no server.
//!
//! # Example
//!
//! Typed events come on top, with `bellwether-events` and `bellwether-tenants`:
//! `Store::new(databases.clone(), Arc::new(Placed::new(databases, Rule::Single)))` with `databases` a
//! `Vec<Arc<dyn Database>>` that holds this store. What the store itself does:
//!
//! ```
//! use bellwether_sqlite::Sqlite;
//! use bellwether_storage::{Discovery, Tenants, TenantId};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! let folder = tempfile::tempdir()?;
//! let store = Sqlite::open(folder.path().join("hello.db")).await?;
//!
//! let acme = store.ensure_tenant(&TenantId::new("acme")?).await?;
//! assert!(acme.open);
//!
//! let moved = store.moved_heads(None).await?;
//! assert_eq!(moved.heads[0].id.as_str(), "acme");
//! assert!(store.moved_heads(Some(&moved.cursor)).await?.heads.is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Model
//!
//! A file holds many tenants. One connection writes, a few read; both in write-ahead-log mode, so reading never waits for
//! writing. Who wants to write stands in one line, where appends go before pages of projections and a page that was passed over
//! often enough goes next. Every transaction that writes begins with `BEGIN IMMEDIATE`, so it never finds out at its end that it
//! read something stale. Several processes may open the same file; SQLite's lock makes them take turns.
//!
//! # Guarantees
//!
//! * A commit is on disk when it is answered (`synchronous = FULL`).
//! * Events, head and change number of an append commit together; so do documents, progress and dead letters of a page.
//! * Discovery is exact: each commit that moves heads carries a number larger than all before it, handed out under the write
//!   lock.
//! * A future that is dropped midway leaves nothing: its connection is closed, and SQLite rolls back.
//! * A file of another application is refused and not changed.
//!
//! # Limits
//!
//! One transaction writes at a time, over all tenants of the file. So an append held open delays the others, a page should
//! compute before it begins ([`PageStyle::ComputeFirst`](bellwether_storage::PageStyle::ComputeFirst)), and one page at a time is
//! enough. The file belongs on a local disk.
//!
//! # When something fails
//!
//! A lock that another process keeps for longer than [`SqliteConfig::busy_timeout`] is `Unavailable`, and `Busy` for an append.
//! A commit whose answer is lost is `Unknown`. Whatever SQLite refuses by its rules is `Rejected`, and nothing of it stays.
//!
//! # Where to start reading
//!
//! [`Sqlite`] shows each port in one line. `decide/` holds the rules: whose turn it is, who may hold a progress row, which SQL a
//! user may run inside a page. `perform/gate.rs` is the writer, `perform/append.rs` and `perform/unit.rs` are what it is for.

mod config;
mod error;
mod sql;
mod store;

mod decide;
mod perform;

pub use config::SqliteConfig;
pub use sql::sql_files;
pub use store::Sqlite;
