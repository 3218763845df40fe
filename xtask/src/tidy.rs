//! What must hold in this workspace and no compiler checks.
//!
//! Each rule is a plain function over text or over what `cargo metadata` prints, with a test that shows it find a
//! fault. [`check`] applies all of them to a checkout:
//!
//! 1. arrows between crates are the ones that `docs/architecture.md` lists;
//! 2. `decide/` decides without I/O, clock, chance or hash order;
//! 3. the SQL trees of the adapters have the same names, and each statement says what holds after it;
//! 4. every crate and module opens with prose;
//! 5. links in documents lead somewhere;
//! 6. files are named after what they hold and are no longer than a reader can bear; tests neither sleep nor skip;
//! 7. nothing depends on one machine.

mod arrows;
mod here;
mod links;
mod prose;
mod purity;
mod shape;
mod source;
mod sql_trees;

use std::{fmt, path::Path, process::ExitCode};

use crate::{
    Error,
    workspace::{self, TextFile},
};

/// A place where a rule does not hold.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// The file, relative to the root of the workspace.
    pub path: String,
    /// The line, from 1.
    pub line: usize,
    /// What is wrong, and how to mend it.
    pub message: String,
}

impl Finding {
    fn new(file: &TextFile, line: usize, message: impl Into<String>) -> Self {
        Self { path: file.path.clone(), line, message: message.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.message)
    }
}

/// Applies every rule to the checkout at `root`; no findings means tidy.
///
/// # Errors
/// When files cannot be read or `cargo metadata` fails.
pub fn check(root: &Path) -> Result<Vec<Finding>, Error> {
    let files = workspace::text_files(root)?;
    let mut findings = arrows::check(&files, &arrows::of_metadata(&workspace::metadata(root)?));
    findings.extend(purity::check(&files));
    findings.extend(sql_trees::check(&files));
    findings.extend(links::check(&files, |path| root.join(path).exists()));
    for file in &files {
        findings.extend(prose::check(file));
        findings.extend(shape::check(file));
        findings.extend(here::check(file));
    }
    findings.sort();
    Ok(findings)
}

/// Prints the findings for this workspace; fails when there are any.
///
/// # Errors
/// As [`check`].
pub fn run() -> Result<ExitCode, Error> {
    let findings = check(&workspace::root())?;
    for finding in &findings {
        println!("{finding}");
    }
    println!("tidy: {} findings", findings.len());
    Ok(if findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A file for the tests of the rules.
#[cfg(test)]
fn sample(path: &str, text: &str) -> TextFile {
    TextFile { path: path.to_owned(), text: text.to_owned() }
}
