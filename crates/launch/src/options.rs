//! What a caller may choose about a server.

use std::path::PathBuf;

/// How long a server lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lifetime {
    /// Until the handle is dropped or this process ends, in whatever way it ends.
    WithParent,
    /// Until somebody stops it. Dropping the handle changes nothing; [`adopt`](crate::Postgres::adopt) finds it again.
    Detached,
}

/// What a caller may choose about a server.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where the data lives. `None`: in a temporary folder that is removed with the server, which needs
    /// [`Lifetime::WithParent`]. A given folder is created when it is missing and never removed.
    pub data_dir: Option<PathBuf>,
    /// How long the server lives.
    pub lifetime: Lifetime,
    /// Whether commits reach the disk. `false` is for tests that do not end the machine: faster, and a killed
    /// server process still loses nothing, because each commit still waits until the kernel has its log
    /// (`synchronous_commit` stays on).
    pub fsync: bool,
    /// More settings for `postgresql.conf`, such as `("shared_preload_libraries", "pg_stat_statements")`. They win
    /// over the ones this crate makes.
    pub settings: Vec<(String, String)>,
}

impl Default for Options {
    /// A temporary server without fsync that ends with this process.
    fn default() -> Self {
        Self { data_dir: None, lifetime: Lifetime::WithParent, fsync: false, settings: Vec::new() }
    }
}

impl Options {
    /// The lines of the configuration file: ours first, then the caller's, so that the caller's win.
    pub(crate) fn configuration(&self) -> String {
        let on = |yes: bool| if yes { "on" } else { "off" };
        let ours = [
            ("listen_addresses", "127.0.0.1"),
            ("unix_socket_directories", ""),
            ("max_connections", "200"),
            ("fsync", on(self.fsync)),
            ("full_page_writes", on(self.fsync)),
            ("log_line_prefix", "%m [%p] %a "),
        ];
        let theirs = self.settings.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let mut lines = String::from("# Written at every start.\n");
        for (name, value) in ours.into_iter().chain(theirs) {
            let value = value.replace('\'', "''");
            lines.push_str(&format!("{name} = '{value}'\n"));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_the_caller_come_last_and_are_quoted() {
        let options = Options {
            settings: vec![
                ("max_connections".into(), "300".into()),
                ("search_path".into(), "o'clock".into()),
            ],
            ..Options::default()
        };
        let text = options.configuration();
        assert!(text.ends_with("max_connections = '300'\nsearch_path = 'o''clock'\n"), "{text}");
        assert!(text.contains("fsync = 'off'"));
    }
}
