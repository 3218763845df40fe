//! Multi-stream views: one event may go to many documents.

use bellwether_events::{Event, Recorded};
use bellwether_storage::Encoding;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{Change, Keys};

/// Documents under keys of your choice: one event may change none, one or thousands of them.
///
/// What an event fans out to counts against the byte budget and is written in chunks inside the page's transaction. Routing
/// and applying must be deterministic and free of side effects: a page may be worked on more than once before it commits.
pub trait MultiView: Default + Serialize + DeserializeOwned + Send + Sync + 'static {
    /// Name of the projection and of its documents; stable, unique in a daemon.
    const NAME: &'static str;
    /// Raise it when the code changes what the documents hold: the new version starts from the first event, with documents
    /// and progress of its own.
    const VERSION: u32 = 1;
    /// How documents are stored.
    const ENCODING: Encoding = Encoding::MessagePack;
    /// The events it works on; only their types are loaded.
    type Event: Event;

    /// Pushes the key of each document that this event changes.
    fn keys(event: &Recorded<Self::Event>, keys: &mut Keys);

    /// Applies one event to the document under `key`, which is `Default` when there is none.
    fn apply(&mut self, key: &str, event: &Recorded<Self::Event>) -> Change;
}
