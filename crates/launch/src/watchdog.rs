//! Stops a server when this process ends, in whatever way it ends.
//!
//! The watchdog is a shell that reads a pipe. This process holds the only write end and never writes; when the
//! process ends, even by `SIGKILL`, the kernel closes the pipe, the shell reads its end, stops the server that stands
//! in `postmaster.pid` at that moment, and removes a temporary folder. It is started *before* the server, so there is
//! no instant at which a server could stay behind. The write end is closed on `exec`, so no other child keeps it open.

use std::{
    os::unix::process::CommandExt,
    path::Path,
    process::{Child, ChildStdin, Command, Stdio},
};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::{
    account::Account,
    binaries::Binaries,
    error::{LaunchError, Result},
};

/// What the shell runs. `$1`: the folder of the programs; `$2`: the data folder; `$3`: a folder to remove, or nothing.
///
/// A server that was started an instant ago has not written its file yet, hence the short wait for it.
const SCRIPT: &str = r#"
trap '' HUP INT TERM
cat >/dev/null
tries=0
while [ -d "$2" ] && [ ! -s "$2/postmaster.pid" ] && [ "$tries" -lt 20 ]; do sleep 0.1; tries=$((tries + 1)); done
if [ -s "$2/postmaster.pid" ]; then
    "$1/pg_ctl" stop -s -D "$2" -m fast -w -t 20 || "$1/pg_ctl" stop -s -D "$2" -m immediate -w -t 20
fi
[ -z "$3" ] || rm -rf "$3"
"#;

/// The shell that waits for this process to end.
#[derive(Debug)]
pub(crate) struct Watchdog {
    shell: Child,
    // Only held: dropping it is the signal.
    pipe: Option<ChildStdin>,
}

impl Watchdog {
    /// Starts watching `data_dir`; `remove` is deleted in the end.
    pub(crate) fn start(
        binaries: &Binaries,
        account: Option<&Account>,
        data_dir: &Path,
        remove: Option<&Path>,
    ) -> Result<Self> {
        let mut command = Command::new("sh");
        command.arg("-c").arg(SCRIPT).arg("bellwether-watchdog").arg(binaries.folder()).arg(data_dir);
        command.arg(remove.unwrap_or(Path::new("")));
        command.current_dir("/").stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        // In a process group of its own: an interrupt from the terminal is meant for the caller, not for it.
        command.process_group(0);
        if let Some(account) = account {
            account.apply(&mut command);
        }
        let mut shell = command.spawn().map_err(LaunchError::io("start the watchdog `sh`"))?;
        let pipe = shell.stdin.take();
        Ok(Self { shell, pipe })
    }

    /// Ends the shell without letting it do anything: the server is stopped already.
    pub(crate) fn dismiss(mut self) {
        if let Ok(group) = i32::try_from(self.shell.id())
            && let Some(group) = Pid::from_raw(group)
        {
            // The shell and the `cat` it waits for.
            let _gone = kill_process_group(group, Signal::KILL);
        }
        self.pipe = None;
        let _ended = self.shell.wait();
    }
}
