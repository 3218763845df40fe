//! The one server that the tests of a process share.

use std::{
    env,
    io::{self, Write},
    sync::OnceLock,
};

use crate::{
    error::{LaunchError, Result},
    options::Options,
    server::Postgres,
};

/// Names a running server, by the URL of any of its databases, for the tests to use instead of starting one.
pub const TEST_SERVER_VARIABLE: &str = "BELLWETHER_TEST_POSTGRES";
/// Set to anything, a missing server makes tests fail instead of being skipped.
pub const REQUIRE_VARIABLE: &str = "BELLWETHER_REQUIRE_SERVERS";

/// The server that the tests of this process share: the one named by `BELLWETHER_TEST_POSTGRES`, else one of our own,
/// started at the first call, without fsync, which ends with the process.
///
/// It allows 300 connections and loads `pg_stat_statements`. Take a database of your own with
/// [`Postgres::fresh_database`]; a test that stops or kills its server starts one with [`Postgres::start`].
///
/// # Errors
/// As [`Postgres::start`]; the first answer is kept for the process.
pub fn test_server() -> Result<&'static Postgres> {
    static SERVER: OnceLock<Result<Postgres>> = OnceLock::new();
    let server = SERVER.get_or_init(|| match env::var(TEST_SERVER_VARIABLE) {
        Ok(url) => Postgres::at(&url),
        Err(_) => Postgres::start(test_options()),
    });
    server.as_ref().map_err(LaunchError::clone)
}

/// The server for a test, or `None` when this machine has none: then the test returns, and says so loudly.
///
/// `what` names what is skipped. The words begin with `SKIPPED`, on the standard error and past the test harness, so
/// that they are seen even though the harness counts the test as passed.
///
/// # Panics
/// When the server is missing although `CI` or `BELLWETHER_REQUIRE_SERVERS` is set, and when an installed server
/// does not start: neither is a reason to skip.
#[must_use]
pub fn require(what: &str) -> Option<&'static Postgres> {
    match test_server() {
        Ok(server) => Some(server),
        Err(error @ LaunchError::NotInstalled) if !servers_are_required() => {
            let _unseen = writeln!(io::stderr(), "SKIPPED {what}: {error}");
            None
        }
        Err(error) => panic!("{what} needs PostgreSQL: {error}"),
    }
}

fn servers_are_required() -> bool {
    env::var_os("CI").is_some() || env::var_os(REQUIRE_VARIABLE).is_some()
}

/// Many test processes share the server, and some count statements.
pub(crate) fn test_options() -> Options {
    let settings = [("max_connections", "300"), ("shared_preload_libraries", "pg_stat_statements")];
    Options {
        settings: settings.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec(),
        ..Options::default()
    }
}
