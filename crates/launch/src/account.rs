//! Under which user the server runs: never root.

use std::{
    fs,
    os::unix::{
        fs::{MetadataExt, chown},
        process::CommandExt,
    },
    path::Path,
    process::Command,
};

use crate::error::{LaunchError, Result};

/// The user that runs the server, when that is not the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Account {
    name: String,
    uid: u32,
    gid: u32,
}

impl Account {
    /// The account to drop to: none for an ordinary caller; for root `postgres`, else `nobody`.
    pub(crate) fn for_new_cluster() -> Result<Option<Self>> {
        if !rustix::process::geteuid().is_root() {
            return Ok(None);
        }
        let passwd = read_passwd()?;
        let found = ["postgres", "nobody"].iter().find_map(|name| find(&passwd, |entry| entry.name == *name));
        found.map(Some).ok_or(LaunchError::NoAccount)
    }

    /// The account that owns an existing data folder, when the caller is root; the server accepts no other.
    pub(crate) fn of_cluster(data_dir: &Path) -> Result<Option<Self>> {
        if !rustix::process::geteuid().is_root() {
            return Ok(None);
        }
        let owner =
            fs::metadata(data_dir).map_err(LaunchError::io(format!("read {}", data_dir.display())))?;
        if owner.uid() == 0 {
            return Self::for_new_cluster();
        }
        let known = find(&read_passwd()?, |entry| entry.uid == owner.uid());
        Ok(Some(known.unwrap_or(Self { name: owner.uid().to_string(), uid: owner.uid(), gid: owner.gid() })))
    }

    /// Makes `command` run under this account.
    pub(crate) fn apply(&self, command: &mut Command) {
        command.uid(self.uid).gid(self.gid);
    }

    /// Gives one file or folder to this account.
    pub(crate) fn own(&self, path: &Path) -> Result<()> {
        chown(path, Some(self.uid), Some(self.gid)).map_err(LaunchError::io(format!(
            "give {} to {}",
            path.display(),
            self.name
        )))
    }

    /// Checks that this account may enter every parent of `path`, which would otherwise fail far from its cause.
    pub(crate) fn may_reach(&self, path: &Path) -> Result<()> {
        for folder in path.ancestors().skip(1) {
            let Ok(metadata) = fs::metadata(folder) else { continue };
            if !self.may_enter(metadata.uid(), metadata.gid(), metadata.mode()) {
                return Err(LaunchError::Unreachable {
                    folder: folder.to_owned(),
                    account: self.name.clone(),
                });
            }
        }
        Ok(())
    }

    fn may_enter(&self, uid: u32, gid: u32, mode: u32) -> bool {
        let bit = match () {
            () if uid == self.uid => 0o100,
            () if gid == self.gid => 0o010,
            () => 0o001,
        };
        mode & bit != 0
    }
}

fn read_passwd() -> Result<String> {
    fs::read_to_string("/etc/passwd").map_err(LaunchError::io("read /etc/passwd"))
}

fn find(passwd: &str, wanted: impl Fn(&Account) -> bool) -> Option<Account> {
    passwd.lines().filter_map(parse).find(|account| wanted(account))
}

/// One line of `/etc/passwd`: name, password, user id, group id, and what follows.
fn parse(line: &str) -> Option<Account> {
    let mut fields = line.split(':');
    let name = fields.next()?.to_owned();
    let uid = fields.nth(1)?.parse().ok()?;
    let gid = fields.next()?.parse().ok()?;
    Some(Account { name, uid, gid })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWD: &str =
        "root:x:0:0:root:/root:/bin/bash\nbroken line\npostgres:x:101:104:x:/var:/bin/bash\n";

    #[test]
    fn accounts_are_read_from_the_password_file() {
        let found = find(PASSWD, |account| account.name == "postgres");
        assert_eq!(found, Some(Account { name: "postgres".into(), uid: 101, gid: 104 }));
        assert_eq!(find(PASSWD, |account| account.name == "nobody"), None);
    }

    #[test]
    fn a_private_folder_of_somebody_else_cannot_be_entered() {
        let account = Account { name: "postgres".into(), uid: 101, gid: 104 };
        assert!(!account.may_enter(0, 0, 0o700));
        assert!(account.may_enter(0, 0, 0o755));
        assert!(account.may_enter(101, 0, 0o700));
        assert!(account.may_enter(0, 104, 0o710));
    }
}
