//! Rule 3: the adapters have the same statements under the same names, each with a heading.

use std::collections::{BTreeMap, BTreeSet};

use super::Finding;
use crate::workspace::TextFile;

pub(super) fn check(files: &[TextFile]) -> Vec<Finding> {
    let statements: Vec<(&TextFile, &str, &str)> = files.iter().filter_map(parts).collect();
    let mut findings: Vec<Finding> = statements.iter().flat_map(|(file, ..)| check_heading(file)).collect();
    let mut trees: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (_, dialect, name) in &statements {
        trees.entry(dialect).or_default().insert(name);
    }
    for (file, dialect, name) in &statements {
        for (other, _) in trees.iter().filter(|(other, names)| *other != dialect && !names.contains(name)) {
            let message = format!("crates/{other}/sql/{name} is missing; the trees have the same names");
            findings.push(Finding::new(file, 1, message));
        }
    }
    findings
}

/// The file, its dialect and its name inside the tree.
fn parts(file: &TextFile) -> Option<(&TextFile, &str, &str)> {
    let (dialect, name) = file.path.strip_prefix("crates/")?.split_once("/sql/")?;
    (file.is("sql") && !dialect.contains('/')).then_some((file, dialect, name))
}

/// What holds after the statement, and which locks it takes.
fn check_heading(file: &TextFile) -> Vec<Finding> {
    let heading: Vec<&str> = file.text.lines().take_while(|line| line.starts_with("--")).collect();
    let says = |what: &str| heading.iter().any(|line| line.starts_with(what));
    let missing = ["-- After it:", "-- Locks:"].into_iter().filter(|what| !says(what));
    missing.map(|what| Finding::new(file, 1, format!("the heading has no line `{what} …`"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::sample;

    const HEADING: &str = "-- After it: nothing changed.\n-- Locks: none.\nSELECT 1;\n";

    #[test]
    fn a_statement_that_one_dialect_lacks_is_found() {
        let both =
            [sample("crates/a/sql/heads/lock.sql", HEADING), sample("crates/b/sql/heads/lock.sql", HEADING)];
        assert_eq!(check(&both), []);
        let one =
            [sample("crates/a/sql/heads/lock.sql", HEADING), sample("crates/b/sql/heads/look.sql", HEADING)];
        assert_eq!(check(&one).len(), 2);
    }

    #[test]
    fn a_statement_without_its_heading_is_found() {
        let found = check(&[sample("crates/a/sql/heads/lock.sql", "-- After it: locked.\nSELECT 1;\n")]);
        assert_eq!(found.len(), 1);
        assert!(found[0].message.contains("-- Locks:"));
        assert_eq!(check(&[sample("crates/a/sql/heads/lock.sql", "SELECT 1;\n")]).len(), 2);
    }
}
