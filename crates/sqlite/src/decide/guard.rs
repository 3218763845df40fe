//! Which SQL a user may run inside a page's transaction, and on a reader.
//!
//! The transaction is the page's: a `COMMIT` inside would publish documents without their progress. So one text is one
//! statement, and statements that begin, end, attach or configure are refused by their first word.

use bellwether_storage::{Error, Result};

/// First words that would end the transaction behind our back, or change what the connection is.
const REFUSED: [&str; 10] =
    ["BEGIN", "COMMIT", "END", "ROLLBACK", "SAVEPOINT", "RELEASE", "ATTACH", "DETACH", "PRAGMA", "VACUUM"];

/// First words of the statements of a trigger's body.
const IN_TRIGGERS: [&str; 6] = ["SELECT", "INSERT", "UPDATE", "DELETE", "REPLACE", "WITH"];

/// Refuses what must not run inside a page's transaction, and parameters that do not fit the number of values.
///
/// # Errors
///
/// `Rejected`, naming the word and the fix.
pub(crate) fn check(text: &str, values: usize) -> Result<()> {
    let Parts { statements, parameters } = parts(text);
    let Some(first) = statements.first() else {
        return Err(Error::rejected("the statement is empty").fix("write one SQL statement"));
    };
    if let Some(word) = REFUSED.iter().find(|word| first[0].eq_ignore_ascii_case(word)) {
        return Err(Error::rejected(format!("{word} is not allowed here"))
            .fix("the transaction is begun and committed for you; attach and configure outside Bellwether"));
    }
    if statements.len() > 1 && !is_trigger(&statements) {
        return Err(
            Error::rejected("the text holds more than one statement").fix("pass one statement at a time")
        );
    }
    check_parameters(&parameters, values)
}

/// SQLite would read a value that is missing as NULL, and pass over one too many.
fn check_parameters(parameters: &[&str], values: usize) -> Result<()> {
    let mut highest = 0;
    for name in parameters {
        let number = name.strip_prefix('$').and_then(|number| number.parse().ok()).unwrap_or(0);
        if !(1..=values).contains(&number) {
            return Err(Error::rejected(format!(
                "there is no value for parameter {name}; the statement has {values}"
            ))
            .fix("number the parameters $1, $2 … and bind one value for each"));
        }
        highest = highest.max(number);
    }
    match highest == values {
        true => Ok(()),
        false => Err(Error::rejected(format!(
            "the statement has {values} values, and its highest parameter is ${highest}"
        ))
        .fix("bind one value for each parameter")),
    }
}

/// Whether the statements are one `CREATE TRIGGER … BEGIN …; …; END`.
fn is_trigger(statements: &[Vec<&str>]) -> bool {
    let is = |word: &str, expected: &str| word.eq_ignore_ascii_case(expected);
    let [first, body @ .., last] = statements else { return false };
    let creates = match first[..] {
        [create, second, ..] if is(create, "CREATE") && is(second, "TRIGGER") => true,
        [create, second, third] => {
            is(create, "CREATE") && (is(second, "TEMP") || is(second, "TEMPORARY")) && is(third, "TRIGGER")
        }
        _ => false,
    };
    creates
        && last.len() == 1
        && is(last[0], "END")
        && body.iter().all(|statement| IN_TRIGGERS.iter().any(|word| is(statement[0], word)))
}

/// What matters of a text.
#[derive(Default)]
struct Parts<'a> {
    /// The first (at most three) words of each statement that is not blank.
    statements: Vec<Vec<&'a str>>,
    /// Every parameter, as written.
    parameters: Vec<&'a str>,
}

