//! Builds the demo in release and becomes it.

use std::{
    ffi::OsString,
    os::unix::process::CommandExt,
    process::{Command, ExitCode},
};

use crate::{Error, workspace};

/// Builds the example `demo` of the package `bellwether` in release and replaces this process by it, so that signals,
/// the terminal, the working folder and the exit code are the demo's own.
///
/// # Errors
/// When the build fails or the program cannot be run.
pub fn run(arguments: &[OsString]) -> Result<ExitCode, Error> {
    let root = workspace::root();
    let status = workspace::cargo()
        .args([
            "build",
            "--quiet",
            "--release",
            "--package",
            "bellwether",
            "--example",
            "demo",
            "--manifest-path",
        ])
        .arg(root.join("Cargo.toml"))
        .status()?;
    if !status.success() {
        return Err("the demo does not build".into());
    }
    let program = workspace::target(&root)?.join("release/examples/demo");
    let error = Command::new(&program).args(arguments).exec();
    Err(format!("cannot run {}: {error}", program.display()).into())
}
