//! Why an append or a command did not go in.

use bellwether_storage::{Error, ErrorKind, StreamId, Version};

use crate::{CodecError, Expected};

/// An append did not go in.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AppendError {
    /// The stream is not where the caller expected it: somebody else was first. Nothing happened. Read again, decide again.
    #[error(
        "conflict in stream {stream}: expected {expected}, found version {actual}; read it again and decide again"
    )]
    Conflict {
        /// The stream.
        stream: StreamId,
        /// What was expected.
        expected: Expected,
        /// Its version when the append was decided.
        actual: Version,
    },
    /// The store refused or failed; [`Error::kind`] says what to do.
    #[error(transparent)]
    Store(#[from] Error),
}

impl AppendError {
    /// What the caller should do next.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Conflict { .. } => ErrorKind::Conflict,
            Self::Store(error) => error.kind(),
        }
    }
}

impl From<AppendError> for Error {
    fn from(error: AppendError) -> Self {
        match error {
            AppendError::Conflict { .. } => Error::conflict(error.to_string()),
            AppendError::Store(error) => error,
        }
    }
}

/// A command was not carried out.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExecuteError<E: std::error::Error + 'static> {
    /// The aggregate refused the command, on the newest state. Nothing happened.
    #[error(transparent)]
    Rejected(E),
    /// Others were first again and again. Nothing happened; try again later.
    #[error(
        "conflict in stream {stream} after {tries} tries: decided on {expected}, found version {actual}; try again later"
    )]
    Conflict {
        /// The stream.
        stream: StreamId,
        /// What the last decision was made on.
        expected: Expected,
        /// Its version then.
        actual: Version,
        /// Decisions made.
        tries: u32,
    },
    /// The store refused or failed; [`Error::kind`] says what to do.
    #[error(transparent)]
    Store(Error),
}

impl<E: std::error::Error> ExecuteError<E> {
    /// What the caller should do next.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Rejected(_) => ErrorKind::Rejected,
            Self::Conflict { .. } => ErrorKind::Conflict,
            Self::Store(error) => error.kind(),
        }
    }
}

impl<E: std::error::Error> From<Error> for ExecuteError<E> {
    fn from(error: Error) -> Self {
        Self::Store(error)
    }
}

/// A codec's error as one of the store's.
pub(crate) fn from_codec(error: CodecError) -> Error {
    let message = error.to_string();
    match error {
        CodecError::Decode { source, .. } => Error::corrupt(message)
            .fix("give new fields a default, keep the names of old ones, or repair the event")
            .source(source),
        CodecError::UnknownType { .. } => Error::new(ErrorKind::Unsupported, message).fix(
            "read it with an event type that knows the name, or add a variant with `#[event(name = \"…\")]`",
        ),
        CodecError::Encode { source, .. } => {
            Error::rejected(message).fix("change the event's fields").source(source)
        }
        CodecError::TooLarge { .. } => Error::rejected(message),
    }
}
