//! The PostgreSQL store of Bellwether: every port of `bellwether-storage` on PostgreSQL 15 or later.

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
