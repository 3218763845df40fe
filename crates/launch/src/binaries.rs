//! Finds the programs of an installed PostgreSQL.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::error::{LaunchError, Result};

/// The folder that holds the programs of one installed PostgreSQL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binaries {
    folder: PathBuf,
}

impl Binaries {
    /// Finds an installed PostgreSQL: `BELLWETHER_PG_BIN`, then `pg_config --bindir`, then `PATH`, then the newest
    /// `/usr/lib/postgresql/*/bin`.
    ///
    /// # Errors
    /// [`LaunchError::NotInstalled`]: install PostgreSQL, or set `BELLWETHER_PG_BIN`.
    pub fn find() -> Result<Self> {
        if let Some(named) = env::var_os("BELLWETHER_PG_BIN") {
            // Named but wrong is a mistake to tell, not a reason to take another version.
            return Self::at(PathBuf::from(named)).ok_or(LaunchError::NotInstalled);
        }
        let configured = bindir_of_pg_config().into_iter();
        let on_path =
            env::var_os("PATH").into_iter().flat_map(|path| env::split_paths(&path).collect::<Vec<_>>());
        configured
            .chain(on_path)
            .chain(newest_first(Path::new("/usr/lib/postgresql")))
            .find_map(Self::at)
            .ok_or(LaunchError::NotInstalled)
    }

    /// The folder, when it holds what a server needs.
    fn at(folder: PathBuf) -> Option<Self> {
        // A link on PATH is followed: the server looks for its libraries beside the real file.
        let folder = folder.join("postgres").canonicalize().ok()?.parent()?.to_owned();
        let complete = ["initdb", "pg_ctl", "psql"].iter().all(|name| folder.join(name).exists());
        complete.then_some(Self { folder })
    }

    /// The folder of the programs.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What the server says of its own version, such as `postgres (PostgreSQL) 15.13`.
    ///
    /// # Errors
    /// When the program does not run at all.
    pub fn version(&self) -> Result<String> {
        let output = self
            .command("postgres")
            .arg("--version")
            .output()
            .map_err(LaunchError::io(format!("run {}", self.folder.join("postgres").display())))?;
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    /// A command for one of the programs: no input, and a working folder that every user may enter.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.folder.join(program));
        command.current_dir("/").stdin(Stdio::null()).env("LC_ALL", "C").env_remove("PGOPTIONS");
        command
    }
}

fn bindir_of_pg_config() -> Option<PathBuf> {
    let output = Command::new("pg_config").arg("--bindir").stderr(Stdio::null()).output().ok()?;
    let folder = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| PathBuf::from(folder.trim()))
}

/// `ROOT/VERSION/bin`, the highest version first.
fn newest_first(root: &Path) -> Vec<PathBuf> {
    let mut versions: Vec<(u32, PathBuf)> = fs::read_dir(root)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let version = entry.file_name().to_str()?.parse().ok()?;
            Some((version, entry.path().join("bin")))
        })
        .collect();
    versions.sort_by_key(|(version, _)| std::cmp::Reverse(*version));
    versions.into_iter().map(|(_, folder)| folder).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_version_comes_first_by_number_not_by_text() {
        let root = tempfile::tempdir().unwrap();
        for version in ["9", "15", "17", "not-a-version"] {
            fs::create_dir(root.path().join(version)).unwrap();
        }
        let found = newest_first(root.path());
        let expected = ["17", "15", "9"].map(|version| root.path().join(version).join("bin"));
        assert_eq!(found, expected);
    }

    #[test]
    fn a_folder_without_the_server_is_not_taken() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(Binaries::at(root.path().to_owned()), None);
    }
}
