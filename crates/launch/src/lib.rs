//! Starts a private PostgreSQL from the binaries that are installed on this machine.
//!
//! Demos, tests and benchmarks need a real server of their own: one that nobody else uses, that may be killed, and
//! that does not stay behind. This crate finds the binaries ([`Binaries::find`]), makes a data folder, starts the
//! server on a free port of the loopback interface and waits until it answers.
//!
//! ```
//! # if bellwether_launch::require("the example of bellwether-launch").is_none() { return Ok(()) }
//! use bellwether_launch::{Options, Postgres};
//!
//! let server = Postgres::start(Options::default())?;
//! server.create_database("shop")?;
//! println!("connect to {}", server.url("shop"));
//! assert_eq!(server.sql("shop", "SELECT current_database()")?.trim(), "shop");
//! server.stop()?;
//! # Ok::<(), bellwether_launch::LaunchError>(())
//! ```
//!
//! # Guarantees
//!
//! * **Nothing stays behind.** With [`Lifetime::WithParent`] a small watchdog outside this process stops the server
//!   when this process ends in whatever way, `SIGKILL` included, and removes a temporary data folder.
//! * **Nothing is lost.** With [`Lifetime::Detached`] server and data outlive this process; [`Postgres::adopt`] finds
//!   the running server again, or starts it on the data that a crash left.
//! * **Never as root.** PostgreSQL refuses root; a caller with user id 0 starts it as `postgres` or `nobody`.
//! * **Never reachable from outside.** The server listens on 127.0.0.1 only and has no socket file. It trusts every
//!   local user: put no secrets into it.
//! * **Bounded waits.** Start, recovery after a crash, and stop each have a limit and then say what the server logged.
//!
//! The calls are synchronous: they start programs and wait for them. In asynchronous code that matters only for
//! [`Postgres::start`] and its like; wrap those in `spawn_blocking` where a thread is precious.
//!
//! Start reading at [`Postgres`].

mod account;
mod binaries;
mod cluster;
mod error;
mod options;
mod ours;
mod postmaster;
mod psql;
mod server;
mod test_server;
mod watchdog;

pub use binaries::Binaries;
pub use error::LaunchError;
pub use options::{Lifetime, Options};
pub use server::Postgres;
pub use test_server::{REQUIRE_VARIABLE, TEST_SERVER_VARIABLE, require, test_server};
