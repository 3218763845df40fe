//! Makes and configures a data folder.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use crate::{
    account::Account,
    binaries::Binaries,
    error::{LaunchError, Result},
    options::Options,
};

/// The file that `postgresql.conf` includes and every start writes anew.
const CONFIGURATION: &str = "bellwether.conf";
/// Where the server logs, inside its data folder.
const LOG: &str = "server.log";
/// How much of a log goes into an error.
const LOG_BYTES_MAX: u64 = 4_096;
/// How long one process waits for another that starts a server on the same folder.
const LOCK_LIMIT: Duration = Duration::from_secs(180);

/// Whether a folder holds PostgreSQL's data.
pub(crate) fn exists(data_dir: &Path) -> bool {
    data_dir.join("PG_VERSION").is_file()
}

/// The absolute form of a data folder; its parent is created, for the lock stands there.
pub(crate) fn prepare(data_dir: &Path) -> Result<PathBuf> {
    let describe = || format!("create {}", data_dir.display());
    let data_dir = std::path::absolute(data_dir).map_err(LaunchError::io(describe()))?;
    if let Some(parent) = data_dir.parent() {
        fs::create_dir_all(parent).map_err(LaunchError::io(describe()))?;
    }
    Ok(data_dir)
}

/// Takes the lock of a data folder, so that two processes never start servers on it at once. Freed on drop.
pub(crate) fn lock(data_dir: &Path) -> Result<File> {
    let mut name = data_dir.as_os_str().to_owned();
    name.push(".lock");
    let path = PathBuf::from(name);
    let describe = format!("lock {}", path.display());
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path)
        .map_err(LaunchError::io(describe.clone()))?;
    let begun = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) if begun.elapsed() < LOCK_LIMIT => {
                thread::sleep(Duration::from_millis(20));
            }
            Err(TryLockError::WouldBlock) => {
                let what = "waiting for another process that starts a server on the same folder";
                return Err(LaunchError::Timeout { what, limit: LOCK_LIMIT, log: log_tail(data_dir, 0) });
            }
            Err(TryLockError::Error(error)) => return Err(LaunchError::io(describe)(error)),
        }
    }
}

/// Makes a new data folder, under its lock. A crash on the way leaves nothing under its name.
pub(crate) fn create(binaries: &Binaries, account: Option<&Account>, data_dir: &Path) -> Result<()> {
    if fs::read_dir(data_dir).is_ok_and(|mut entries| entries.next().is_some()) {
        return Err(LaunchError::Occupied(data_dir.to_owned()));
    }
    let parent = data_dir.parent().unwrap_or(Path::new("/"));
    // Made beside its place and renamed, so that a half-made one is never taken for a whole one.
    let prefix = format!(".{}.initdb-", data_dir.file_name().unwrap_or_default().to_string_lossy());
    remove_half_made(parent, &prefix);
    let fresh = tempfile::Builder::new()
        .prefix(&prefix)
        .tempdir_in(parent)
        .map_err(LaunchError::io(format!("create a folder in {}", parent.display())))?;
    let mut command = binaries.command("initdb");
    command.args(["--no-sync", "-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C", "-D"]);
    command.arg(fresh.path());
    if let Some(account) = account {
        account.may_reach(data_dir)?;
        account.own(fresh.path())?;
        account.apply(&mut command);
    }
    let output = command.output().map_err(LaunchError::io("run initdb"))?;
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(LaunchError::Program { program: "initdb", message });
    }
    let include = format!("\ninclude_if_exists = '{CONFIGURATION}'\n");
    append(&fresh.path().join("postgresql.conf"), &include)?;
    fs::rename(fresh.path(), data_dir).map_err(LaunchError::io(format!("create {}", data_dir.display())))?;
    let _renamed = fresh.keep();
    Ok(())
}

/// Removes what crashes left; only the holder of the lock makes folders of this name. What cannot be removed may stay.
fn remove_half_made(parent: &Path, prefix: &str) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        if entry.file_name().to_str().is_some_and(|name| name.starts_with(prefix)) {
            let _stays = fs::remove_dir_all(entry.path());
        }
    }
}

/// Writes the settings of the next start.
pub(crate) fn configure(account: Option<&Account>, data_dir: &Path, options: &Options) -> Result<()> {
    let path = data_dir.join(CONFIGURATION);
    fs::write(&path, options.configuration())
        .map_err(LaunchError::io(format!("write {}", path.display())))?;
    account.map_or(Ok(()), |account| account.own(&path))
}

fn append(path: &Path, text: &str) -> Result<()> {
    OpenOptions::new()
        .append(true)
        .open(path)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(LaunchError::io(format!("write {}", path.display())))
}

/// Opens the server's log for appending; also tells where the next lines begin, in bytes.
pub(crate) fn open_log(account: Option<&Account>, data_dir: &Path) -> Result<(File, u64)> {
    let path = data_dir.join(LOG);
    let describe = format!("open {}", path.display());
    let file = OpenOptions::new()
        .create(true)
        .append(true)
        .open(&path)
        .map_err(LaunchError::io(describe.clone()))?;
    if let Some(account) = account {
        account.own(&path)?;
    }
    let begin = file.metadata().map_err(LaunchError::io(describe))?.len();
    Ok((file, begin))
}

/// The end of the server's log, from `begin` on at most.
pub(crate) fn log_tail(data_dir: &Path, begin: u64) -> String {
    let read = || -> std::io::Result<String> {
        let mut file = File::open(data_dir.join(LOG))?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(begin.max(length.saturating_sub(LOG_BYTES_MAX))))?;
        let mut bytes = Vec::new();
        file.take(LOG_BYTES_MAX).read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).trim().to_owned())
    };
    read().unwrap_or_else(|_| String::from("(no log)"))
}
