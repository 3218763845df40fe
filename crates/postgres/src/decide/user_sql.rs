//! Which statements of the user's own may run inside a transaction of ours.
//!
//! A statement that ends the transaction would commit documents without progress, and one that changes the session would
//! reach whoever gets the connection next. PostgreSQL takes one statement per message, so its first word decides.

use bellwether_storage::{Error, Result};

/// First words that neither end the transaction nor outlive it. `DO` and `CALL` cannot commit inside a transaction block.
const ALLOWED: &[&str] = &[
    "alter", "analyze", "call", "comment", "create", "delete", "do", "drop", "explain", "grant", "insert",
    "lock", "merge", "refresh", "revoke", "select", "table", "truncate", "update", "values", "with",
];

/// Refuses statements that end or begin a transaction, change the session, or speak another protocol.
pub(crate) fn check(text: &str) -> Result<()> {
    let word = first_word(text);
    if ALLOWED.iter().any(|allowed| word.eq_ignore_ascii_case(allowed)) {
        return Ok(());
    }
    let shown: String = word.chars().take(40).collect();
    Err(Error::rejected(format!("a statement that begins with {shown:?} may not run inside a page"))
        .fix("leave the transaction and the session to the page; write what reads or changes rows or tables"))
}

/// The first word, past blanks, comments, empty statements and opening parentheses.
fn first_word(text: &str) -> &str {
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == ';' || c == '(');
        if let Some(comment) = rest.strip_prefix("--") {
            rest = comment.split_once(['\n', '\r']).map_or("", |(_, after)| after);
        } else if let Some(comment) = rest.strip_prefix("/*") {
            rest = after_block(comment);
        } else {
            let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
            return &rest[..end];
        }
    }
}

/// What follows a block comment whose opening is already passed; such comments nest.
fn after_block(mut rest: &str) -> &str {
    let mut depth = 1;
    while depth > 0 {
        let Some(at) = rest.find("/*").into_iter().chain(rest.find("*/")).min() else {
            return "";
        };
        if rest[at..].starts_with("/*") {
            depth += 1;
        } else {
            depth -= 1;
        }
        rest = &rest[at + 2..];
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_on_rows_and_tables_is_allowed() {
        for text in [
            "INSERT INTO t VALUES ($1)",
            " \n select 1",
            "(SELECT 1) UNION (SELECT 2)",
            "-- why\nUPDATE t SET a = 1",
            "/* a /* nested */ one */ WITH x AS (SELECT 1) SELECT * FROM x",
            "create table if not exists t (a int)",
        ] {
            check(text).unwrap();
        }
    }

    #[test]
    fn what_ends_the_transaction_or_changes_the_session_is_refused() {
        for text in [
            "COMMIT",
            " commit and chain",
            ";COMMIT",
            "; ; -- x\n ROLLBACK",
            "/* */ROLLBACK",
            "/*/**/*/ abort",
            "/* open /* twice */ select 1 */ end",
            "BEGIN",
            "start transaction",
            "END",
            "SAVEPOINT a",
            "release a",
            "PREPARE TRANSACTION 'x'",
            "SET search_path = x",
            "set local lock_timeout = 0",
            "RESET ALL",
            "DISCARD ALL",
            "LISTEN x",
            "NOTIFY x",
            "COPY t FROM STDIN",
            "DEALLOCATE ALL",
            "EXECUTE x",
            "VACUUM",
            "",
            "-- nothing",
            "/* never closed",
            "\u{feff}COMMIT",
        ] {
            assert!(check(text).is_err(), "{text:?} was allowed");
        }
    }
}
