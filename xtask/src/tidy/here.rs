//! Rule 7: nothing depends on one machine.
//!
//! A path into somebody's home folder works for nobody else, and a lock file that names another registry than the
//! public one builds nowhere else.

use super::Finding;
use crate::workspace::TextFile;

/// Folders that exist on one machine only. Put together here, so that this file does not contain them.
fn folders_of_one_machine() -> [String; 4] {
    ["work", "root", "home", "Users"].map(|name| format!("/{name}/"))
}

const PUBLIC_REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

pub(super) fn check(file: &TextFile) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        for folder in folders_of_one_machine().iter().filter(|folder| begins_a_path(line, folder)) {
            findings.push(Finding::new(
                file,
                index + 1,
                format!("{folder} is a folder of one machine; use a relative path"),
            ));
        }
        let source = file.path.ends_with("Cargo.lock").then(|| line.strip_prefix("source = \"")).flatten();
        if let Some(source) = source.filter(|source| !source.starts_with(PUBLIC_REGISTRY)) {
            let source = source.trim_end_matches('"');
            findings.push(Finding::new(file, index + 1, format!("{source} is not the public registry")));
        }
    }
    findings
}

/// Whether an absolute path in `line` begins with `folder`: `work/` inside another path is none.
fn begins_a_path(line: &str, folder: &str) -> bool {
    let part_of_path =
        |c: char| c.is_alphanumeric() || matches!(c, '/' | '.' | '-' | '_' | '~' | '}' | ')' | '*');
    line.match_indices(folder).any(|(at, _)| !line[..at].ends_with(part_of_path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::sample;

    #[test]
    fn a_path_of_one_machine_is_found() {
        let check = |text: &str| check(&sample("docs/a.md", text)).len();
        let [work, root, home, _] = folders_of_one_machine();
        assert_eq!(check(&format!("see {work}main for more")), 1);
        assert_eq!(check(&format!("`{home}me/x` and\n\"{root}x\"")), 2);
        assert_eq!(check("tests/work/x, crates/root/src and https://example.org/work/x"), 0);
    }

    #[test]
    fn another_registry_in_the_lock_file_is_found() {
        let check = |source: &str| check(&sample("Cargo.lock", &format!("source = \"{source}\"\n"))).len();
        assert_eq!(check(PUBLIC_REGISTRY), 0);
        assert_eq!(check("sparse+https://mirror.example/index/"), 1);
    }
}
