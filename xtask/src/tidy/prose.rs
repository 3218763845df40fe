//! Rule 4: every crate and module opens with prose.

use super::Finding;
use crate::workspace::TextFile;

/// Fewer words than these say nothing that the file's name does not.
const WORDS_MIN: usize = 3;

pub(super) fn check(file: &TextFile) -> Option<Finding> {
    // What a compile-fail test feeds to the compiler is an input, not a module.
    if !file.is("rs") || file.path.contains("/ui/") {
        return None;
    }
    let opening = file.text.lines().skip_while(|line| line.trim().is_empty() || line.starts_with("#!"));
    let prose = opening.take_while(|line| line.starts_with("//!") && line.len() > 3);
    let count = prose.flat_map(|line| line[3..].split_whitespace()).count();
    (count < WORDS_MIN).then(|| Finding::new(file, 1, "opens without prose; say in `//!` what it is for"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::sample;

    #[test]
    fn a_module_without_prose_is_found() {
        let check = |text: &str| check(&sample("crates/a/src/line.rs", text)).is_some();
        assert!(check("use std::fs;\n"));
        assert!(check("//! Line.\n\n//! More.\nuse std::fs;\n"));
        assert!(!check("//! Who waits for the budget, in order.\n"));
        assert!(!check("#![no_std]\n//! Who waits for the budget, in order.\n"));
    }
}
