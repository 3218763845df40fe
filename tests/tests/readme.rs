//! The README tells the truth: its first program is the example `hello`, and the example runs.

use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the package lies in the workspace").to_owned()
}

#[test]
fn the_first_program_of_the_readme_is_the_example_hello() {
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    let hello = std::fs::read_to_string(root().join("crates/bellwether/examples/hello.rs")).unwrap();
    let (_, rest) = readme.split_once("```rust\n").expect("the README shows a program");
    let (shown, _) = rest.split_once("```\n").expect("the program ends");
    assert!(
        shown == hello,
        "README.md and crates/bellwether/examples/hello.rs differ; copy the example into the README"
    );
}

#[test]
fn hello_prints_the_totals_of_three_tenants() {
    // X3: one command, one file, no server.
    let folder = tempfile::tempdir().unwrap();
    let run = |_: u32| {
        let output = std::process::Command::new(env!("CARGO"))
            .args(["run", "--quiet", "--package", "bellwether", "--example", "hello", "--manifest-path"])
            .arg(root().join("Cargo.toml"))
            .current_dir(folder.path())
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let expect = |accounts: u32, cents: i64| {
        ["acme", "globex", "initech"]
            .map(|tenant| format!("{tenant}: Some(Totals {{ accounts: {accounts}, cents: {cents} }})\n"))
            .concat()
    };
    assert_eq!(run(1), expect(1, 650));
    assert_eq!(run(2), expect(2, 1_300), "a second run on the same file goes on where the first one stopped");
}
