//! Given, then: tests of views, without a store and without a runtime.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::marker::PhantomData;

use bellwether_events::{Headers, Recorded};
use bellwether_storage::{Sequence, StreamId, TenantId, Timestamp, Version};
use uuid::Uuid;

use crate::{AsMultiView, AsStageView, AsView, Change, Changed, Keys, MultiView, Readable, StageView, View};

/// Begins a test of a view.
///
/// ```
/// use bellwether_daemon::{Change, Keys, MultiView, project};
/// use bellwether_events::{Event, Recorded};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Debug, Clone, PartialEq, Event)]
/// enum Money { Deposited { cents: i64 } }
///
/// #[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
/// struct Totals { cents: i64 }
///
/// impl MultiView for Totals {
///     const NAME: &'static str = "totals";
///     type Event = Money;
///     fn keys(_: &Recorded<Money>, keys: &mut Keys) { keys.push("all") }
///     fn apply(&mut self, _: &str, event: &Recorded<Money>) -> Change {
///         let Money::Deposited { cents } = event.event;
///         self.cents += cents;
///         Change::Save
///     }
/// }
///
/// project::<Totals>()
///     .given("acme", [Money::Deposited { cents: 5 }, Money::Deposited { cents: 2 }])
///     .then("all", Totals { cents: 7 })
///     .then_none("nothing");
/// ```
#[must_use = "say `.given(tenant, events)`"]
pub fn project<V>() -> Project<V> {
    Project(PhantomData)
}

/// A view without events.
#[derive(Debug)]
pub struct Project<V>(PhantomData<fn() -> V>);

impl<V> Project<V> {
    /// Applies events of one tenant, all in a stream named `stream`; for a [`StageView`], changes as `(key, before, after)`.
    ///
    /// # Panics
    ///
    /// When the tenant's or a document's name is not allowed, or a document does not survive being stored.
    #[track_caller]
    pub fn given<K>(self, tenant: &str, inputs: impl IntoIterator<Item = V::Given>) -> Projected<V>
    where
        V: Foldable<K>,
    {
        self.given_on(tenant, "stream", inputs)
    }

    /// The same in a stream of this name: the key of a [`View`].
    ///
    /// # Panics
    ///
    /// As [`given`](Project::given), and when the stream's name is not allowed.
    #[track_caller]
    pub fn given_on<K>(
        self,
        tenant: &str,
        stream: &str,
        inputs: impl IntoIterator<Item = V::Given>,
    ) -> Projected<V>
    where
        V: Foldable<K>,
    {
        let tenant = TenantId::new(tenant).expect("the tenant's name is allowed");
        let stream = StreamId::new(stream).expect("the stream's name is allowed");
        let mut documents: BTreeMap<String, V> = BTreeMap::new();
        let mut refused = Vec::new();
        for (number, given) in (1..).zip(inputs) {
            let input = V::input(&tenant, &stream, number, given);
            let mut keys = Keys::default();
            V::keys_of(&input, &mut keys);
            for key in keys.iter() {
                bellwether_storage::DocumentKey::new(key).expect("the document's key is allowed");
                let mut document = documents.get(key).map(stored).unwrap_or_default();
                match V::fold(&mut document, key, &input) {
                    Change::Save => _ = documents.insert(key.to_owned(), document),
                    Change::Delete => _ = documents.remove(key),
                    Change::Keep => {}
                    Change::Refuse(reason) => refused.push((number, reason)),
                }
            }
        }
        Projected { documents, refused }
    }
}

/// The document as it comes back from a database.
#[track_caller]
fn stored<V: Readable<K>, K>(document: &V) -> V {
    let body = bellwether_events::encode(V::NAME, V::ENCODING, document).expect("a document can be encoded");
    bellwether_events::decode(V::NAME, V::ENCODING, &body).expect("a document comes back as it was stored")
}

/// The documents after the events.
#[derive(Debug)]
pub struct Projected<V> {
    documents: BTreeMap<String, V>,
    refused: Vec<(u64, String)>,
}

