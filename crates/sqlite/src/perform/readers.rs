//! The connections that read.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bellwether_storage::{Error, Result};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::file::{File, Use};
use super::gate::closed;
use super::link::Link;

/// A bounded number of connections that read; opened when first needed.
pub(crate) struct Readers {
    file: Arc<File>,
    permits: Arc<Semaphore>,
    idle: Mutex<Vec<Link>>,
}

impl Readers {
    pub(crate) fn new(file: Arc<File>) -> Arc<Self> {
        let permits = Arc::new(Semaphore::new(file.config().readers_max as usize));
        Arc::new(Self { file, permits, idle: Mutex::default() })
    }

    /// A connection to read with.
    ///
    /// # Errors
    ///
    /// `Unavailable` when none became free in time, or the store is closed.
    pub(crate) async fn get(self: &Arc<Self>) -> Result<Reader> {
        let wait = self.file.config().busy_timeout;
        let permit = match tokio::time::timeout(wait, Arc::clone(&self.permits).acquire_owned()).await {
            Ok(Ok(permit)) => permit,
            Ok(Err(_)) => return Err(closed()),
            Err(_) => {
                return Err(Error::unavailable(format!("no reader became free in {} ms", wait.as_millis()))
                    .fix("try again, or raise readers_max"));
            }
        };
        let idle = self.idle().pop();
        let link = match idle {
            Some(link) => link,
            None => self.file.connect(Use::Read).await?,
        };
        Ok(Reader { link, readers: Arc::clone(self), _permit: permit })
    }

    /// Lets nobody read any more and closes what is idle; what is in use closes when its reading ends.
    pub(crate) async fn close(&self) {
        self.permits.close();
        let idle = std::mem::take(&mut *self.idle());
        for link in idle {
            link.close().await;
        }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Link>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection taken out of the readers. Dropping it without [`done`](Reader::done) closes it: a reading that was given up
/// midway never delays the next one.
pub(crate) struct Reader {
    pub(crate) link: Link,
    readers: Arc<Readers>,
    _permit: OwnedSemaphorePermit,
}

impl Reader {
    /// Gives the connection back.
    pub(crate) fn done(self) {
        let Self { link, readers, .. } = self;
        if !readers.permits.is_closed() {
            readers.idle().push(link);
        }
    }
}
