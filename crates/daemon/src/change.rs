//! What applying an event did to a document.

use std::fmt::Display;

/// What became of a document when an event was applied to it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Change {
    /// The document changed: store it.
    Save,
    /// The document is gone: delete it. A later event starts from `Default` again.
    Delete,
    /// Nothing changed: write nothing. The code must not have touched `self`.
    Keep,
    /// This event can never be applied, and this is why: it becomes a dead letter of the member, the document stays as it was
    /// before the event, and the projection goes on. A panic in the user's code counts as this.
    Refuse(String),
}

/// The fallible form: `Err` refuses the event with the error as the reason.
///
/// ```
/// use bellwether_daemon::Change;
///
/// fn apply(cents: &str) -> Change {
///     cents.parse::<i64>().map(|_| Change::Save).into()
/// }
/// assert_eq!(apply("12"), Change::Save);
/// assert!(matches!(apply("twelve"), Change::Refuse(reason) if reason.contains("invalid digit")));
/// ```
impl<E: Display> From<Result<Change, E>> for Change {
    fn from(result: Result<Change, E>) -> Self {
        result.unwrap_or_else(|error| Change::Refuse(error.to_string()))
    }
}
