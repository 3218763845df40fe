//! A history from a git repository.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::input::BadRow;
use crate::row::{HEADER, Row};

/// Starts a commit in the output; no path begins with it, since the NUL before it ends the path.
const COMMIT: &str = "\u{1}commit ";

/// Longest entry that is read: a path or a commit line.
const ENTRY_BYTES_MAX: usize = 64 * 1024;

/// Writes the history of a repository as rows to `file`, oldest first. Rows that cannot be stored go to `bad`, counted by
/// changed files.
///
/// With `-z` git writes paths as they are, and a NUL after each entry. What a user's configuration could change is said.
pub(crate) fn write_history(
    repository: &Path,
    file: &Path,
    mut bad: impl FnMut(BadRow),
) -> Result<(), String> {
    let mut git = Command::new("git")
        .arg("-C")
        .arg(repository)
        .args([
            "-c",
            "log.showRoot=true",
            "log",
            "--reverse",
            "--no-renames",
            "--numstat",
            "-z",
            "--no-show-signature",
            "--encoding=UTF-8",
            "--abbrev=12",
            "--format=format:%x01commit %h %ct %an",
        ])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("cannot run git: {error}; install it, or pass a history with --input"))?;
    let entries = BufReader::new(git.stdout.take().ok_or("git has no output")?);
    let written = copy_entries(entries, file, &mut bad);
    if written.is_err() {
        // Whatever it still says is of no use.
        let _ = git.kill();
    }
    let output = git.wait_with_output().map_err(|error| format!("cannot wait for git: {error}"))?;
    written?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!(
            "git log in {} failed: {}",
            repository.display(),
            String::from_utf8_lossy(&output.stderr).trim()
        )),
    }
}

fn copy_entries(mut entries: impl BufRead, file: &Path, bad: &mut impl FnMut(BadRow)) -> Result<(), String> {
    let unwritable = |error: std::io::Error| format!("cannot write {}: {error}", file.display());
    let mut rows = BufWriter::new(File::create(file).map_err(unwritable)?);
    writeln!(rows, "{HEADER}").map_err(unwritable)?;
    let (mut entry, mut changes) = (Vec::new(), 0u64);
    let mut commit: Option<(String, String, String)> = None;
    loop {
        entry.clear();
        if entries.read_until(0, &mut entry).map_err(|error| format!("cannot read from git: {error}"))? == 0 {
            return rows.flush().map_err(unwritable);
        }
        if entry.len() > ENTRY_BYTES_MAX {
            return Err(format!("git wrote an entry of {} bytes", entry.len()));
        }
        let text = String::from_utf8_lossy(entry.strip_suffix(b"\0").unwrap_or(&entry)).into_owned();
        // A commit's line and its first change come as one entry, parted by a line feed; names hold none.
        let mut change = text.as_str();
        if let Some(rest) = text.trim_start_matches('\n').strip_prefix(COMMIT) {
            let (line, first) = rest.split_once('\n').unwrap_or((rest, ""));
            let mut parts = line.splitn(3, ' ');
            let mut part = || parts.next().unwrap_or_default().to_owned();
            commit = Some((part(), part(), part()));
            change = first;
        }
        if change.is_empty() {
            continue;
        }
        changes += 1;
        match row_of(commit.as_ref(), change) {
            Ok(row) => {
                let (added, removed) =
                    row.lines.map_or(("-".into(), "-".into()), |(a, r)| (a.to_string(), r.to_string()));
                writeln!(
                    rows,
                    "{}\t{}\t{}\t{added}\t{removed}\t{}",
                    row.commit, row.unix_time, row.author, row.path
                )
                .map_err(unwritable)?;
            }
            Err(reason) => bad(BadRow { line: changes, reason }),
        }
    }
}

/// A change is `added TAB removed TAB path`.
fn row_of(commit: Option<&(String, String, String)>, change: &str) -> Result<Row, String> {
    let (hash, unix_time, author) = commit.ok_or("a change before the first commit")?;
    let mut columns = change.splitn(3, '\t');
    let (Some(added), Some(removed), Some(path)) = (columns.next(), columns.next(), columns.next()) else {
        return Err(format!("{change:?} is not a change of a file"));
    };
    if path.contains(char::REPLACEMENT_CHARACTER) {
        return Err(format!("path {path:?} is not UTF-8"));
    }
    let author = if author.is_empty() { "(nobody)" } else { author };
    Row::from_columns(hash, unix_time, author, (added, removed), path)
}
