//! Single-stream views: the type is the document, its key is the stream.

use bellwether_events::{Event, Recorded};
use bellwether_storage::Encoding;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Change;

/// A document per stream: the type itself is the document, its key is the stream id.
///
/// Applying must be deterministic and free of side effects: a page may be worked on more than once before it commits.
pub trait View: Default + Serialize + DeserializeOwned + Send + Sync + 'static {
    /// Name of the projection and of its documents; stable, unique in a daemon.
    const NAME: &'static str;
    /// Raise it when the code changes what the documents hold: the new version starts from the first event, with documents
    /// and progress of its own.
    const VERSION: u32 = 1;
    /// How documents are stored.
    const ENCODING: Encoding = Encoding::MessagePack;
    /// The events it works on; only their types are loaded.
    type Event: Event;

    /// Applies one event to the document of its stream, which is `Default` for the first.
    fn apply(&mut self, event: &Recorded<Self::Event>) -> Change;
}
