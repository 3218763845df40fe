//! Where the workspace is, which files it has, and what Cargo knows about it.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

use crate::Error;

/// Folders that hold nothing of ours.
const NOT_OURS: [&str; 2] = ["target", ".git"];

/// The root folder of the workspace.
#[must_use]
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_owned()
}

/// Cargo, the one that runs this program if there is one.
#[must_use]
pub fn cargo() -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    // What Cargo told this program about its own package is not meant for another Cargo.
    for (name, _) in env::vars_os() {
        if name
            .to_str()
            .is_some_and(|name| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_"))
        {
            command.env_remove(name);
        }
    }
    command
}

/// What `cargo metadata --no-deps` prints.
///
/// # Errors
/// When Cargo fails; its words are in the error.
pub fn metadata(root: &Path) -> Result<Value, Error> {
    let output = cargo()
        .args(["metadata", "--no-deps", "--format-version", "1", "--manifest-path"])
        .arg(root.join("Cargo.toml"))
        .output()?;
    if !output.status.success() {
        return Err(
            format!("cargo metadata failed: {}", String::from_utf8_lossy(&output.stderr).trim()).into()
        );
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// The folder that Cargo builds in.
///
/// # Errors
/// As [`metadata`].
pub fn target(root: &Path) -> Result<PathBuf, Error> {
    let folder = metadata(root)?["target_directory"].as_str().map(PathBuf::from);
    folder.ok_or_else(|| "cargo metadata names no target directory".into())
}

/// A text file of the workspace.
#[derive(Clone, Debug)]
pub struct TextFile {
    /// Its path, relative to the root, with `/` between the parts.
    pub path: String,
    /// Its whole text.
    pub text: String,
}

impl TextFile {
    /// Whether the file's name ends with `.extension`.
    #[must_use]
    pub fn is(&self, extension: &str) -> bool {
        self.path.rsplit_once('.').is_some_and(|(_, end)| end == extension)
    }
}

/// Every text file of the workspace, in the order of their paths; whatever is not UTF-8 is no text.
///
/// # Errors
/// When a folder cannot be read.
pub fn text_files(root: &Path) -> Result<Vec<TextFile>, Error> {
    let mut files = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            let (path, kind) = (entry.path(), entry.file_type()?);
            if kind.is_dir() && !NOT_OURS.iter().any(|name| entry.file_name() == *name) {
                folders.push(path);
            } else if kind.is_file()
                && let Ok(text) = fs::read_to_string(&path)
                && let Some(path) = path.strip_prefix(root)?.to_str()
            {
                files.push(TextFile { path: path.to_owned(), text });
            }
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}
