//! Runs every test, with the servers they need.

use std::{
    env,
    ffi::{OsStr, OsString},
    io::{self, BufRead, BufReader, Read, Write},
    path::Path,
    process::{Child, ExitCode, Stdio},
    thread,
};

use crate::{Error, tidy, workspace};

/// Runs the tidy checks and `cargo test`, all test programs against one private PostgreSQL, and prints the sums in the
/// last line. `arguments` go to `cargo test`.
///
/// # Errors
/// When something could not even be started.
pub fn run(arguments: &[OsString]) -> Result<ExitCode, Error> {
    let root = workspace::root();
    let findings = tidy::check(&root)?;
    for finding in &findings {
        println!("{finding}");
    }
    let server = Server::start(&root)?;
    let mut command = workspace::cargo();
    command.current_dir(&root).arg("test").arg("--no-fail-fast");
    if !names_packages(arguments) {
        command.arg("--workspace");
    }
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    if let Some(server) = &server {
        command.env("BELLWETHER_TEST_POSTGRES", &server.url);
    }
    if let Some(demo) = build_demo(&root)? {
        command.env("BELLWETHER_DEMO", demo);
    }
    let mut child = command.spawn()?;
    let (out, errors) = (child.stdout.take(), child.stderr.take());
    let reader = thread::spawn(move || errors.map(|errors| count(errors, io::stderr())).transpose());
    let mut sums = out.map(|out| count(out, io::stdout())).transpose()?.unwrap_or_default();
    let status = child.wait()?;
    // Loud skips go past the test harness to the standard error, and the harness counts them as passed.
    let said = reader.join().map_err(|_| "the reader of the standard error failed")??.unwrap_or_default();
    sums.skipped += said.said_skipped;
    sums.passed = sums.passed.saturating_sub(said.said_skipped);
    drop(server);
    if !findings.is_empty() {
        println!("tidy: {} findings, listed at the beginning", findings.len());
        sums.failed += 1;
    } else {
        sums.passed += 1;
    }
    if !status.success() && sums.failed == 0 {
        println!("cargo test ended with {status}: a test program did not build or did not come to its end");
        sums.failed += 1;
    }
    println!("{} passed, {} failed, {} skipped", sums.passed, sums.failed, sums.skipped);
    let good = status.success() && sums.failed == 0;
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Whether the caller chose packages, which the choice of all would overrule.
fn names_packages(arguments: &[OsString]) -> bool {
    let is_choice = |argument: &OsString| {
        argument == "-p"
            || argument.to_str().is_some_and(|text| text.starts_with("--package") || text.starts_with("-p"))
    };
    arguments.iter().take_while(|argument| *argument != OsStr::new("--")).any(is_choice)
}

/// The path of the demo, for the tests that kill it; `None`, said loudly, while it does not exist.
fn build_demo(root: &Path) -> Result<Option<OsString>, Error> {
    if !root.join("crates/bellwether/examples/demo").exists()
        && !root.join("crates/bellwether/examples/demo.rs").exists()
    {
        println!("there is no demo; the tests that run it are skipped");
        return Ok(None);
    }
    let status = workspace::cargo()
        .current_dir(root)
        .args(["build", "--quiet", "--package", "bellwether", "--example", "demo"])
        .status()?;
    if !status.success() {
        return Err("the demo does not build".into());
    }
    Ok(Some(workspace::target(root)?.join("debug/examples/demo").into_os_string()))
}

/// The PostgreSQL that the test programs share. Its program ends, and the server with it, when its input ends: when
/// this is dropped, or this process is killed.
struct Server {
    url: String,
    program: Child,
}

impl Server {
    /// Starts a server; `None`, said loudly, when this machine has none and may do without.
    fn start(root: &Path) -> Result<Option<Self>, Error> {
        if env::var_os("BELLWETHER_TEST_POSTGRES").is_some() {
            println!("PostgreSQL: the one named by BELLWETHER_TEST_POSTGRES");
            return Ok(None);
        }
        let built = workspace::cargo()
            .current_dir(root)
            .args(["build", "--quiet", "--package", "bellwether-launch", "--bin", "bellwether-serve"])
            .status()?;
        if !built.success() {
            return Err("the program that starts PostgreSQL does not build".into());
        }
        let mut program = std::process::Command::new(workspace::target(root)?.join("debug/bellwether-serve"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        if let Some(out) = program.stdout.take() {
            BufReader::new(out).read_line(&mut line)?;
        }
        if let Some((url, version)) = line.trim().split_once(' ') {
            println!("PostgreSQL: {version}, started for this run at {url}");
            return Ok(Some(Self { url: url.to_owned(), program }));
        }
        program.wait()?;
        if ["CI", "BELLWETHER_REQUIRE_SERVERS"].iter().any(|name| env::var_os(name).is_some()) {
            return Err("no PostgreSQL, and none of its tests may be skipped here".into());
        }
        println!("==================================================================================");
        println!("NO POSTGRESQL: every test that needs it is SKIPPED. apt-get install postgresql, or");
        println!("set BELLWETHER_PG_BIN to the folder that holds `postgres` and `initdb`.");
        println!("==================================================================================");
        Ok(None)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.program.stdin.take());
        let _ended = self.program.wait();
    }
}

/// The sums over all test programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sums {
    passed: u64,
    failed: u64,
    skipped: u64,
    /// Tests that said in their own words that they were skipped.
    said_skipped: u64,
}

impl Sums {
    /// Adds what one line of a test program's output says.
    fn add(&mut self, line: &str) {
        if line.starts_with("SKIPPED ") || line.starts_with("exam: SKIPPED") {
            self.said_skipped += 1;
        }
        let Some(rest) = line.strip_prefix("test result: ") else { return };
        for part in rest.split(['.', ';']) {
            let mut words = part.split_whitespace();
            let (Some(Ok(number)), Some(what)) = (words.next().map(str::parse::<u64>), words.next()) else {
                continue;
            };
            match what {
                "passed" => self.passed += number,
                "failed" => self.failed += number,
                "ignored" => self.skipped += number,
                _ => {}
            }
        }
    }
}

/// Passes lines on as they come, and counts.
fn count(input: impl Read, mut output: impl Write) -> io::Result<Sums> {
    let mut sums = Sums::default();
    let mut input = BufReader::new(input);
    let mut line = Vec::new();
    while input.read_until(b'\n', &mut line)? > 0 {
        output.write_all(&line)?;
        output.flush()?;
        sums.add(&String::from_utf8_lossy(&line));
        line.clear();
    }
    Ok(sums)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_results_of_all_programs_are_summed() {
        let text = "running 3 tests\n\
                    test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 5 filtered out; finished in 0.00s\n\
                    SKIPPED the exam on PostgreSQL: not installed\n\
                    test result: FAILED. 10 passed; 3 failed; 0 ignored; 0 measured; 0 filtered out\n";
        let mut seen = Vec::new();
        let sums = count(text.as_bytes(), &mut seen).unwrap();
        assert_eq!(sums, Sums { passed: 12, failed: 3, skipped: 1, said_skipped: 1 });
        assert_eq!(seen, text.as_bytes(), "and passed on unchanged");
    }

    #[test]
    fn a_choice_of_packages_is_kept() {
        let chooses = |words: &[&str]| names_packages(&words.iter().map(OsString::from).collect::<Vec<_>>());
        assert!(chooses(&["-p", "bellwether-launch"]));
        assert!(chooses(&["--package=bellwether-launch"]));
        assert!(!chooses(&["stale_version", "--", "-p"]));
    }
}
