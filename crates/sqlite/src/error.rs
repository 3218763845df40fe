//! From SQLite's errors to kinds a caller branches on.

use bellwether_storage::{Error, ErrorKind};

const ERROR: i32 = 1;
const BUSY: i32 = 5;
const LOCKED: i32 = 6;
const READONLY: i32 = 8;
const CORRUPT: i32 = 11;
const TOOBIG: i32 = 18;
const CONSTRAINT: i32 = 19;
const MISMATCH: i32 = 20;
const AUTH: i32 = 23;
const RANGE: i32 = 25;
const NOTADB: i32 = 26;

/// SQLite's primary result code, where the error is SQLite's.
fn code(error: &sqlx::Error) -> Option<i32> {
    let extended: i32 = error.as_database_error()?.code()?.parse().ok()?;
    Some(extended & 0xff)
}

/// Whether another connection holds the lock.
pub(crate) fn is_busy(error: &sqlx::Error) -> bool {
    matches!(code(error), Some(BUSY | LOCKED))
}

/// Whether the file is not SQLite's.
pub(crate) fn is_not_a_database(error: &sqlx::Error) -> bool {
    code(error) == Some(NOTADB)
}

/// An error of any statement but COMMIT: whatever it says, its transaction is rolled back, so nothing happened.
pub(crate) fn of(error: sqlx::Error) -> Error {
    let (kind, what, fix) = match (&error, code(&error)) {
        (_, Some(BUSY | LOCKED)) => {
            (ErrorKind::Unavailable, "the file is locked by another connection", "try again")
        }
        (_, Some(CORRUPT | NOTADB)) => {
            (ErrorKind::Corrupt, "the file is damaged", "stop writing and restore it from a backup")
        }
        (_, Some(ERROR | TOOBIG | CONSTRAINT | MISMATCH | AUTH | RANGE)) => {
            (ErrorKind::Rejected, "sqlite refused the statement", "fix its text or values")
        }
        (
            sqlx::Error::ColumnDecode { .. }
            | sqlx::Error::Decode(_)
            | sqlx::Error::ColumnIndexOutOfBounds { .. },
            _,
        ) => (
            ErrorKind::Corrupt,
            "a stored value has another type than expected",
            "check who else writes to this file",
        ),
        (sqlx::Error::Protocol(_) | sqlx::Error::Encode(_), _) => (
            ErrorKind::Rejected,
            "the statement's values do not fit its parameters",
            "use $1, $2 … and one value for each",
        ),
        _ => (
            ErrorKind::Unavailable,
            "sqlite could not work on the file",
            "check disk space and permissions, then try again",
        ),
    };
    Error::new(kind, format!("{what}: {error}")).fix(fix).source(error)
}

/// An error of the user's own statement: a write where only reading is allowed is refused, not a fault of the file.
pub(crate) fn of_user_statement(error: sqlx::Error) -> Error {
    match code(&error) {
        Some(READONLY) => Error::rejected(format!("only reading is allowed here: {error}"))
            .fix("write in a page or in the set-up")
            .source(error),
        _ => of(error),
    }
}

/// An error of COMMIT: unless SQLite says that it did not commit, nobody knows.
pub(crate) fn of_commit(error: sqlx::Error) -> Error {
    match code(&error) {
        Some(BUSY | LOCKED | CONSTRAINT) => of(error),
        _ => Error::unknown(format!("the answer to a commit was lost: {error}"))
            .fix("look whether it happened before you do it again")
            .source(error),
    }
}

#[cfg(test)]
mod tests {
    use sqlx::Connection;
    use sqlx::sqlite::SqliteConnection;

    use super::*;

    async fn failure(text: &'static str) -> sqlx::Error {
        let mut connection = SqliteConnection::connect("sqlite::memory:").await.unwrap();
        let table =
            "CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT NOT NULL) STRICT; INSERT INTO t VALUES (1, 'x')";
        sqlx::raw_sql(table).execute(&mut connection).await.unwrap();
        sqlx::raw_sql(text).execute(&mut connection).await.unwrap_err()
    }

    #[tokio::test]
    async fn what_sqlite_refuses_is_rejected() {
        for text in [
            "INSERT INTO t VALUES (1, 'y')",
            "INSERT INTO t VALUES (2, NULL)",
            "INSERT INTO t VALUES ('two', 'y')",
            "SELECT * FROM nowhere",
            "SELEC 1",
            "SELECT zeroblob(2000000000)",
        ] {
            let error = of(failure(text).await);
            assert_eq!(error.kind(), ErrorKind::Rejected, "{text}: {error:?}");
        }
    }

    #[tokio::test]
    async fn a_write_where_only_reading_is_allowed_is_rejected() {
        let error = of_user_statement(failure("PRAGMA query_only = ON; DELETE FROM t").await);
        assert_eq!(error.kind(), ErrorKind::Rejected, "{error:?}");
    }

    #[test]
    fn a_lost_answer_is_unknown_for_a_commit_and_harmless_before_it() {
        assert_eq!(of_commit(sqlx::Error::WorkerCrashed).kind(), ErrorKind::Unknown);
        assert_eq!(of(sqlx::Error::WorkerCrashed).kind(), ErrorKind::Unavailable);
    }

    #[tokio::test]
    async fn a_commit_that_sqlite_refuses_is_known_not_to_have_happened() {
        let text = "CREATE TABLE child (a REFERENCES t DEFERRABLE INITIALLY DEFERRED);
                    BEGIN; INSERT INTO child VALUES (9); COMMIT";
        let error = of_commit(failure(text).await);
        assert_eq!(error.kind(), ErrorKind::Rejected, "{error:?}");
    }
}
