//! Aggregates and decisions: plain, synchronous code over plain values.

use crate::Event;

/// What the events of one stream add up to; enough state to decide on commands, and no more.
///
/// Starts as `Default`; each event of the stream moves it on. It is rebuilt from events whenever it is loaded and never stored.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an aggregate",
    note = "implement `Aggregate` for it, or use `tenant.stream_of::<YourEvents>(id)` for a stream without one"
)]
pub trait Aggregate: Default + Send + Sync + 'static {
    /// Its name, for messages and spans. Not part of what is stored: a stream's id is exactly what the user gives.
    const NAME: &'static str;

    /// The events of its streams.
    type Event: Event;

    /// Moves on by one event. What has happened cannot be refused: this has no error.
    fn evolve(&mut self, event: &Self::Event);
}

/// Decides on a command: which events happen, or why not. Pure: no clock, no I/O; what it needs comes in the command.
///
/// One implementation per command keeps errors precise. A decision may be asked again on newer state when somebody else was
/// first.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not decide on `{C}`",
    note = "implement `Decide<{C}>` for it; the command's type picks the decision"
)]
pub trait Decide<C>: Aggregate {
    /// Why the command can be refused.
    type Error: std::error::Error + Send + Sync + 'static;

    /// Events that happen because of the command; none when there is nothing to do.
    ///
    /// # Errors
    ///
    /// The user's own reason why the command is refused on this state.
    fn decide(&self, command: C) -> Result<Vec<Self::Event>, Self::Error>;
}

/// An aggregate without state, for streams that only record.
#[derive(Debug)]
pub struct Plain<E>(std::marker::PhantomData<fn() -> E>);

impl<E> Default for Plain<E> {
    fn default() -> Self {
        Self(std::marker::PhantomData)
    }
}

impl<E: Event> Aggregate for Plain<E> {
    const NAME: &'static str = "plain";

    type Event = E;

    fn evolve(&mut self, _event: &E) {}
}
