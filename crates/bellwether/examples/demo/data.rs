//! Where the store lives: a folder of the user's, a temporary one, or a database by its address.

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};

use bellwether::prelude::*;
use bellwether_launch::{Lifetime, Options, Postgres};

use crate::Failure;
use crate::args::{Args, StoreKind};

/// Database of the private server.
const DATABASE: &str = "demo";

/// The opened store, and what must outlive it.
pub(crate) struct Place {
    pub(crate) store: Store,
    server: Option<PrivateServer>,
    /// Removed when dropped.
    _temporary: Option<tempfile::TempDir>,
}

/// A PostgreSQL server under the data folder, shared by every demo on that folder.
struct PrivateServer {
    server: Postgres,
    users: Option<File>,
}

impl Place {
    /// Opens the store; blocking while a private server starts.
    pub(crate) async fn open(args: &Args) -> Result<Self, Failure> {
        let temporary = match args.data {
            None if args.store != StoreKind::Memory && args.url.is_none() => Some(temporary_folder()?),
            _ => None,
        };
        let folder = args.data.as_deref().or(temporary.as_ref().map(tempfile::TempDir::path));
        if let Some(folder) = folder {
            std::fs::create_dir_all(folder)
                .map_err(|error| Failure::Refused(format!("cannot create {}: {error}", folder.display())))?;
        }
        let mut server = None;
        let address = match (args.store, &args.url, folder) {
            (StoreKind::Postgres, Some(url), _) => url.clone(),
            (StoreKind::Postgres, None, Some(folder)) => {
                let private = PrivateServer::open(folder, args.data.is_some(), args.check)?;
                let address = private.server.url(DATABASE);
                server = Some(private);
                address
            }
            (StoreKind::Sqlite, _, Some(folder)) => {
                let file = folder.join("demo.sqlite");
                if args.check && !file.is_file() {
                    return Err(Failure::Refused(format!(
                        "there is no store to check in {}",
                        folder.display()
                    )));
                }
                format!("sqlite:{}", file.display())
            }
            (StoreKind::Memory, _, _) | (_, _, None) => "memory:".to_owned(),
        };
        let opened = bellwether::open(&address).await;
        let store = match opened {
            Ok(store) => store,
            Err(error) => {
                if let Some(server) = server {
                    server.close();
                }
                return Err(error.into());
            }
        };
        Ok(Self { store, server, _temporary: temporary })
    }

    /// Closes the store, and stops the private server if nobody else uses it.
    pub(crate) async fn close(self) {
        self.store.close().await;
        if let Some(server) = self.server {
            server.close();
        }
    }
}

fn temporary_folder() -> Result<tempfile::TempDir, Failure> {
    tempfile::Builder::new().prefix("bellwether-demo-").tempdir().map_err(|error| {
        Failure::Refused(format!("cannot create a temporary folder: {error}; name one with --data"))
    })
}

impl PrivateServer {
    /// Starts the server, or adopts the one that an earlier demo left or another one uses.
    fn open(folder: &Path, keep: bool, must_exist: bool) -> Result<Self, Failure> {
        let data_dir = absolute(folder)?.join("postgres");
        if must_exist && !data_dir.is_dir() {
            return Err(Failure::Refused(format!("there is no store to check in {}", folder.display())));
        }
        if !keep {
            let options = Options { data_dir: Some(data_dir), fsync: true, ..Options::default() };
            let server = Postgres::start(options)?;
            server.create_database(DATABASE)?;
            return Ok(Self { server, users: None });
        }
        let users = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(folder.join("postgres.users"))
            .map_err(|error| Failure::Refused(format!("cannot write to {}: {error}", folder.display())))?;
        // One at a time starts it; then all of them share it.
        users
            .lock()
            .map_err(|error| Failure::Refused(format!("cannot lock {}: {error}", folder.display())))?;
        let server = if data_dir.join("PG_VERSION").is_file() {
            Postgres::adopt(&data_dir)?
        } else {
            Postgres::start(Options {
                data_dir: Some(data_dir),
                lifetime: Lifetime::Detached,
                fsync: true,
                ..Options::default()
            })?
        };
        let known = server.sql("postgres", "SELECT datname FROM pg_database")?;
        if !known.lines().any(|name| name == DATABASE) {
            server.create_database(DATABASE)?;
        }
        users
            .unlock()
            .and_then(|()| users.lock_shared())
            .map_err(|error| Failure::Refused(format!("cannot share {}: {error}", folder.display())))?;
        Ok(Self { server, users: Some(users) })
    }

    fn close(self) {
        if let Some(users) = &self.users {
            let alone = users.unlock().is_ok() && users.try_lock().is_ok();
            if !alone {
                return;
            }
        }
        if let Err(error) = self.server.stop() {
            eprintln!("the private server did not stop: {error}");
        }
    }
}

fn absolute(folder: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(folder).map_err(|error| Failure::Refused(format!("{}: {error}", folder.display())))
}