/// Takes a text apart. Knows comments, strings and quoted names, so that a semicolon inside one ends nothing.
fn parts(text: &str) -> Parts<'_> {
    let mut parts = Parts::default();
    let mut words: Vec<&str> = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let length = if c == ';' {
            if !words.is_empty() {
                parts.statements.push(std::mem::take(&mut words));
            }
            1
        } else if c.is_whitespace() || c == '\u{feff}' {
            c.len_utf8()
        } else if rest.starts_with("--") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.get(2..).and_then(|inside| inside.find("*/")).map_or(rest.len(), |end| end + 4)
        } else {
            let length = match c {
                '\'' | '"' | '`' => closed_by(rest, c),
                '[' => closed_by(rest, ']'),
                '?' | ':' | '@' => 1 + rest[1..].find(|c| !is_word(c)).unwrap_or(rest.len() - 1),
                _ if is_word(c) => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
                _ => c.len_utf8(),
            };
            let word = &rest[..length];
            if matches!(c, '$' | '?' | ':' | '@') {
                parts.parameters.push(word);
            }
            if words.len() < 3 {
                words.push(word);
            }
            length
        };
        rest = &rest[length..];
    }
    if !words.is_empty() {
        parts.statements.push(words);
    }
    parts
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$'
}

/// Length of a quoted piece. A doubled quote reads as two pieces side by side, which is as good here.
fn closed_by(rest: &str, quote: char) -> usize {
    rest[1..].find(quote).map_or(rest.len(), |end| end + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_statements_pass() {
        for text in [
            "INSERT INTO t VALUES ($1, $2)",
            "  -- why\n SELECT 'a;COMMIT' ;  -- ;\n",
            "/* ; COMMIT ; */ UPDATE t SET a = 'it''s; fine' WHERE \"b;\" = [c;] AND `d;` = 1;",
            "WITH x AS (SELECT 1) SELECT * FROM x",
            "CREATE TABLE IF NOT EXISTS t (a INTEGER, begin_at TEXT)",
            "CREATE TRIGGER t AFTER INSERT ON a BEGIN INSERT INTO b VALUES (1); UPDATE c SET d = 1; END",
            "create temp trigger t after insert on a begin delete from b; end;",
            "INSERT INTO t SELECT CASE WHEN a THEN 1 END FROM b",
        ] {
            check(text, text.matches('$').count()).unwrap_or_else(|error| panic!("{text:?}: {error}"));
        }
    }

    #[test]
    fn nothing_that_ends_the_transaction_passes() {
        for text in [
            "COMMIT",
            "commit;",
            " /* x */ -- y\n End",
            ";COMMIT",
            "\u{feff}COMMIT",
            "ROLLBACK TO a",
            "savepoint a",
            "RELEASE a",
            "BEGIN IMMEDIATE",
            "PRAGMA query_only = 0",
            "ATTACH 'x' AS y",
            "VACUUM INTO 'x'",
            "INSERT INTO t VALUES (1); COMMIT",
            "SELECT 'a' ; /* */ COMMIT",
            "SELECT 1; SELECT 2",
            "CREATE TRIGGER t AFTER INSERT ON a BEGIN SELECT 1; END; COMMIT",
            "CREATE TRIGGER t AFTER INSERT ON a BEGIN SELECT 1; END; SELECT 1; END",
            "CREATE TRIGGER t AFTER INSERT ON a BEGIN SELECT 1; COMMIT; END",
            "CREATE TABLE trigger (a); END",
            "",
            " -- nothing\n;",
            "/*",
        ] {
            assert!(check(text, 0).is_err(), "{text:?} was let through");
        }
    }

    #[test]
    fn parameters_and_values_fit() {
        for (text, values) in [
            ("SELECT 1", 0),
            ("SELECT $1, '$9', \"$8\" -- $7", 1),
            ("SELECT $2, $1, $2", 2),
            ("SELECT a$b FROM t WHERE c = $1", 1),
        ] {
            check(text, values).unwrap_or_else(|error| panic!("{text:?}: {error}"));
        }
        for (text, values) in [
            ("SELECT $1", 0),
            ("SELECT $0", 1),
            ("SELECT $1", 2),
            ("SELECT 1", 1),
            ("SELECT $x", 1),
            ("SELECT ?", 1),
            ("SELECT ?1", 1),
            ("SELECT :a", 1),
            ("SELECT @a", 1),
            ("SELECT $99999999999999999999", 1),
        ] {
            assert!(check(text, values).is_err(), "{text:?} with {values} was let through");
        }
    }
}
