//! The handle of a server: what callers see.

use std::{
    path::Path,
    sync::atomic::{AtomicU64, Ordering},
    time::{SystemTime, UNIX_EPOCH},
};

use rustix::process::Signal;

use crate::{
    account::Account,
    binaries::Binaries,
    cluster,
    error::{LaunchError, Result},
    options::{Lifetime, Options},
    ours::{Ours, Start},
    psql::{self, Address},
};

/// A PostgreSQL server.
///
/// Started by [`Postgres::start`], found again by [`Postgres::adopt`], or shared by the tests of a process:
/// [`test_server`](crate::test_server).
pub struct Postgres {
    binaries: Binaries,
    place: Place,
}

enum Place {
    /// Started or adopted here.
    Ours(Box<Ours>),
    /// Known by its address only.
    Given(Address),
}

impl Postgres {
    /// Starts a server: makes the data folder when it is missing, goes on with the data when it is there, and waits
    /// until the server answers, recovery after a crash included.
    ///
    /// With [`Lifetime::Detached`] a server that already runs on the folder is taken over as it runs.
    ///
    /// # Errors
    /// [`LaunchError::NotInstalled`]: install PostgreSQL. [`LaunchError::Unreachable`] and
    /// [`LaunchError::Occupied`]: choose another folder. [`LaunchError::AlreadyRunning`]: with
    /// [`Lifetime::WithParent`], when somebody else's server keeps running on the folder.
    pub fn start(options: Options) -> Result<Self> {
        let binaries = Binaries::find()?;
        let (data_dir, temporary) = match &options.data_dir {
            Some(folder) => (cluster::prepare(folder)?, None),
            None => {
                let folder = tempfile::Builder::new()
                    .prefix("bellwether-postgres-")
                    .tempdir()
                    .map_err(LaunchError::io("create a temporary folder"))?;
                (folder.path().join("data"), Some(folder))
            }
        };
        let lock = cluster::lock(&data_dir)?;
        let is_new = !cluster::exists(&data_dir);
        let account = if is_new { Account::for_new_cluster()? } else { Account::of_cluster(&data_dir)? };
        if let (Some(account), Some(folder)) = (&account, &temporary) {
            account.own(folder.path())?;
        }
        // A temporary folder goes with the process, so a server in it does too.
        let lifetime = if temporary.is_some() { Lifetime::WithParent } else { options.lifetime };
        let ours = Ours::new(account, data_dir, lifetime, temporary);
        if lifetime == Lifetime::WithParent {
            ours.wait_for_predecessor()?;
            // Before anything is made that could stay behind.
            ours.watch(&binaries)?;
        }
        if is_new {
            ours.create(&binaries)?;
        }
        if lifetime == Lifetime::WithParent || !ours.take_over(&binaries)? {
            ours.launch(&binaries, Start::With(&options))?;
        }
        drop(lock);
        Ok(Self { binaries, place: Place::Ours(Box::new(ours)) })
    }

    /// Finds the server of a data folder: as it runs, or started again on the data that a stop or a crash left, with
    /// the settings of its last start and, if it is free, on its last port. It lives on when the handle is dropped.
    ///
    /// # Errors
    /// [`LaunchError::NoCluster`]: no server was ever started there; use [`Postgres::start`].
    /// [`LaunchError::Timeout`]: the server does not come up; its log is in the error.
    pub fn adopt(data_dir: impl AsRef<Path>) -> Result<Self> {
        let binaries = Binaries::find()?;
        let data_dir = cluster::prepare(data_dir.as_ref())?;
        if !cluster::exists(&data_dir) {
            return Err(LaunchError::NoCluster(data_dir));
        }
        let lock = cluster::lock(&data_dir)?;
        let account = Account::of_cluster(&data_dir)?;
        let ours = Ours::new(account, data_dir, Lifetime::Detached, None);
        if !ours.take_over(&binaries)? {
            ours.launch(&binaries, Start::AsBefore)?;
        }
        drop(lock);
        Ok(Self { binaries, place: Place::Ours(Box::new(ours)) })
    }

    /// A server that somebody else runs, by the URL of any of its databases.
    ///
    /// # Errors
    /// [`LaunchError::NotInstalled`] when there is no `psql` to reach it with; [`LaunchError::Program`] when the URL
    /// is none.
    pub fn at(url: &str) -> Result<Self> {
        // The text is not repeated: it may hold a password.
        let message = String::from("this is no PostgreSQL URL; write postgres://user@host:port/database");
        let address = Address::parse(url).ok_or(LaunchError::Program { program: "psql", message })?;
        Ok(Self { binaries: Binaries::find()?, place: Place::Given(address) })
    }