impl<V: PartialEq + Debug> Projected<V> {
    /// Expects this document under the key.
    ///
    /// # Panics
    ///
    /// When there is another one, or none.
    #[track_caller]
    pub fn then(self, key: &str, expected: V) -> Self {
        let known: Vec<_> = self.documents.keys().collect();
        let found =
            self.documents.get(key).unwrap_or_else(|| panic!("no document {key:?}; there are {known:?}"));
        assert_eq!(found, &expected, "document {key:?}");
        self
    }

    /// Expects no document under the key.
    ///
    /// # Panics
    ///
    /// When there is one.
    #[track_caller]
    pub fn then_none(self, key: &str) -> Self {
        assert_eq!(self.documents.get(key), None, "document {key:?}");
        self
    }

    /// Expects that the event of this number, counted from 1, was refused with a reason that contains this.
    ///
    /// # Panics
    ///
    /// When it was applied, or refused with another reason.
    #[track_caller]
    pub fn then_refused(self, number: u64, reason: &str) -> Self {
        let found = self.refused.iter().any(|(refused, why)| *refused == number && why.contains(reason));
        assert!(found, "event {number} was not refused with {reason:?}; refused were {:?}", self.refused);
        self
    }
}

/// What [`project`] needs of a view; every kind of view has it.
pub trait Foldable<Kind>: Readable<Kind> {
    /// What a test gives: an event, or a change.
    type Given;
    /// What the view gets.
    #[doc(hidden)]
    type Input;
    #[doc(hidden)]
    fn input(tenant: &TenantId, stream: &StreamId, number: u64, given: Self::Given) -> Self::Input;
    #[doc(hidden)]
    fn keys_of(input: &Self::Input, keys: &mut Keys);
    #[doc(hidden)]
    fn fold(document: &mut Self, key: &str, input: &Self::Input) -> Change;
}

impl<V: View> Foldable<AsView> for V {
    type Given = V::Event;
    type Input = Recorded<V::Event>;

    fn input(tenant: &TenantId, stream: &StreamId, number: u64, event: V::Event) -> Self::Input {
        recorded(tenant, stream, number, event)
    }

    fn keys_of(input: &Self::Input, keys: &mut Keys) {
        keys.push(input.stream.as_str());
    }

    fn fold(document: &mut Self, _: &str, input: &Self::Input) -> Change {
        document.apply(input)
    }
}

impl<M: MultiView> Foldable<AsMultiView> for M {
    type Given = M::Event;
    type Input = Recorded<M::Event>;

    fn input(tenant: &TenantId, stream: &StreamId, number: u64, event: M::Event) -> Self::Input {
        recorded(tenant, stream, number, event)
    }

    fn keys_of(input: &Self::Input, keys: &mut Keys) {
        M::keys(input, keys);
    }

    fn fold(document: &mut Self, key: &str, input: &Self::Input) -> Change {
        document.apply(key, input)
    }
}

impl<S: StageView> Foldable<AsStageView> for S {
    type Given = (&'static str, Option<S::Input>, Option<S::Input>);
    type Input = Changed<S::Input>;

    fn input(tenant: &TenantId, _: &StreamId, number: u64, (key, before, after): Self::Given) -> Self::Input {
        let at = Timestamp::from_micros(number.cast_signed());
        Changed {
            tenant: tenant.clone(),
            key: key.to_owned(),
            sequence: Sequence::new(number),
            at,
            before,
            after,
        }
    }

    fn keys_of(input: &Self::Input, keys: &mut Keys) {
        S::keys(input, keys);
    }

    fn fold(document: &mut Self, key: &str, input: &Self::Input) -> Change {
        document.apply(key, input)
    }
}

/// An event as the n-th of its tenant and stream, a microsecond after the one before.
fn recorded<E>(tenant: &TenantId, stream: &StreamId, number: u64, event: E) -> Recorded<E> {
    Recorded {
        tenant: tenant.clone(),
        stream: stream.clone(),
        sequence: Sequence::new(number),
        version: Version::new(number),
        id: Uuid::from_u128(number.into()),
        at: Timestamp::from_micros(number.cast_signed()),
        headers: Headers::new(),
        event,
    }
}
