//! The command line.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};

/// Turns the history of a repository into events, lets projections catch up under one memory budget, and verifies every stored
/// document against a plain fold over the input.
///
/// Exit codes: 0 verified; 1 a difference or a failure; 2 wrong usage, or another input than the data folder holds; 3 verified,
/// but rows of the input were bad and left out.
#[derive(Debug, Parser)]
#[command(name = "demo", bin_name = "cargo xtask demo")]
pub(crate) struct Args {
    /// A history: `.tsv` or `.tsv.gz` with a header line and the columns commit, unix_time, author, added, removed, path.
    /// Default: a small one that comes with the demo.
    #[arg(long, value_name = "FILE", conflicts_with = "git")]
    pub(crate) input: Option<PathBuf>,
    /// A git repository, read by `git log`.
    #[arg(long, value_name = "DIR")]
    pub(crate) git: Option<PathBuf>,
    /// How many leading directories of a path make its tenant.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(0..=64))]
    pub(crate) tenant_depth: u8,
    /// Where the events and documents go.
    #[arg(long, value_enum, default_value_t = StoreKind::Sqlite)]
    pub(crate) store: StoreKind,
    /// A PostgreSQL database to use instead of a private server: `postgres://USER@HOST:PORT/DATABASE`.
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,
    /// Folder that keeps the store, so that a later run goes on where this one stopped. Default: a temporary folder that is
    /// removed at the end.
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// Events loaded and not yet committed, over all tenants; 0 is unbounded.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) budget_events: u64,
    /// Bytes loaded, worked on and not yet committed, over all tenants; 0 is unbounded. Default: an eighth of the memory
    /// limit, at most 256 MiB.
    #[arg(long, value_name = "N")]
    pub(crate) budget_bytes: Option<u64>,
    /// Writes the report to a file.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Only reads an existing `--data` (or `--url`): recomputes from the input and compares every stored document.
    #[arg(long)]
    pub(crate) check: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum StoreKind {
    /// One file, no server.
    Sqlite,
    /// This process only; nothing is kept.
    Memory,
    /// A private server, or the one `--url` names.
    Postgres,
}

impl StoreKind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Sqlite => "sqlite",
            Self::Memory => "memory",
            Self::Postgres => "postgres",
        }
    }
}

impl Args {
    /// Combinations that mean nothing, with what to do instead.
    pub(crate) fn validate(&self) -> Result<(), String> {
        if self.url.is_some() && self.store != StoreKind::Postgres {
            return Err("--url names a PostgreSQL database; add --store postgres".into());
        }
        if self.url.is_some() && self.data.is_some() {
            return Err("--url and --data exclude each other; the database of --url keeps everything".into());
        }
        if self.store == StoreKind::Memory && self.data.is_some() {
            return Err("--store memory keeps nothing; leave --data out, or use --store sqlite".into());
        }
        if self.check && self.data.is_none() && self.url.is_none() {
            return Err("--check reads what an earlier run left; name it with --data (or --url)".into());
        }
        if self.check
            && let Some(data) = &self.data
            && !data.is_dir()
        {
            return Err(format!("--check needs an existing --data; there is no folder {}", data.display()));
        }
        Ok(())
    }
}
