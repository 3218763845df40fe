//! Where the store lives: a folder of the user's, a temporary one, or a database by its address.

use bellwether::prelude::*;

use crate::Failure;
use crate::args::{Args, StoreKind};
use crate::server::PrivateServer;

/// The opened store, and what must outlive it.
pub(crate) struct Place {
    pub(crate) store: Store,
    server: Option<PrivateServer>,
    /// Removed when dropped.
    _temporary: Option<tempfile::TempDir>,
}

impl Place {
    /// Opens the store; blocking while a private server starts.
    pub(crate) async fn open(args: &Args) -> Result<Self, Failure> {
        let temporary = match (&args.data, args.store) {
            (None, StoreKind::Sqlite) => Some(temporary_folder()?),
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
            (StoreKind::Postgres, None, folder) => {
                let private = match folder {
                    Some(folder) => PrivateServer::kept(folder, args.check)?,
                    None => PrivateServer::temporary()?,
                };
                let address = private.url();
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
                    server.close().await?;
                }
                return Err(error.into());
            }
        };
        Ok(Self { store, server, _temporary: temporary })
    }

    /// Closes the store, and stops the private server if nobody else uses it.
    pub(crate) async fn close(self) -> Result<(), Failure> {
        self.store.close().await;
        match self.server {
            Some(server) => server.close().await,
            None => Ok(()),
        }
    }
}

fn temporary_folder() -> Result<tempfile::TempDir, Failure> {
    tempfile::Builder::new().prefix("bellwether-demo-").tempdir().map_err(|error| {
        Failure::Refused(format!("cannot create a temporary folder: {error}; name one with --data"))
    })
}
