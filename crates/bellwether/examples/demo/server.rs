//! A private PostgreSQL server under a data folder, shared by every demo that runs on that folder.

use std::fs::{File, OpenOptions, Permissions};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use bellwether_launch::{LaunchError, Lifetime, Options, Postgres};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::Failure;

/// Database of the private server.
const DATABASE: &str = "demo";
/// How often somebody looks whether the server still answers.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// How long a look waits for an answer of the own machine.
const LOOK_WAITS: Duration = Duration::from_secs(5);

/// A running server, and the lock that says that this process uses it.
pub(crate) struct PrivateServer {
    server: Postgres,
    kept: Option<Kept>,
}

/// What belongs to a server that outlives a crash of the demo.
struct Kept {
    folder: PathBuf,
    /// Locked in common by all who use the server; whoever can lock it alone is the last.
    users: File,
    keeper: JoinHandle<()>,
    /// Dropped, it ends the keeper.
    keeping: oneshot::Sender<()>,
}

impl PrivateServer {
    /// Starts a server that goes away with this process and leaves nothing behind.
    pub(crate) fn temporary() -> Result<Self, Failure> {
        let server = Postgres::start(Options { fsync: true, ..Options::default() })?;
        server.create_database(DATABASE)?;
        Ok(Self { server, kept: None })
    }

    /// Starts the server of a folder, or adopts the one that a crash left or another demo uses. Should the server die while the
    /// demo runs, it is started again at its port.
    pub(crate) fn kept(folder: &Path, must_exist: bool) -> Result<Self, Failure> {
        if must_exist && !folder.join("postgres").is_dir() {
            return Err(Failure::Refused(format!("there is no store to check in {}", folder.display())));
        }
        // One at a time starts or stops it.
        let starting = lock_file(folder, "postgres.starting")?;
        starting.lock().map_err(unlockable(folder))?;
        let server = start(folder)?;
        let known = server.sql("postgres", "SELECT datname FROM pg_database")?;
        if !known.lines().any(|name| name == DATABASE) {
            server.create_database(DATABASE)?;
        }
        let users = lock_file(folder, "postgres.users")?;
        users.lock_shared().map_err(unlockable(folder))?;
        let (keeping, ended) = oneshot::channel();
        let keeper = tokio::spawn(keep(server.port(), server.data_dir().map(Path::to_owned), ended));
        Ok(Self { server, kept: Some(Kept { folder: folder.to_owned(), users, keeper, keeping }) })
    }

    /// Address of the demo's database.
    pub(crate) fn url(&self) -> String {
        self.server.url(DATABASE)
    }

    /// Stops the server, unless another demo uses it.
    pub(crate) async fn close(self) -> Result<(), Failure> {
        let Some(kept) = self.kept else { return Ok(self.server.stop()?) };
        drop(kept.keeping);
        kept.keeper.await.map_err(|error| Failure::Failed(error.to_string()))?;
        let starting = lock_file(&kept.folder, "postgres.starting")?;
        starting.lock().map_err(unlockable(&kept.folder))?;
        kept.users.unlock().map_err(unlockable(&kept.folder))?;
        if kept.users.try_lock().is_ok() {
            // By its folder, since it may have been started again meanwhile.
            start(&kept.folder)?.stop()?;
        }
        Ok(())
    }
}

fn lock_file(folder: &Path, name: &str) -> Result<File, Failure> {
    let opened = OpenOptions::new().create(true).truncate(false).write(true).open(folder.join(name));
    opened.map_err(|error| Failure::Refused(format!("cannot write to {}: {error}", folder.display())))
}

fn unlockable(folder: &Path) -> impl Fn(std::io::Error) -> Failure {
    move |error| Failure::Refused(format!("cannot lock a file in {}: {error}", folder.display()))
}

/// The server of a folder, started if it does not run.
///
/// Who may do everything runs the server as somebody who may not: where that one cannot enter the folder, the server's files go
/// into a folder of the system's for temporary files, and a link says where.
fn start(folder: &Path) -> Result<Postgres, Failure> {
    let broken =
        |error: std::io::Error| Failure::Refused(format!("cannot use {}: {error}", folder.display()));
    let inside = std::path::absolute(folder).map_err(broken)?.join("postgres");
    let data_dir =
        if inside.is_symlink() { std::fs::read_link(&inside).map_err(broken)? } else { inside.clone() };
    match start_at(data_dir) {
        Err(LaunchError::Unreachable { .. }) if !inside.exists() => {
            let elsewhere =
                tempfile::Builder::new().prefix("bellwether-demo-").tempdir().map_err(broken)?.keep();
            std::fs::set_permissions(&elsewhere, Permissions::from_mode(0o711)).map_err(broken)?;
            let data_dir = elsewhere.join("postgres");
            eprintln!(
                "the server's user may not enter {}: its files are in {}",
                folder.display(),
                data_dir.display()
            );
            let server = start_at(data_dir.clone())?;
            symlink(&data_dir, &inside).map_err(broken)?;
            Ok(server)
        }
        started => Ok(started?),
    }
}

fn start_at(data_dir: PathBuf) -> Result<Postgres, LaunchError> {
    let data_dir = Some(data_dir);
    Postgres::start(Options { data_dir, lifetime: Lifetime::Detached, fsync: true, ..Options::default() })
}

/// Starts the server again whenever it no longer answers, until `ended`.
async fn keep(port: Option<u16>, data_dir: Option<PathBuf>, mut ended: oneshot::Receiver<()>) {
    let (Some(port), Some(data_dir)) = (port, data_dir) else { return };
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    while tokio::time::timeout(LOOK_EVERY, &mut ended).await.is_err() {
        let data_dir = data_dir.clone();
        let looked = tokio::task::spawn_blocking(move || {
            if TcpStream::connect_timeout(&address, LOOK_WAITS).is_ok() {
                return;
            }
            eprintln!("the private server does not answer; starting it again");
            if let Err(error) = Postgres::adopt(&data_dir) {
                eprintln!("it does not start: {error}");
            }
        });
        // A start that panicked has said so; the next look tries again.
        let _looked = looked.await;
    }
}
