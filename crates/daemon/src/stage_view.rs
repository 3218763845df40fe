//! Views of a later stage: fed with the changes of an earlier stage's documents.

use std::fmt::Debug;

use bellwether_storage::{Encoding, Sequence, TenantId, Timestamp};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{Change, Keys};

/// Documents made from the *changes* of an earlier stage's documents, in the same page and transaction.
///
/// It declares the small [`Input`](StageView::Input) it takes from an earlier document. Whenever an event changes that input,
/// it gets the input before and after. So a total is kept by adding the difference, and no event is decoded or document
/// loaded twice. Changes arrive in the order of the events, one per event and document, wherever a page is cut.
pub trait StageView: Default + Serialize + DeserializeOwned + Send + Sync + 'static {
    /// Name of the member and of its documents; stable, unique in a daemon.
    const NAME: &'static str;
    /// Raise it, and the composite's, when the code changes what the documents hold.
    const VERSION: u32 = 1;
    /// How documents are stored.
    const ENCODING: Encoding = Encoding::MessagePack;
    /// The document of an earlier stage that it follows: the type of a [`View`](crate::View),
    /// [`MultiView`](crate::MultiView) or `StageView` there.
    type Source: Send + Sync + 'static;
    /// What it takes from such a document. Small: it is copied for every change.
    type Input: Clone + PartialEq + Debug + Send + Sync + 'static;

    /// Takes the input from a document.
    fn input(source: &Self::Source) -> Self::Input;

    /// Pushes the key of each document that this change goes to.
    fn keys(change: &Changed<Self::Input>, keys: &mut Keys);

    /// Applies one change to the document under `key`, which is `Default` when there is none.
    fn apply(&mut self, key: &str, change: &Changed<Self::Input>) -> Change;
}

/// A change of what a later stage takes from one document; `before` and `after` differ.
#[derive(Debug, Clone, PartialEq)]
pub struct Changed<I> {
    /// The tenant.
    pub tenant: TenantId,
    /// Key of the document that changed.
    pub key: String,
    /// The event that changed it.
    pub sequence: Sequence,
    /// When that event was recorded.
    pub at: Timestamp,
    /// The input before; `None` when the document did not exist.
    pub before: Option<I>,
    /// The input after; `None` when the document was deleted.
    pub after: Option<I>,
}
