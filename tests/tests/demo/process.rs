//! Running the demo, and what it leaves.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;

use bellwether_launch::Postgres;
use serde_json::Value;
use tempfile::TempDir;

/// The program: the one named by `BELLWETHER_DEMO`, else built once for this process.
pub(crate) fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| match std::env::var_os("BELLWETHER_DEMO") {
        Some(program) => program.into(),
        None => build(),
    })
}

fn build() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../Cargo.toml");
    let output = Command::new(env!("CARGO"))
        .args([
            "build",
            "--package",
            "bellwether",
            "--example",
            "demo",
            "--message-format=json",
            "--manifest-path",
        ])
        .arg(manifest)
        .output()
        .unwrap();
    assert!(output.status.success(), "the demo does not build: {}", text(&output.stderr));
    let messages = text(&output.stdout);
    let mut built = messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|message| message["target"]["name"] == "demo")
        .filter_map(|message| message["executable"].as_str().map(PathBuf::from));
    built.next().expect("cargo names what it built")
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A folder for one test: input, data and report. Ends the private server, should a failed test leave it running.
pub(crate) struct Scene {
    folder: TempDir,
}

impl Scene {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.path("data")
    }

    /// Where the private server has its files.
    pub(crate) fn postgres(&self) -> PathBuf {
        self.data().join("postgres")
    }

    /// Whether the private server runs.
    pub(crate) fn is_served(&self) -> bool {
        self.postgres().join("postmaster.pid").exists()
    }

    /// Writes a file of this test.
    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, content).unwrap();
        path
    }

    /// A run of the demo, its words kept.
    pub(crate) fn demo<S: AsRef<std::ffi::OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Run {
        let mut command = Command::new(program());
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Run::from(command.output().unwrap())
    }

    /// A run on `input` in this test's data folder.
    pub(crate) fn on(&self, store: &str, input: &Path, more: &[&str]) -> Run {
        self.demo(self.arguments(store, input).iter().map(String::as_str).chain(more.iter().copied()))
    }

    /// The same run, not waited for; its words go to a file, so that it never waits for a reader.
    pub(crate) fn begin(&self, store: &str, input: &Path, words: &str) -> Child {
        let words = std::fs::File::create(self.path(words)).unwrap();
        Command::new(program())
            .args(self.arguments(store, input))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(words)
            .spawn()
            .unwrap()
    }

    fn arguments(&self, store: &str, input: &Path) -> Vec<String> {
        let show = |path: &Path| path.to_str().unwrap().to_owned();
        let words = ["--store", store, "--tenant-depth", "2", "--input"].map(str::to_owned);
        words.into_iter().chain([show(input), "--data".into(), show(&self.data())]).collect()
    }

    /// Runs to the end on `input` and returns the report of a verified run.
    #[track_caller]
    pub(crate) fn verified(&self, store: &str, input: &Path) -> Value {
        let file = self.path("report.json");
        let run = self.on(store, input, &["--json", file.to_str().unwrap()]);
        assert_eq!(run.code, 0, "{run}");
        let report = report(&file);
        assert_eq!(report["verified"], true, "{report}");
        report
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        if self.is_served()
            && let Ok(server) = Postgres::adopt(self.postgres())
        {
            let _stopped = server.stop();
        }
    }
}

/// The report in a file.
pub(crate) fn report(file: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap()
}

/// How a demo ended and what it said.
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) errors: String,
}

impl From<Output> for Run {
    fn from(output: Output) -> Self {
        let code = output.status.code().unwrap_or(-1);
        Self { code, out: text(&output.stdout), errors: text(&output.stderr) }
    }
}

impl std::fmt::Display for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "exit code {}\n{}\n{}", self.code, self.out, self.errors)
    }
}
