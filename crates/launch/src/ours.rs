//! A server that was started or taken over here: its process, its port, its end.

use std::{
    net::{Ipv4Addr, TcpListener},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::Child,
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
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

/// A server that was started or taken over here.
pub(crate) struct Ours {
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

impl Ours {
    pub(crate) fn new(
        account: Option<Account>,
        data_dir: PathBuf,
        lifetime: Lifetime,
        temporary: Option<TempDir>,
    ) -> Self {
        let run = Mutex::new(Run { port: 0, pid: None, watchdog: None });
        Self { account, data_dir, lifetime, run, temporary }
    }

    pub(crate) fn port(&self) -> u16 {
        self.run().port
    }

    pub(crate) fn pid(&self) -> Option<u32> {
        self.run().pid
    }

    pub(crate) fn data_dir(&self) -> &Path {
        &self.data_dir
    }

    /// Makes the data folder.
    pub(crate) fn create(&self, binaries: &Binaries) -> Result<()> {
        cluster::create(binaries, self.account.as_ref(), &self.data_dir)
    }

    /// Makes the server end with this process.
    pub(crate) fn watch(&self, binaries: &Binaries) -> Result<()> {
        let remove = self.temporary.as_ref().map(TempDir::path);
        let watchdog = Watchdog::start(binaries, self.account.as_ref(), &self.data_dir, remove)?;
        self.run().watchdog = Some(watchdog);
        Ok(())
    }

    fn run(&self) -> MutexGuard<'_, Run> {
        self.run.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes over the server that runs on the folder, once it is ready; `false` when none runs.
    pub(crate) fn take_over(&self, binaries: &Binaries) -> Result<bool> {
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
    pub(crate) fn wait_for_predecessor(&self) -> Result<()> {
        let begun = Instant::now();
        while let Some(found) = Postmaster::running(&self.data_dir) {
            if begun.elapsed() >= STOP_LIMIT {
                return Err(LaunchError::AlreadyRunning { data_dir: self.data_dir.clone(), pid: found.pid });
            }
            thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }

    pub(crate) fn launch(&self, binaries: &Binaries, start: Start<'_>) -> Result<()> {
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

    pub(crate) fn stop(&self, how: Signal) -> Result<()> {
        let Some(pid) = self.run().pid else { return Ok(()) };
        postmaster::signal(pid, how);
        if self.wait_for_end(&[pid]).is_err() {
            postmaster::signal(pid, Signal::QUIT);
            self.wait_for_end(&[pid])?;
        }
        self.run().pid = None;
        Ok(())
    }

    pub(crate) fn kill(&self) -> Result<()> {
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
pub(crate) enum Start<'a> {
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
