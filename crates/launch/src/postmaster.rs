//! Reads a server's `postmaster.pid`, and asks whether its process lives.

use std::{fs, path::Path};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};

/// What a running server, or one that crashed, left in its `postmaster.pid`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Postmaster {
    /// The server's first process.
    pub(crate) pid: u32,
    /// The TCP port, when the server has written it yet.
    pub(crate) port: Option<u16>,
    /// Whether it accepts connections.
    pub(crate) ready: bool,
}

impl Postmaster {
    /// The server of this data folder, dead or alive; `None` after a clean stop.
    pub(crate) fn read(data_dir: &Path) -> Option<Self> {
        parse(&fs::read_to_string(data_dir.join("postmaster.pid")).ok()?)
    }

    /// The server of this data folder, if its process runs.
    pub(crate) fn running(data_dir: &Path) -> Option<Self> {
        // A crash leaves the file, and the number may belong to another program by now.
        Self::read(data_dir)
            .filter(|found| is_alive(found.pid) && is_server(found.pid) && works_in(found.pid, data_dir))
    }
}

/// Line 1 is the process id, line 4 the port, line 8 the state.
fn parse(text: &str) -> Option<Postmaster> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    // A single-user server writes a negative number; such a one is never ours.
    let pid = lines.first()?.parse().ok()?;
    let port = lines.get(3).and_then(|line| line.parse().ok());
    let ready = lines.get(7).is_some_and(|state| *state == "ready");
    Some(Postmaster { pid, port, ready })
}

/// Whether a process exists and has not ended. A process that has ended but was not waited for counts as gone.
pub(crate) fn is_alive(pid: u32) -> bool {
    let Some(process) = process(pid) else { return false };
    match fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(stat) => !matches!(state(&stat), Some('Z' | 'X')),
        // Without /proc the signal 0 has to do.
        Err(_) => !Path::new("/proc/self").exists() && test_kill_process(process).is_ok(),
    }
}

/// Whether a process is a PostgreSQL server, as far as this machine can tell.
fn is_server(pid: u32) -> bool {
    match fs::read_to_string(format!("/proc/{pid}/comm")) {
        Ok(name) => name.trim() == "postgres" || name.trim() == "postmaster",
        Err(_) => !Path::new("/proc/self").exists(),
    }
}

/// Whether a server's process works in this data folder; one whose folder cannot be seen gets the benefit of the doubt.
fn works_in(pid: u32, data_dir: &Path) -> bool {
    match (fs::read_link(format!("/proc/{pid}/cwd")), data_dir.canonicalize()) {
        (Ok(folder), Ok(data_dir)) => folder == data_dir,
        _ => true,
    }
}

/// The direct children of a process; empty where there is no `/proc`.
pub(crate) fn children(parent: u32) -> Vec<u32> {
    fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid: &u32| {
            fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| parent_of(&stat) == Some(parent))
        })
        .collect()
}

/// Sends a signal to a server; one that is gone already is no error.
pub(crate) fn signal(pid: u32, signal: Signal) {
    if let Some(process) = process(pid).filter(|_| is_server(pid)) {
        let _gone = kill_process(process, signal);
    }
}

fn process(pid: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(pid).ok()?)
}

/// The fields of `/proc/PID/stat` after the name, which is in brackets and may hold anything.
fn fields(stat: &str) -> Option<std::str::SplitWhitespace<'_>> {
    stat.rsplit_once(')').map(|(_, rest)| rest.split_whitespace())
}

fn state(stat: &str) -> Option<char> {
    fields(stat)?.next()?.chars().next()
}

fn parent_of(stat: &str) -> Option<u32> {
    fields(stat)?.nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_of_a_ready_server_is_read() {
        let text = "4711\n/data\n1700000000\n5499\n\n127.0.0.1\n  1234  5\nready   \n";
        assert_eq!(parse(text), Some(Postmaster { pid: 4711, port: Some(5499), ready: true }));
    }

    #[test]
    fn a_half_written_file_is_not_ready() {
        assert_eq!(parse("4711\n/data\n"), Some(Postmaster { pid: 4711, port: None, ready: false }));
        assert_eq!(parse(""), None);
        assert_eq!(parse("-4711\n"), None);
    }

    #[test]
    fn an_ended_process_that_nobody_waited_for_counts_as_gone() {
        let stat = "4711 (a) b) Z 12 1 1";
        assert_eq!(state(stat), Some('Z'));
        assert_eq!(parent_of(stat), Some(12));
        assert!(is_alive(std::process::id()));
    }
}
