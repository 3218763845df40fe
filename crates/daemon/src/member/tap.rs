//! What a later stage takes from a document, without its type.

use std::any::Any;

use crate::{Changed, StageView};

use super::Cause;

/// An input taken from a document.
pub(crate) type Taken = Box<dyn Any + Send + Sync>;

/// Takes a later member's input from a document, and makes a change of two of them.
#[derive(Clone, Copy)]
pub(crate) struct Tap {
    /// From `&Source` to its `Input`.
    pub(crate) take: fn(&dyn Any) -> Taken,
    /// A `Changed<Input>` of the inputs before and after; `None` when they are equal.
    pub(crate) change: fn(&Cause<'_>, &str, Option<Taken>, Option<Taken>) -> Option<Taken>,
}

impl Tap {
    pub(crate) fn of<S: StageView>() -> Self {
        Self { take: take::<S>, change: change::<S> }
    }
}

fn take<S: StageView>(document: &dyn Any) -> Taken {
    let source = document.downcast_ref::<S::Source>().expect("a tap is bound to members of its source type");
    Box::new(S::input(source))
}

fn change<S: StageView>(
    cause: &Cause<'_>,
    key: &str,
    before: Option<Taken>,
    after: Option<Taken>,
) -> Option<Taken> {
    let typed = |taken: Taken| *taken.downcast::<S::Input>().expect("a tap gets back what it took");
    let (before, after) = (before.map(typed), after.map(typed));
    (before != after).then(|| {
        Box::new(Changed {
            tenant: cause.tenant.clone(),
            key: key.to_owned(),
            sequence: cause.sequence,
            at: cause.at,
            before,
            after,
        }) as Taken
    })
}
