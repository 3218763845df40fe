//! Runs single statements through `psql`, so that this crate needs no driver.

use std::process::Stdio;

use crate::{
    binaries::Binaries,
    error::{LaunchError, Result},
};

/// Where a server is: what stands in its URL, taken apart.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Address {
    /// Everything before the database's name, such as `postgres://postgres@127.0.0.1:5499`.
    prefix: String,
    /// Everything after it, such as `?sslmode=require`.
    suffix: String,
}

impl Address {
    pub(crate) fn local(port: u16) -> Self {
        Self { prefix: format!("postgres://postgres@127.0.0.1:{port}"), suffix: String::new() }
    }

    /// From the URL of any database of a server.
    pub(crate) fn parse(url: &str) -> Option<Self> {
        let start = url.find("://")? + 3;
        let (head, suffix) = match url.find('?') {
            Some(at) => url.split_at(at),
            None => (url, ""),
        };
        let prefix = match head.get(start..)?.find('/') {
            Some(slash) => &head[..start + slash],
            None => head,
        };
        Some(Self { prefix: prefix.to_owned(), suffix: suffix.to_owned() })
    }

    /// The URL of one database of the server.
    pub(crate) fn url(&self, database: &str) -> String {
        format!("{}/{database}{}", self.prefix, self.suffix)
    }

    /// The URL without its password, and the password: programs show their arguments to every user.
    fn without_password(&self, database: &str) -> (String, Option<String>) {
        let url = self.url(database);
        let secret = url.split_once("://").and_then(|(scheme, rest)| {
            let (user, host) = rest.split_once('@')?;
            let (name, password) = user.split_once(':')?;
            Some((format!("{scheme}://{name}@{host}"), password.to_owned()))
        });
        match secret {
            Some((bare, password)) => (bare, Some(password)),
            None => (url, None),
        }
    }
}

/// Runs one statement in `database` and returns what it printed, without its last line end.
pub(crate) fn run(binaries: &Binaries, address: &Address, database: &str, sql: &str) -> Result<String> {
    let (url, password) = address.without_password(database);
    let mut command = binaries.command("psql");
    command.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", &url, "-c", sql]);
    command.env("PGCONNECT_TIMEOUT", "10").stdout(Stdio::piped());
    if let Some(password) = password {
        command.env("PGPASSWORD", password);
    }
    let output = command.output().map_err(LaunchError::io("run psql"))?;
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(LaunchError::Program { program: "psql", message });
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
}

/// Checks that `name` needs no quotes anywhere.
pub(crate) fn plain_name(name: &str) -> Result<&str> {
    let plain = name.len() <= 63
        && name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    if plain { Ok(name) } else { Err(LaunchError::Name(name.to_owned())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_database_of_a_url_is_replaced_and_the_rest_kept() {
        let check = |url: &str, expected: &str| {
            assert_eq!(
                Address::parse(url).map(|address| address.url("new")).as_deref(),
                Some(expected),
                "{url}"
            );
        };
        check("postgres://postgres@127.0.0.1:5499/postgres", "postgres://postgres@127.0.0.1:5499/new");
        check("postgres://postgres@127.0.0.1:5499", "postgres://postgres@127.0.0.1:5499/new");
        check("postgres://u:p@h/old?sslmode=require", "postgres://u:p@h/new?sslmode=require");
        assert!(Address::parse("not a url").is_none());
    }

    #[test]
    fn a_password_never_becomes_an_argument() {
        let address = Address::parse("postgres://u:secret@h:1/old").unwrap();
        assert_eq!(address.without_password("x"), ("postgres://u@h:1/x".into(), Some("secret".into())));
    }

    #[test]
    fn only_plain_names_are_names() {
        assert!(plain_name("test_1").is_ok());
        for name in ["", "1a", "a b", "a\"b", "A", "a-b", &"a".repeat(64)] {
            assert!(plain_name(name).is_err(), "{name:?}");
        }
    }
}
