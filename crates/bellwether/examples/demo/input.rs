//! Reading a history row by row, in bounded memory.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;

use flate2::read::MultiGzDecoder;

use crate::row::{HEADER, Row};

/// The history that comes with the demo.
const SMALL: &str = include_str!("history-small.tsv");

/// How compressed files begin.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// A longer line is not a row.
const LINE_BYTES_MAX: u64 = 64 * 1024;

/// A history that can be read more than once.
#[derive(Debug, Clone)]
pub(crate) enum Input {
    Small,
    File(PathBuf),
}

/// A row that could not be read.
#[derive(Debug)]
pub(crate) struct BadRow {
    pub(crate) line: u64,
    pub(crate) reason: String,
}

impl Input {
    /// Calls `row` for every good row in order and `bad` for every other one.
    pub(crate) fn read(
        &self,
        mut row: impl FnMut(u64, Row) -> Result<(), String>,
        mut bad: impl FnMut(BadRow),
    ) -> Result<(), String> {
        let mut lines = self.lines()?;
        let mut bytes = Vec::new();
        let mut number = 0u64;
        loop {
            bytes.clear();
            let read = (&mut lines).take(LINE_BYTES_MAX).read_until(b'\n', &mut bytes);
            if read.map_err(|error| format!("cannot read {self} after line {number}: {error}"))? == 0 {
                return match number {
                    0 => Err(format!("{self} is empty; its first line must be {HEADER:?}")),
                    _ => Ok(()),
                };
            }
            number += 1;
            let complete = bytes.ends_with(b"\n");
            if !complete && bytes.len() as u64 == LINE_BYTES_MAX {
                skip_line(&mut lines)
                    .map_err(|error| format!("cannot read {self} after line {number}: {error}"))?;
                bad(BadRow { line: number, reason: format!("longer than {LINE_BYTES_MAX} bytes") });
                continue;
            }
            let line = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if number == 1 {
                if line != HEADER.as_bytes() {
                    return Err(format!(
                        "the first line of {self} must be {HEADER:?}, columns separated by tabs"
                    ));
                }
                continue;
            }
            match std::str::from_utf8(line).map_err(|_| "not UTF-8".to_owned()).and_then(Row::parse) {
                Ok(good) => row(number, good)?,
                Err(reason) => bad(BadRow { line: number, reason }),
            }
        }
    }

    fn lines(&self) -> Result<Box<dyn BufRead>, String> {
        let Self::File(path) = self else { return Ok(Box::new(SMALL.as_bytes())) };
        let file = File::open(path).map_err(|error| format!("cannot open {}: {error}", path.display()))?;
        let mut file = BufReader::new(file);
        // By its first bytes, whatever its name is: no history begins with them.
        let begins = file.fill_buf().map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        match begins.starts_with(&GZIP) {
            true => Ok(Box::new(BufReader::new(MultiGzDecoder::new(file)))),
            false => Ok(Box::new(file)),
        }
    }
}

impl std::fmt::Display for Input {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Small => f.write_str("the history that comes with the demo"),
            Self::File(path) => path.display().fmt(f),
        }
    }
}

/// Passes over the rest of a line, without keeping it.
fn skip_line(lines: &mut dyn BufRead) -> std::io::Result<()> {
    loop {
        let available = lines.fill_buf()?;
        if available.is_empty() {
            return Ok(());
        }
        let end = available.iter().position(|&byte| byte == b'\n');
        let used = end.map_or(available.len(), |at| at + 1);
        lines.consume(used);
        if end.is_some() {
            return Ok(());
        }
    }
}