    /// The URL of one database of this server.
    #[must_use]
    pub fn url(&self, database: &str) -> String {
        self.address().url(database)
    }

    /// The port on 127.0.0.1; `None` for a server given by its address.
    #[must_use]
    pub fn port(&self) -> Option<u16> {
        self.ours().map(|ours| ours.port())
    }

    /// The process id of the server; `None` when it is stopped, or was given by its address.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.ours().and_then(|ours| ours.pid())
    }

    /// The data folder; `None` for a server given by its address.
    #[must_use]
    pub fn data_dir(&self) -> Option<&Path> {
        self.ours().map(|ours| ours.data_dir())
    }

    /// The end of the server's log, a few KiB; empty for a server given by its address.
    #[must_use]
    pub fn log(&self) -> String {
        self.ours().map(|ours| cluster::log_tail(ours.data_dir(), 0)).unwrap_or_default()
    }

    /// The programs this server runs from.
    #[must_use]
    pub fn binaries(&self) -> &Binaries {
        &self.binaries
    }

    /// Creates an empty database.
    ///
    /// # Errors
    /// [`LaunchError::Name`] when the name would need quotes; [`LaunchError::Program`] with PostgreSQL's words, for
    /// example when it exists already.
    pub fn create_database(&self, name: &str) -> Result<()> {
        let name = psql::plain_name(name)?;
        self.sql("postgres", &format!("CREATE DATABASE {name}")).map(drop)
    }

    /// Creates an empty database under a name that nobody uses, and returns its URL.
    ///
    /// # Errors
    /// [`LaunchError::Program`] with PostgreSQL's words.
    pub fn fresh_database(&self) -> Result<String> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        // Several test processes share a server, and a process id may come again: the time tells them apart.
        let nanos = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let name = format!("test_{}_{number}_{nanos:x}", std::process::id());
        self.create_database(&name)?;
        Ok(self.url(&name))
    }

    /// Runs statements in one database, without a driver, and returns what `psql` prints: a row per line, `|`
    /// between columns.
    ///
    /// # Errors
    /// [`LaunchError::Program`] with PostgreSQL's words.
    pub fn sql(&self, database: &str, sql: &str) -> Result<String> {
        psql::run(&self.binaries, &self.address(), database, sql)
    }

    /// Stops the server in order: sessions are ended, everything committed is on disk. Stopped already is success.
    ///
    /// # Errors
    /// [`LaunchError::Timeout`] when it does not end; [`LaunchError::NotOurs`] for a server given by its address.
    pub fn stop(&self) -> Result<()> {
        self.ours().ok_or(LaunchError::NotOurs("stop"))?.stop(Signal::INT)
    }

    /// Kills the server's first process with `SIGKILL`, as a power cut would, and waits until all its processes are
    /// gone, so that it can be started again at once.
    ///
    /// # Errors
    /// [`LaunchError::Timeout`] when processes stay; [`LaunchError::NotOurs`] for a server given by its address.
    pub fn kill(&self) -> Result<()> {
        self.ours().ok_or(LaunchError::NotOurs("kill"))?.kill()
    }

    /// Stops the server if it runs, and starts it again on the same port, so that URLs stay valid.
    ///
    /// # Errors
    /// As [`Postgres::stop`] and [`Postgres::start`]; [`LaunchError::Program`] when another program has taken the
    /// port meanwhile.
    pub fn restart(&self) -> Result<()> {
        let ours = self.ours().ok_or(LaunchError::NotOurs("restart"))?;
        ours.stop(Signal::INT)?;
        ours.launch(&self.binaries, Start::OnSamePort)
    }

    fn ours(&self) -> Option<&Ours> {
        match &self.place {
            Place::Ours(ours) => Some(ours),
            Place::Given(_) => None,
        }
    }

    fn address(&self) -> Address {
        match &self.place {
            Place::Ours(ours) => Address::local(ours.port()),
            Place::Given(address) => address.clone(),
        }
    }
}

impl std::fmt::Debug for Postgres {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // No URL: one that was given may hold a password.
        f.debug_struct("Postgres").field("data_dir", &self.data_dir()).field("pid", &self.pid()).finish()
    }
}
