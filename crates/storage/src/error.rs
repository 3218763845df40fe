//! One error type for all ports, with the kind a caller branches on.

use std::fmt;

/// Any error of the user's own code.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Result of every port.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What happened, in terms of what the caller should do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The input is not acceptable and never will be. Nothing happened. Fix the input.
    Rejected,
    /// Somebody else was first. Nothing happened. Read again, decide again, retry.
    Conflict,
    /// The caller is no longer the owner. Nothing happened. Stop, and position yourself anew through the fence.
    Fenced,
    /// The database could not be reached or gave up waiting. Nothing happened. Retry with back-off.
    Unavailable,
    /// The outcome is not known: it may have happened. Resolve it; never retry blindly.
    Unknown,
    /// Stored data contradicts an invariant. Stop and call an operator; never skip.
    Corrupt,
    /// This adapter cannot do this. Use another adapter or another way.
    Unsupported,
}

/// An error of a port: what kind, what happened, and how to fix it.
pub struct Error {
    kind: ErrorKind,
    message: String,
    fix: Option<String>,
    source: Option<BoxError>,
}

impl Error {
    /// An error of this kind; `message` is lower case, without a full stop, and carries the figures.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), fix: None, source: None }
    }

    /// [`ErrorKind::Rejected`] with a message.
    pub fn rejected(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Rejected, message)
    }

    /// [`ErrorKind::Conflict`] with a message.
    pub fn conflict(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Conflict, message)
    }

    /// [`ErrorKind::Fenced`] with a message.
    pub fn fenced(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Fenced, message)
    }

    /// [`ErrorKind::Unavailable`] with a message.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unavailable, message)
    }

    /// [`ErrorKind::Unknown`] with a message.
    pub fn unknown(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unknown, message)
    }

    /// [`ErrorKind::Corrupt`] with a message.
    pub fn corrupt(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Corrupt, message)
    }

    /// [`ErrorKind::Unsupported`] with a message.
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unsupported, message)
    }

    /// Adds what the reader of the message can do about it.
    #[must_use]
    pub fn fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }

    /// Keeps the error this one was made from.
    #[must_use]
    pub fn source(mut self, source: impl Into<BoxError>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// What the caller should do next.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// What happened, without the fix.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {self}", self.kind)?;
        if let Some(source) = &self.source {
            write!(f, " (caused by: {source:?})")?;
        }
        Ok(())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.fix {
            Some(fix) => write!(f, "; {fix}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn display_joins_message_and_fix_and_keeps_the_source() {
        let error = Error::rejected("1,001 events in one append, at most 1,000")
            .fix("split the append")
            .source("driver says no");
        assert_eq!(error.to_string(), "1,001 events in one append, at most 1,000; split the append");
        assert_eq!(
            std::error::Error::source(&error).map(ToString::to_string).as_deref(),
            Some("driver says no")
        );
        assert_eq!(error.kind(), ErrorKind::Rejected);
    }
}
