//! The workspace keeps its own rules: what `cargo xtask tidy` checks.

#[test]
fn the_workspace_is_tidy() {
    let findings = xtask::tidy::check(&xtask::workspace::root()).expect("the checks can run");
    let list: Vec<String> = findings.iter().map(ToString::to_string).collect();
    assert!(list.is_empty(), "{} findings:\n{}", list.len(), list.join("\n"));
}
