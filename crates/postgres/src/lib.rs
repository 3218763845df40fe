//! The PostgreSQL store of Bellwether: every port of `bellwether-storage` on PostgreSQL 15 or later.
//!
//! # Example
//!
//! ```
//! use bellwether_postgres::Postgres;
//! use bellwether_storage::{Database, Discovery, TenantId, Tenants};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let Some(server) = bellwether_launch::require("the example of bellwether-postgres") else { return Ok(()) };
//! let url = "postgres://shop@127.0.0.1/shop";
//! # let url = &server.fresh_database()?;
//! let db = Postgres::connect(url).await?;
//! let acme = db.ensure_tenant(&TenantId::new("acme")?).await?;
//! assert!(acme.open);
//!
//! let moved = db.moved_heads(None).await?;
//! assert_eq!(moved.heads[0].id.as_str(), "acme");
//! db.close().await;
//! # Ok(())
//! # }
//! ```
//!
//! # Model
//!
//! One handle is one database and one *incarnation*: its connections are known to the server as `bellwether/<uuid>`. It keeps
//! a small pool per purpose (append, head lock, page, read, control), so that who waits for one kind of work never keeps
//! another waiting. Each connection carries the identity of the server it was made to; since it cannot outlive that server's
//! process, every answer through it is bound to that identity without asking again. (A standby that is promoted keeps its
//! process: what was read from it stays true of it, so the identity seen at connect is still the right one to compare.)
//! Connect to the server itself: a pooler that switches servers behind a connection breaks this.
//!
//! Statements live in `sql/<noun>/<verb>.sql`; each file says what holds after it and which locks it takes. The events are
//! partitioned by *place*; reads send the place they expect as a constant, so that a plan looks at one partition whatever the
//! number of tenants, and the statement says when the tenant lies elsewhere.
//!
//! # Guarantees
//!
//! * An append is one statement and one round trip; it waits for no head, and cannot take part in a deadlock.
//! * A page begins with two round trips, streams its output in statements of at most 256 KiB, and holds no copy of what it sent.
//! * Dropping anything, at any await, closes or gives back its connection; the server rolls back. Nothing stays locked.
//! * A runner whose progress row is held by another incarnation of ours ends that backend after two lock timeouts. Sessions
//!   that are not ours, and pages of the same handle, are only waited for.
//! * User, password and URL appear in no message, log line or `Debug` output.
//!
//! # Limits
//!
//! * A commit that stops waiting for its synchronous standby is reported by PostgreSQL in a warning (01000) that the driver
//!   does not hand out. What our own timeouts cut off is noticed by its duration and answered `Unknown`; an operator who
//!   cancels such a wait by hand is not noticed.
//! * With `synchronous_commit = off` a crash loses acknowledged appends under one and the same identity. Leave it on.
//! * No encrypted connections: the driver is built without TLS.
//! * The user's own SQL may not change session settings (`SELECT set_config(…)` included): the connection is used again.
//!   Whole numbers are sent as `int8`, floats as `float8`, text as `text`; PostgreSQL casts them on assignment, elsewhere write
//!   `$1::uuid`, `$1::jsonb`, … Columns without a neutral form (numeric, timestamps, arrays) must be cast in the query.
//! * A NUL in the class or reason of a dead letter is stored as U+FFFD: this database cannot store it.
//! * A transaction left open in *any* database of the server holds discovery's cursor: heads repeat, none is missed.
//!
//! # Failures
//!
//! | What happened | Kind | Do |
//! |---|---|---|
//! | refused row or statement (classes 21, 22, 23, 42, 54, 0A, …) | `Rejected` | nothing happened: fix or bisect |
//! | deadlock, serialization failure (40) | `Conflict` | nothing happened: again |
//! | lock or statement timeout, refused or broken connection before a commit was sent | `Unavailable` | nothing happened: again, with back-off |
//! | connection or session lost under an append, a fence or a COMMIT | `Unknown` | resolve it: `protocols.md` §1.4 |
//! | a hole below the head, damaged pages (XX001, XX002) | `Corrupt` | stop, call an operator |
//!
//! # Where to start reading
//!
//! `sql/append/batch.sql` and `log.rs` for appends, `sql/events/page.sql` for pages, `unit.rs` for page transactions, `fence.rs`
//! for ownership, `perform/link.rs` for what cancelling does.

mod decide;
mod perform;

mod config;
mod error;
mod sql;
mod values;

mod handle;

mod discovery;
mod lock;
mod log;
mod rows;

mod fence;
mod projections;
mod unit;
mod user;

pub use config::PostgresConfig;
pub use handle::Postgres;
pub use sql::sql_files;
