//! Projections of several members in stages, which share pages, decoding and transactions.

use std::sync::Arc;

use crate::member::{Follower, Member, Multi, Single};
use crate::{MultiView, StageView, View};

/// One projection made of several views: members of the first stage work on events, members of later stages on the changes of
/// earlier members' documents. All of a page commits in one transaction, under one progress.
///
/// ```
/// # use bellwether_daemon::{Change, Changed, Composite, Keys, StageView, View};
/// # use bellwether_events::{CodecError, Event, Recorded};
/// # use bellwether_storage::Encoding;
/// # use serde::{Deserialize, Serialize};
/// # struct Deposited { cents: i64 }
/// # impl Event for Deposited {
/// #     const TYPES: &'static [&'static str] = &["Deposited"];
/// #     fn type_name(&self) -> &'static str { "Deposited" }
/// #     fn encode(&self, _: Encoding) -> Result<Vec<u8>, CodecError> { Ok(self.cents.to_string().into_bytes()) }
/// #     fn decode(_: &str, encoding: Encoding, body: &[u8]) -> Result<Self, CodecError> {
/// #         Ok(Self { cents: bellwether_events::decode("Deposited", encoding, body)? })
/// #     }
/// # }
/// #[derive(Default, Serialize, Deserialize)]
/// struct Balance { cents: i64 }
///
/// impl View for Balance {
///     const NAME: &'static str = "balance";
///     type Event = Deposited;
///     fn apply(&mut self, event: &Recorded<Deposited>) -> Change {
///         self.cents += event.event.cents;
///         Change::Save
///     }
/// }
///
/// #[derive(Default, Serialize, Deserialize)]
/// struct Total { accounts: i64, cents: i64 }
///
/// impl StageView for Total {
///     const NAME: &'static str = "total";
///     type Source = Balance;
///     type Input = i64;
///     fn input(balance: &Balance) -> i64 { balance.cents }
///     fn keys(_: &Changed<i64>, keys: &mut Keys) { keys.push("all") }
///     fn apply(&mut self, _: &str, change: &Changed<i64>) -> Change {
///         self.accounts += i64::from(change.before.is_none());
///         self.cents += change.after.unwrap_or(0) - change.before.unwrap_or(0);
///         Change::Save
///     }
/// }
///
/// let bank = Composite::new("bank", 1).stage(|s| s.view::<Balance>()).stage(|s| s.stage_view::<Total>());
/// # let _ = bank;
/// ```
#[must_use]
pub struct Composite {
    pub(crate) name: String,
    pub(crate) version: u32,
    pub(crate) stages: Vec<Stage>,
}

impl Composite {
    /// An empty composite. Raise the version whenever a member's version rises or a member comes or goes: the composite then
    /// starts from the first event.
    pub fn new(name: impl Into<String>, version: u32) -> Self {
        Self { name: name.into(), version, stages: Vec::new() }
    }

    /// Adds a stage; its members may take from documents of all earlier stages, not of their own.
    pub fn stage(mut self, build: impl FnOnce(Stage) -> Stage) -> Self {
        self.stages.push(build(Stage { members: Vec::new() }));
        self
    }
}

/// Members that work side by side.
#[must_use]
pub struct Stage {
    pub(crate) members: Vec<Arc<dyn Member>>,
}

impl Stage {
    /// Adds a view of events; only in the first stage.
    pub fn view<V: View>(mut self) -> Self {
        self.members.push(Arc::new(Single::<V>::new()));
        self
    }

    /// Adds a multi-stream view of events; only in the first stage.
    pub fn multi_view<M: MultiView>(mut self) -> Self {
        self.members.push(Arc::new(Multi::<M>::new()));
        self
    }

    /// Adds a view of the changes of an earlier stage's documents; not in the first stage.
    pub fn stage_view<S: StageView>(mut self) -> Self {
        self.members.push(Arc::new(Follower::<S>::new()));
        self
    }
}
