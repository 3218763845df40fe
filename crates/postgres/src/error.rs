//! From the driver's errors to kinds a caller branches on.
//!
//! What an error means depends on what was sent: losing the connection during a read, or before COMMIT, means that nothing
//! happened; losing it during an append or a COMMIT means that nobody knows.

use bellwether_storage::{Error, ErrorKind};

use crate::decide::failure;

/// An error of a read, or of a statement whose transaction had not been told to commit: nothing happened.
pub(crate) fn nothing_happened(error: sqlx::Error) -> Error {
    let (kind, what, fix) = match &error {
        sqlx::Error::Database(answer) => {
            let (kind, fix) = failure::of_code(answer.code().as_deref().unwrap_or_default());
            // Without a COMMIT there is nothing to be in doubt about.
            let kind = if kind == ErrorKind::Unknown { ErrorKind::Unavailable } else { kind };
            (kind, "postgresql refused", fix)
        }
        sqlx::Error::Encode(_) => {
            (ErrorKind::Rejected, "a value does not fit its parameter", "use $1, $2 … and one value for each")
        }
        sqlx::Error::ColumnDecode { .. }
        | sqlx::Error::Decode(_)
        | sqlx::Error::ColumnIndexOutOfBounds { .. } => (
            ErrorKind::Corrupt,
            "a stored value has another type than expected",
            "check who else changes these tables",
        ),
        _ => (ErrorKind::Unavailable, "the connection to postgresql failed", "try again"),
    };
    Error::new(kind, format!("{what}: {error}")).fix(fix).source(error)
}

/// An error of a statement that commits by itself, or of COMMIT: unless the server said that it did not, nobody knows.
pub(crate) fn maybe_happened(error: sqlx::Error) -> Error {
    let told = match &error {
        sqlx::Error::Database(answer) => !failure::ends_session(answer.code().as_deref().unwrap_or_default()),
        sqlx::Error::Encode(_) => true,
        _ => false,
    };
    if told {
        if let sqlx::Error::Database(answer) = &error
            && failure::of_code(answer.code().as_deref().unwrap_or_default()).0 == ErrorKind::Unknown
        {
            return unknown(error);
        }
        return nothing_happened(error);
    }
    unknown(error)
}

fn unknown(error: sqlx::Error) -> Error {
    Error::unknown(format!("the answer to a commit was lost: {error}"))
        .fix("look whether it happened before you do it again")
        .source(error)
}

/// A stored value that no longer fits our types.
pub(crate) fn corrupt(what: &str, error: impl std::fmt::Display) -> Error {
    Error::corrupt(format!("stored {what} cannot be read: {error}"))
        .fix("check who else changes these tables")
}
