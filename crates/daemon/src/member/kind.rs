//! The three kinds of views, told apart by what they work on.

use std::any::{TypeId, type_name};
use std::marker::PhantomData;

use bellwether_events::Recorded;
use bellwether_storage::Encoding;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{Change, Changed, Keys, MultiView, StageView, View};

use super::{EventSet, Source, Tap};

/// A kind of view: how an input is routed and applied.
pub(crate) trait Kind: Send + Sync + 'static {
    const NAME: &'static str;
    const VERSION: u32;
    const ENCODING: Encoding;
    type Document: Default + Serialize + DeserializeOwned + Send + Sync + 'static;
    type Input: Send + Sync + 'static;

    fn source() -> Source;
    fn route(input: &Self::Input, keys: &mut Keys);
    fn apply(document: &mut Self::Document, key: &str, input: &Self::Input) -> Change;
}

/// A document per stream.
pub(crate) struct SingleKind<V>(PhantomData<fn() -> V>);

impl<V: View> Kind for SingleKind<V> {
    const NAME: &'static str = V::NAME;
    const VERSION: u32 = V::VERSION;
    const ENCODING: Encoding = V::ENCODING;
    type Document = V;
    type Input = Recorded<V::Event>;

    fn source() -> Source {
        Source::Events(EventSet::of::<V::Event>())
    }

    fn route(input: &Self::Input, keys: &mut Keys) {
        keys.push(input.stream.as_str());
    }

    fn apply(document: &mut V, _key: &str, input: &Self::Input) -> Change {
        document.apply(input)
    }
}

/// Documents under keys of the user's choice.
pub(crate) struct MultiKind<M>(PhantomData<fn() -> M>);

impl<M: MultiView> Kind for MultiKind<M> {
    const NAME: &'static str = M::NAME;
    const VERSION: u32 = M::VERSION;
    const ENCODING: Encoding = M::ENCODING;
    type Document = M;
    type Input = Recorded<M::Event>;

    fn source() -> Source {
        Source::Events(EventSet::of::<M::Event>())
    }

    fn route(input: &Self::Input, keys: &mut Keys) {
        M::keys(input, keys);
    }

    fn apply(document: &mut M, key: &str, input: &Self::Input) -> Change {
        document.apply(key, input)
    }
}

/// Documents made from changes of an earlier stage.
pub(crate) struct FollowerKind<S>(PhantomData<fn() -> S>);

impl<S: StageView> Kind for FollowerKind<S> {
    const NAME: &'static str = S::NAME;
    const VERSION: u32 = S::VERSION;
    const ENCODING: Encoding = S::ENCODING;
    type Document = S;
    type Input = Changed<S::Input>;

    fn source() -> Source {
        Source::Changes {
            of: TypeId::of::<S::Source>(),
            of_name: type_name::<S::Source>(),
            tap: Tap::of::<S>(),
        }
    }

    fn route(input: &Self::Input, keys: &mut Keys) {
        S::keys(input, keys);
    }

    fn apply(document: &mut S, key: &str, input: &Self::Input) -> Change {
        document.apply(key, input)
    }
}
