//! Rule 6: files are named after what they hold and short enough to read; tests neither sleep nor skip.

use super::{
    Finding,
    source::{code_only, line_of, split_tests, words},
};
use crate::workspace::TextFile;

/// Around 250 lines is the aim; at this many a file holds more than one thing.
const LINES_MAX: usize = 500;
/// Names that say nothing: whatever is put there has a better one.
const EMPTY_NAMES: [&str; 7] = ["mod", "util", "utils", "common", "helper", "helpers", "misc"];
/// Macros that stand for code that was not written.
const NOT_WRITTEN: [&str; 2] = ["todo", "unimplemented"];

pub(super) fn check(file: &TextFile) -> Vec<Finding> {
    if !file.is("rs") || file.path.contains("/ui/") {
        return Vec::new();
    }
    let mut findings = Vec::new();
    let name = file.path.trim_end_matches(".rs").split('/').find(|part| EMPTY_NAMES.contains(part));
    if let Some(name) = name {
        findings.push(Finding::new(file, 1, format!("`{name}` says nothing; name it after what it holds")));
    }
    let lines = file.text.lines().count();
    if lines > LINES_MAX {
        findings.push(Finding::new(file, lines, format!("{lines} lines; divide it, one noun per file")));
    }
    let code = code_only(&file.text);
    for (at, word) in words(&code) {
        let rest = &code[at + word.len()..];
        if NOT_WRITTEN.contains(&word) && rest.starts_with('!') {
            findings.push(Finding::new(file, line_of(&code, at), format!("`{word}!`: write it")));
        }
        if word == "ignore" && code[..at].ends_with("#[") {
            findings.push(Finding::new(
                file,
                line_of(&code, at),
                "an ignored test proves nothing; mend or remove it",
            ));
        }
    }
    findings.extend(check_sleeps(file, &code));
    findings
}

/// A test that sleeps for a time waits too long on most machines and too short on one. Between two looks at a
/// condition a pause is fine, and under a paused clock no time passes.
fn check_sleeps(file: &TextFile, code: &str) -> Vec<Finding> {
    // The programs that tests start lie in `tests/src`; what they do in their own time is their business.
    let whole = file.path.contains("/tests/");
    let tests = if whole { code.to_owned() } else { split_tests(code).1 };
    if tests.contains("start_paused") || tests.contains("time::pause") {
        return Vec::new();
    }
    let called = |at: usize, word: &str| tests[at + word.len()..].starts_with('(');
    let sleeps = words(&tests).filter(|(at, word)| *word == "sleep" && called(*at, word));
    let outside = sleeps.filter(|(at, _)| !in_a_loop(&tests[..*at]));
    let message = "a test that sleeps; wait for the condition, or pause the clock";
    outside.map(|(at, _)| Finding::new(file, line_of(&tests, at), message)).collect()
}

/// Whether the code that ends here is inside a `loop` or `while` of its function.
fn in_a_loop(before: &str) -> bool {
    let mut depth = 0_i32;
    for (at, c) in before.char_indices().rev() {
        match c {
            '}' => depth += 1,
            '{' if depth > 0 => depth -= 1,
            '{' => {
                let begin = before[..at].rfind(['{', '}', ';']).map_or(0, |begin| begin + 1);
                let opener: Vec<&str> = words(&before[begin..at]).map(|(_, word)| word).collect();
                if opener.contains(&"loop") || opener.contains(&"while") {
                    return true;
                }
                if opener.contains(&"fn") {
                    return false;
                }
            }
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::sample;

    fn found(path: &str, text: &str) -> usize {
        check(&sample(path, text)).len()
    }

    #[test]
    fn empty_names_are_found() {
        assert_eq!(found("crates/a/src/utils.rs", ""), 1);
        assert_eq!(found("crates/a/src/decide/mod.rs", ""), 1);
        assert_eq!(found("crates/a/src/helpers/line.rs", ""), 1);
        assert_eq!(found("crates/a/src/model.rs", ""), 0);
    }

    #[test]
    fn long_files_are_found() {
        assert_eq!(found("crates/a/src/line.rs", &"//\n".repeat(LINES_MAX)), 0);
        assert_eq!(found("crates/a/src/line.rs", &"//\n".repeat(LINES_MAX + 1)), 1);
    }

    #[test]
    fn code_that_was_not_written_and_tests_that_do_not_run_are_found() {
        assert_eq!(found("crates/a/src/line.rs", "fn f() { todo!() }\n"), 1);
        assert_eq!(found("crates/a/src/line.rs", "fn f() { unimplemented!(\"x\") }\n"), 1);
        assert_eq!(found("crates/a/tests/line.rs", "#[test]\n#[ignore]\nfn f() {}\n"), 1);
        assert_eq!(found("crates/a/src/line.rs", "// todo!() in a comment\nfn ignore() {}\n"), 0);
    }

    #[test]
    fn tests_that_sleep_are_found_and_waits_for_a_condition_are_not() {
        let sleep = "fn t() {\n    std::thread::sleep(SECOND);\n}\n";
        assert_eq!(found("crates/a/tests/line.rs", sleep), 1);
        assert_eq!(found("crates/a/src/line.rs", sleep), 0, "not a test");
        assert_eq!(found("crates/a/src/line.rs", &format!("#[cfg(test)]\nmod tests {{ {sleep} }}\n")), 1);
        assert_eq!(found("crates/a/tests/line.rs", "fn t() { while !done() { sleep(TICK).await; } }\n"), 0);
        assert_eq!(found("crates/a/tests/line.rs", "fn t() { while !done() {} sleep(TICK).await; }\n"), 1);
        assert_eq!(
            found("crates/a/tests/line.rs", "#[tokio::test(start_paused = true)]\nfn t() { sleep(S); }\n"),
            0
        );
    }
}
