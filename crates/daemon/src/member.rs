//! The private twins of the user's traits: members and event sets without their types.
//!
//! The traits users implement carry types, constants and no boxes; the page engine holds many of them side by side. Each is
//! erased once, when it is registered; a page then costs one allocation per member, none per event.

mod documents;
mod event_set;
mod kind;
mod tap;

use std::any::{Any, TypeId};
use std::marker::PhantomData;

use bellwether_storage::{DocumentKey, DocumentWrite, Sequence, TenantId, Timestamp};

use crate::Keys;

use self::documents::Documents;
pub(crate) use self::documents::panic_text;
pub(crate) use self::event_set::{Decoded, DecodedEvents, EventSet, Slot};
use self::kind::{FollowerKind, Kind, MultiKind, SingleKind};
pub(crate) use self::tap::Tap;

/// What a member works on.
#[derive(Clone, Copy)]
pub(crate) enum Source {
    /// Events, decoded as this set.
    Events(EventSet),
    /// Changes of the documents of this type, as the tap takes them.
    Changes { of: TypeId, of_name: &'static str, tap: Tap },
}

/// A view without its type: makes working states for pages.
pub(crate) trait Member: Send + Sync {
    fn name(&self) -> &'static str;
    fn version(&self) -> u32;
    /// The type of its documents, which later stages name as their source.
    fn document(&self) -> TypeId;
    fn source(&self) -> Source;
    /// An empty working state; `taps` take what later members need of each change.
    fn open(&self, taps: Vec<(usize, Tap)>) -> Box<dyn Working>;
}

/// The event behind an application.
pub(crate) struct Cause<'a> {
    pub(crate) tenant: &'a TenantId,
    pub(crate) sequence: Sequence,
    pub(crate) at: Timestamp,
}

/// A change for a later member: a `Changed<Input>` of its own input.
pub(crate) struct Emitted {
    pub(crate) to: usize,
    pub(crate) change: Box<dyn Any + Send + Sync>,
}

/// The user's code cannot work on this event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) class: &'static str,
    pub(crate) reason: String,
}

/// The documents of one member that a page is working on.
pub(crate) trait Working: Send {
    /// Keys of the documents this input goes to.
    fn route(&self, input: &dyn Any, keys: &mut Keys) -> Result<(), Refused>;
    /// Whether the document is here, stored or known to be absent.
    fn holds(&self, key: &DocumentKey) -> bool;
    /// Takes in a stored document, or that there is none.
    ///
    /// The error says why the stored bytes are not a document of this type.
    fn insert(&mut self, key: DocumentKey, body: Option<&[u8]>) -> Result<(), String>;
    /// Applies the input to a document that is here. After an error the whole state is worthless: work the page anew.
    fn apply(
        &mut self,
        key: &DocumentKey,
        input: &dyn Any,
        cause: &Cause<'_>,
        emitted: &mut Vec<Emitted>,
    ) -> Result<(), Refused>;
    /// Bytes of the documents here, by their encoded size.
    fn bytes(&self) -> u64;
    /// How many documents are here.
    fn count(&self) -> usize;
    /// Takes out changed documents, encoded, in key order: at most this many and, unless the first is larger, this many bytes.
    /// Unchanged ones met on the way are dropped. Empty when there is nothing left.
    fn drain(&mut self, count_max: usize, bytes_max: u64) -> Result<Vec<DocumentWrite>, String>;
}

/// A member of this kind.
pub(crate) struct Of<K>(PhantomData<fn() -> K>);

/// A [`View`](crate::View) as a member.
pub(crate) type Single<V> = Of<SingleKind<V>>;
/// A [`MultiView`](crate::MultiView) as a member.
pub(crate) type Multi<M> = Of<MultiKind<M>>;
/// A [`StageView`](crate::StageView) as a member.
pub(crate) type Follower<S> = Of<FollowerKind<S>>;

impl<K> Of<K> {
    pub(crate) fn new() -> Self {
        Self(PhantomData)
    }
}

impl<K: Kind> Member for Of<K> {
    fn name(&self) -> &'static str {
        K::NAME
    }

    fn version(&self) -> u32 {
        K::VERSION
    }

    fn document(&self) -> TypeId {
        TypeId::of::<K::Document>()
    }

    fn source(&self) -> Source {
        K::source()
    }

    fn open(&self, taps: Vec<(usize, Tap)>) -> Box<dyn Working> {
        Box::new(Documents::<K>::new(taps))
    }
}
