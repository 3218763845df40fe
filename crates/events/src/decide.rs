//! The deciding writer of one database: a plain, synchronous machine.
//!
//! Appends go in ([`Writer::queue`]), orders come out ([`Writer::order`]), outcomes go in (one function per kind of flight),
//! news come out ([`Writer::news`]): replies to callers, and heads that moved. It knows no clock, no task and no database; the
//! shell in `perform/` carries its orders out.
//!
//! # Invariants
//!
//! * Appends of a tenant are decided in the order they came, and a tenant is in at most one flight at a time.
//! * A decision is made against a head; the database appends only if it finds that head. So what is cached of a tenant (the
//!   head left behind, the versions of its streams) may be out of date, and decisions are still exact.
//! * A conflict is reported only when it was confirmed: by a commit under the same head, under the lock, or by a read that
//!   began after the append had come.
//! * An append whose outcome is not known blocks its tenant until the outcome is known.
//! * Everything cached is bound to one life of the server.
//!
//! # Where to start reading
//!
//! `writer.rs` puts tenants into lines and `orders.rs` takes them out; `fold.rs` decides; the `*_flight.rs` take outcomes in and
//! `settle.rs` ends flights; `facts.rs` is what is known.

mod append;
mod bounds;
mod order;

mod versions;

mod fold;
mod lane;

mod facts;
mod orders;
mod settle;
mod writer;

mod batch_flight;
mod lock_flight;
mod read_flight;

#[cfg(test)]
mod writer_exam;

pub(crate) use append::{Append, AppendKey, Part, Reply, Seen};
pub(crate) use bounds::Bounds;
pub(crate) use order::{FlightNo, Found, Look, News, Order, Task, Write};
pub(crate) use writer::Writer;
