//! A running server, and the handle that starts, stops and kills it.

use std::{
    net::{Ipv4Addr, TcpListener},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::Child,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use rustix::process::Signal;
use tempfile::TempDir;

use crate::{
    account::Account,
    binaries::Binaries,
    cluster,
    error::{LaunchError, Result},
    options::{Lifetime, Options},
    postmaster::{self, Postmaster},
    psql::{self, Address},
    watchdog::Watchdog,
};

/// How long a start may take, recovery after a crash included.
const START_LIMIT: Duration = Duration::from_secs(120);
/// How long a stop may take before the server is made to leave its clients at once.
const STOP_LIMIT: Duration = Duration::from_secs(30);
/// How often a start is tried again when the port was taken meanwhile, or the processes of a crash still end.
const STARTS_MAX: u32 = 50;
/// Between two looks at something that is waited for.
const LOOK_EVERY: Duration = Duration::from_millis(20);

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

struct Ours {
    account: Option<Account>,
    data_dir: PathBuf,
    lifetime: Lifetime,
    run: Mutex<Run>,
    // Removed last, after the server has stopped.
    temporary: Option<TempDir>,
}

struct Run {
    port: u16,
    pid: Option<u32>,
    watchdog: Option<Watchdog>,
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
        let account = if cluster::exists(&data_dir) {
            Account::of_cluster(&data_dir)?
        } else {
            let account = Account::for_new_cluster()?;
            if let (Some(account), Some(folder)) = (&account, &temporary) {
                account.own(folder.path())?;
            }
            cluster::create(&binaries, account.as_ref(), &data_dir)?;
            account
        };
        // A temporary folder goes with the process, so a server in it does too.
        let lifetime = if temporary.is_some() { Lifetime::WithParent } else { options.lifetime };
        let ours = Ours {
            account,
            data_dir,
            lifetime,
            run: Mutex::new(Run { port: 0, pid: None, watchdog: None }),
            temporary,
        };
        match lifetime {
            Lifetime::Detached if ours.take_over(&binaries)? => {}
            Lifetime::Detached => ours.launch(&binaries, Start::With(&options))?,
            Lifetime::WithParent => {
                ours.wait_for_predecessor()?;
                let remove = ours.temporary.as_ref().map(TempDir::path);
                let watchdog = Watchdog::start(&binaries, ours.account.as_ref(), &ours.data_dir, remove)?;
                ours.run().watchdog = Some(watchdog);
                ours.launch(&binaries, Start::With(&options))?;
            }
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
        let ours = Ours {
            account: Account::of_cluster(&data_dir)?,
            data_dir,
            lifetime: Lifetime::Detached,
            run: Mutex::new(Run { port: 0, pid: None, watchdog: None }),
            temporary: None,
        };
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
        self.ours().map(|ours| ours.run().port)
    }

    /// The process id of the server; `None` when it is stopped, or was given by its address.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.ours().and_then(|ours| ours.run().pid)
    }

    /// The data folder; `None` for a server given by its address.
    #[must_use]
    pub fn data_dir(&self) -> Option<&Path> {
        self.ours().map(|ours| ours.data_dir.as_path())
    }

    /// The end of the server's log, a few KiB; empty for a server given by its address.
    #[must_use]
    pub fn log(&self) -> String {
        self.ours().map(|ours| cluster::log_tail(&ours.data_dir, 0)).unwrap_or_default()
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
            Place::Ours(ours) => Address::local(ours.run().port),
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

impl Ours {
    fn run(&self) -> MutexGuard<'_, Run> {
        self.run.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes over the server that runs on the folder, once it is ready; `false` when none runs.
    fn take_over(&self, binaries: &Binaries) -> Result<bool> {
        let begun = Instant::now();
        // One that is about to stop, or to fail its recovery, ends instead of becoming ready.
        while let Some(found) = Postmaster::running(&self.data_dir) {
            if let (true, Some(port)) = (found.ready, found.port)
                && psql::run(binaries, &Address::local(port), "postgres", "SELECT 1").is_ok()
            {
                let mut run = self.run();
                (run.port, run.pid) = (port, Some(found.pid));
                return Ok(true);
            }
            self.within(begun, START_LIMIT, "taking over the running server", 0)?;
        }
        if let Some(port) = Postmaster::read(&self.data_dir).and_then(|found| found.port) {
            self.run().port = port;
        }
        Ok(false)
    }

    /// Waits for the server of a predecessor, whose watchdog is about to stop it.
    fn wait_for_predecessor(&self) -> Result<()> {
        let begun = Instant::now();
        while let Some(found) = Postmaster::running(&self.data_dir) {
            if begun.elapsed() >= STOP_LIMIT {
                return Err(LaunchError::AlreadyRunning { data_dir: self.data_dir.clone(), pid: found.pid });
            }
            thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }

    fn launch(&self, binaries: &Binaries, start: Start<'_>) -> Result<()> {
        if let Some(account) = &self.account {
            account.may_reach(&self.data_dir)?;
        }
        if let Start::With(options) = start {
            cluster::configure(self.account.as_ref(), &self.data_dir, options)?;
        }
        let begun = Instant::now();
        let mut port = match self.run().port {
            0 => free_port()?,
            known => known,
        };
        let mut last = String::new();
        for _ in 0..STARTS_MAX {
            match self.launch_on(binaries, port, begun)? {
                Outcome::Ready(child) => {
                    let mut run = self.run();
                    run.port = port;
                    run.pid = Some(child.id());
                    return reap(child);
                }
                Outcome::PortTaken(_) if !matches!(start, Start::OnSamePort) => port = free_port()?,
                Outcome::PortTaken(log) | Outcome::StillInUse(log) => {
                    last = log;
                    thread::sleep(Duration::from_millis(100));
                }
            }
            if begun.elapsed() >= START_LIMIT {
                break;
            }
        }
        Err(LaunchError::Program { program: "postgres", message: last })
    }

    fn launch_on(&self, binaries: &Binaries, port: u16, begun: Instant) -> Result<Outcome> {
        let (log, log_begin) = cluster::open_log(self.account.as_ref(), &self.data_dir)?;
        let errors = log.try_clone().map_err(LaunchError::io("open the server's log twice"))?;
        let mut command = binaries.command("postgres");
        command.arg("-D").arg(&self.data_dir).args(["-p", &port.to_string()]).stdout(log).stderr(errors);
        // An interrupt from the terminal is meant for the caller, who stops the server in order.
        command.process_group(0);
        if let Some(account) = &self.account {
            account.apply(&mut command);
        }
        let mut child = command.spawn().map_err(LaunchError::io("run postgres"))?;
        loop {
            let ended = child.try_wait().map_err(LaunchError::io("wait for postgres"))?;
            if ended.is_some() {
                let log = cluster::log_tail(&self.data_dir, log_begin);
                return why_it_ended(log);
            }
            let ready =
                Postmaster::read(&self.data_dir).is_some_and(|found| found.pid == child.id() && found.ready);
            if ready {
                return Ok(Outcome::Ready(child));
            }
            if let Err(error) = self.within(begun, START_LIMIT, "starting the server", log_begin) {
                let _ended_anyway = child.kill().and_then(|()| child.wait());
                return Err(error);
            }
        }
    }

    fn stop(&self, how: Signal) -> Result<()> {
        let Some(pid) = self.run().pid else { return Ok(()) };
        postmaster::signal(pid, how);
        if self.wait_for_end(&[pid]).is_err() {
            postmaster::signal(pid, Signal::QUIT);
            self.wait_for_end(&[pid])?;
        }
        self.run().pid = None;
        Ok(())
    }

    fn kill(&self) -> Result<()> {
        let Some(pid) = self.run().pid else { return Ok(()) };
        let mut family = postmaster::children(pid);
        family.push(pid);
        postmaster::signal(pid, Signal::KILL);
        // The others notice by themselves that their parent is gone.
        self.wait_for_end(&family)?;
        self.run().pid = None;
        Ok(())
    }

    fn wait_for_end(&self, pids: &[u32]) -> Result<()> {
        let begun = Instant::now();
        while pids.iter().any(|pid| postmaster::is_alive(*pid)) {
            self.within(begun, STOP_LIMIT, "stopping the server", 0)?;
        }
        Ok(())
    }

    /// One step of a wait: a short pause, or the error when the limit has passed.
    fn within(&self, begun: Instant, limit: Duration, what: &'static str, log_begin: u64) -> Result<()> {
        if begun.elapsed() >= limit {
            return Err(LaunchError::Timeout {
                what,
                limit,
                log: cluster::log_tail(&self.data_dir, log_begin),
            });
        }
        thread::sleep(LOOK_EVERY);
        Ok(())
    }
}

impl Drop for Ours {
    fn drop(&mut self) {
        if self.lifetime == Lifetime::Detached {
            return;
        }
        // Nobody will read a temporary folder again, so its server need not tidy up.
        let how = if self.temporary.is_some() { Signal::QUIT } else { Signal::INT };
        let stopped = self.stop(how).is_ok();
        let watchdog = self.run().watchdog.take();
        if let (true, Some(watchdog)) = (stopped, watchdog) {
            watchdog.dismiss();
        }
    }
}

/// What a start has to keep to.
#[derive(Clone, Copy)]
enum Start<'a> {
    /// These options, on any port.
    With(&'a Options),
    /// The settings of the last start, on its port if it is free.
    AsBefore,
    /// The settings and the port of the last start: this handle has given out URLs.
    OnSamePort,
}

enum Outcome {
    Ready(Child),
    /// Somebody took the port between our look and the server's.
    PortTaken(String),
    /// Processes of the server that crashed here are still ending.
    StillInUse(String),
}

fn why_it_ended(log: String) -> Result<Outcome> {
    if log.contains("Address already in use") {
        return Ok(Outcome::PortTaken(log));
    }
    if log.contains("still in use") || log.contains("lock file \"postmaster.pid\" already exists") {
        return Ok(Outcome::StillInUse(log));
    }
    Err(LaunchError::Program { program: "postgres", message: log })
}

/// Waits for the end of the server in the background: a process that ended and was not waited for would look alive to
/// the next server on the same folder.
fn reap(mut child: Child) -> Result<()> {
    thread::Builder::new()
        .name(String::from("postgres-reaper"))
        .spawn(move || child.wait())
        .map(drop)
        .map_err(LaunchError::io("start a thread"))
}

/// A port of the loopback interface that was free a moment ago.
fn free_port() -> Result<u16> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .and_then(|listener| listener.local_addr())
        .map(|address| address.port())
        .map_err(LaunchError::io("find a free port on 127.0.0.1"))
}
