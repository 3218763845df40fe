//! What an error code of PostgreSQL means to a caller.

use bellwether_storage::ErrorKind;

/// The kind of an error that PostgreSQL answered, and how to fix it. The transaction is rolled back: nothing happened.
pub(crate) fn of_code(code: &str) -> (ErrorKind, &'static str) {
    match code {
        "40003" => (ErrorKind::Unknown, "look whether it happened before you do it again"),
        // Lock not free in time; cancelled by statement_timeout or by an operator.
        "55P03" | "57014" => {
            (ErrorKind::Unavailable, "try again; find who holds the lock in pg_stat_activity")
        }
        // A write on a standby; a statement in a transaction that failed or was ended before.
        "25006" => (ErrorKind::Unavailable, "connect to the primary"),
        "25P01" | "25P02" | "25P03" => (ErrorKind::Unavailable, "the transaction is gone: begin it again"),
        "3D000" => (ErrorKind::Rejected, "create the database, or name another in the url"),
        "XX001" | "XX002" => (ErrorKind::Corrupt, "stop writing and restore from a backup"),
        _ => match code.get(..2).unwrap_or_default() {
            "40" => (ErrorKind::Conflict, "do it again from the start"),
            "28" => (ErrorKind::Rejected, "correct user and password in the url"),
            "22" | "23" | "54" | "0A" | "42" | "21" | "2B" | "2D" | "25" | "34" | "38" | "39" | "44"
            | "P0" => (ErrorKind::Rejected, "fix the statement's text or values"),
            _ => (ErrorKind::Unavailable, "try again; the server's log says more"),
        },
    }
}

/// Whether the server ended the session together with the statement. Of an append nobody knows then whether it committed:
/// the session may have been ended while it waited for a standby.
pub(crate) fn ends_session(code: &str) -> bool {
    matches!(code, "57P01" | "57P02" | "57P03" | "57P05" | "25P03") || code.starts_with("08")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_become_what_the_caller_should_do() {
        let table = [
            ("22021", ErrorKind::Rejected), // a NUL in text
            ("23505", ErrorKind::Rejected), // a version twice
            ("23514", ErrorKind::Rejected), // no such partition
            ("54000", ErrorKind::Rejected), // an index row too large
            ("0A000", ErrorKind::Rejected),
            ("42601", ErrorKind::Rejected),
            ("P0001", ErrorKind::Rejected),
            ("40001", ErrorKind::Conflict),
            ("40P01", ErrorKind::Conflict),
            ("40003", ErrorKind::Unknown),
            ("55P03", ErrorKind::Unavailable),
            ("57014", ErrorKind::Unavailable),
            ("57P03", ErrorKind::Unavailable),
            ("53300", ErrorKind::Unavailable),
            ("25P02", ErrorKind::Unavailable),
            ("25006", ErrorKind::Unavailable),
            ("28P01", ErrorKind::Rejected),
            ("XX001", ErrorKind::Corrupt),
            ("", ErrorKind::Unavailable),
        ];
        for (code, kind) in table {
            assert_eq!(of_code(code).0, kind, "{code}");
        }
    }

    #[test]
    fn an_ended_session_is_told_from_a_refused_statement() {
        assert!(ends_session("57P01") && ends_session("08006"));
        assert!(!ends_session("57014") && !ends_session("23505"));
    }
}
