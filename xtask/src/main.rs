//! `cargo xtask`: the tasks of this workspace.

use std::{ffi::OsString, process::ExitCode};

use clap::{Parser, Subcommand};

/// The tasks of this workspace.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Runs every test and doctest against a private PostgreSQL, and the tidy checks. Arguments go to `cargo test`.
    #[command(disable_help_flag = true)]
    Test {
        /// For `cargo test`: a part of a test's name, `-p PACKAGE`, …
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// Checks what the compiler does not: arrows between crates, purity, SQL trees, prose, links, names, sizes.
    Tidy,
    /// Builds the demo in release and runs it, with the arguments as they are; `cargo xtask demo --help` is its help.
    #[command(disable_help_flag = true)]
    Demo {
        /// For the demo.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().task {
        Task::Test { arguments } => xtask::test::run(&arguments),
        Task::Tidy => xtask::tidy::run(),
        Task::Demo { arguments } => xtask::demo::run(&arguments),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("error: {error}");
        ExitCode::FAILURE
    })
}
