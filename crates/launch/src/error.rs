//! What can go wrong when a server is started, and what to do about it.

use std::{io, path::PathBuf, sync::Arc, time::Duration};

/// Why a server could not be started, reached or stopped.
///
/// Cloneable, because the one server of a test process may refuse to start for many tests at once.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// No PostgreSQL is installed where this crate looks. Install it, or name the folder of its programs.
    #[error(
        "no PostgreSQL server binaries found (looked at BELLWETHER_PG_BIN, pg_config --bindir, PATH and \
         /usr/lib/postgresql/*/bin); install them, for example with `apt-get install postgresql`, or set \
         BELLWETHER_PG_BIN to the folder that holds `postgres` and `initdb`"
    )]
    NotInstalled,
    /// The caller is root and there is no other user to run the server as. Create one of the two users.
    #[error(
        "PostgreSQL does not run as root, and this machine has neither a user `postgres` nor a user `nobody`"
    )]
    NoAccount,
    /// The user that runs the server may not enter a folder on the way to its data. Choose another data folder.
    #[error(
        "the user `{account}`, who runs PostgreSQL here, may not enter {folder}; choose a data folder whose parents \
         everybody may enter, or `chmod o+x {folder}`", folder = folder.display()
    )]
    Unreachable {
        /// The folder that cannot be entered.
        folder: PathBuf,
        /// The user that the server runs as.
        account: String,
    },
    /// The folder holds no PostgreSQL data, so nothing can be adopted. Start a server there first.
    #[error("{} holds no PostgreSQL data; start a server there first", .0.display())]
    NoCluster(PathBuf),
    /// The folder holds files that are not PostgreSQL's. Choose an empty or a new folder.
    #[error("{} is neither empty nor a PostgreSQL data folder; choose another one", .0.display())]
    Occupied(PathBuf),
    /// A server already runs on this folder and belongs to somebody else. Stop it, or adopt it.
    #[error("a server with process id {pid} already runs on {}; stop it, or adopt it with the lifetime `Detached`", data_dir.display())]
    AlreadyRunning {
        /// The data folder.
        data_dir: PathBuf,
        /// The process id of the other server.
        pid: u32,
    },
    /// A program of PostgreSQL ended with an error. Its own words say why.
    #[error("{program} failed: {message}")]
    Program {
        /// The program, such as `initdb`.
        program: &'static str,
        /// What it printed, shortened to its end.
        message: String,
    },
    /// Something did not happen in time. The last lines of the server's log are attached.
    #[error("{what} took longer than {} s; the server's log ends with: {log}", limit.as_secs())]
    Timeout {
        /// What was waited for.
        what: &'static str,
        /// The limit.
        limit: Duration,
        /// The end of the server's log.
        log: String,
    },
    /// A name that is not a plain database name. Use lower-case letters, digits and `_`, at most 63 of them.
    #[error("{0:?} is no plain database name; use lower-case letters, digits and `_`, at most 63 bytes")]
    Name(String),
    /// The server was not started by this crate (it was given by address), so it cannot be stopped or killed here.
    #[error("this server was given by its address and was not started here; start one of your own to {0} it")]
    NotOurs(&'static str),
    /// A call to the operating system failed.
    #[error("cannot {what}: {source}")]
    Io {
        /// What was attempted.
        what: String,
        /// The operating system's answer.
        source: Arc<io::Error>,
    },
}

impl LaunchError {
    /// Wraps the operating system's refusal of `what`.
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source: Arc::new(source) }
    }
}

/// A result with [`LaunchError`].
pub(crate) type Result<T> = std::result::Result<T, LaunchError>;
