//! Rule 2: `decide/` decides without I/O, clock, chance or hash order.
//!
//! A decision is a function of what it is given, so that a test, a simulator and production run the same one. Code for
//! tests is exempt: a property test needs chance.

use std::collections::BTreeSet;

use super::{
    Finding,
    source::{code_only, is_name, line_of, split_tests, words},
};
use crate::workspace::TextFile;

/// Names that bring in what a decision must not have, each with the reason.
const FORBIDDEN: [(&str, &str); 20] = [
    ("async", "decisions are synchronous; wait in perform/"),
    ("await", "decisions are synchronous; wait in perform/"),
    ("tokio", "decisions know no runtime"),
    ("tracing", "decisions do not log; return what happened"),
    ("sqlx", "decisions do no I/O"),
    ("println", "decisions do no I/O"),
    ("eprintln", "decisions do no I/O"),
    ("dbg", "decisions do no I/O"),
    ("SystemTime", "time is passed in"),
    ("rand", "chance is passed in"),
    ("fastrand", "chance is passed in"),
    ("now_v7", "ids are passed in"),
    ("new_v4", "ids are passed in"),
    ("RandomState", "the order of hashes differs from run to run"),
    ("DashMap", "the order of hashes differs from run to run; use a BTreeMap or a Vec"),
    ("Mutex", "decisions share nothing; lock in perform/"),
    ("RwLock", "decisions share nothing; lock in perform/"),
    ("AtomicU64", "decisions share nothing; count in perform/"),
    ("AtomicBool", "decisions share nothing; count in perform/"),
    ("thread_local", "decisions share nothing"),
];

/// Collections in hash order. Looking something up in one is fine, walking through it is not.
const HASHED: [&str; 2] = ["HashMap", "HashSet"];

/// What walks through a collection.
const WALKS: [&str; 10] = [
    "iter",
    "iter_mut",
    "into_iter",
    "keys",
    "into_keys",
    "values",
    "values_mut",
    "into_values",
    "drain",
    "retain",
];

/// Modules of the standard library that are I/O.
const FORBIDDEN_STD: [&str; 6] = ["fs", "net", "env", "thread", "process", "io"];

pub(super) fn check(files: &[TextFile]) -> Vec<Finding> {
    let decisions: Vec<&TextFile> =
        files.iter().filter(|file| file.is("rs") && is_decision(&file.path)).collect();
    let only_tests: BTreeSet<String> = decisions.iter().flat_map(|file| test_modules(file)).collect();
    let checked: Vec<&TextFile> =
        decisions.into_iter().filter(|file| !only_tests.contains(&file.path)).collect();
    // A field is declared in one file and used in another of the same crate.
    let hashed: Vec<Hashed> = checked.iter().flat_map(|file| hashed_names(file)).collect();
    checked.into_iter().flat_map(|file| [check_file(file), check_order(file, &hashed)].concat()).collect()
}

/// The first two folders of a path: `crates/events`.
fn crate_of(path: &str) -> String {
    path.split('/').take(2).collect::<Vec<_>>().join("/")
}

/// A field or variable that is a collection in hash order, with the file that declares it.
struct Hashed {
    path: String,
    name: String,
}

impl Hashed {
    /// Whether `name` in a file means this one. Elsewhere in the crate only a field can, and a field follows a dot.
    fn is_meant(&self, path: &str, before: &str, name: &str) -> bool {
        let here = self.path == path;
        let as_field = crate_of(&self.path) == crate_of(path) && before.ends_with('.');
        self.name == name && (here || as_field)
    }
}

/// The fields and variables of a file that are collections in hash order: `name: HashMap<…`,
/// `name = HashMap::new()`, with or without a path before it.
fn hashed_names(file: &TextFile) -> Vec<Hashed> {
    let (code, _) = split_tests(&code_only(&file.text));
    let names = words(&code).filter(|(_, word)| HASHED.contains(word)).filter_map(|(at, _)| {
        // Back over a path such as `std::collections::`, then over the colon or the equals sign.
        let mut declared = &code[..at];
        while let Some(parent) = declared.strip_suffix("::") {
            declared = parent.trim_end_matches(is_name);
        }
        let declared = declared.trim_end().trim_end_matches('&').trim_end();
        let declared = declared.strip_suffix([':', '='])?.trim_end();
        let begin = declared.trim_end_matches(is_name).len();
        let name = &declared[begin..];
        (!name.is_empty()).then(|| Hashed { path: file.path.clone(), name: name.to_owned() })
    });
    names.collect()
}

/// Walks through a collection in hash order, unless what comes of it is sorted in the next line.
fn check_order(file: &TextFile, hashed: &[Hashed]) -> Vec<Finding> {
    let (code, _) = split_tests(&code_only(&file.text));
    let is_meant =
        |at: usize, word: &str| hashed.iter().any(|one| one.is_meant(&file.path, &code[..at], word));
    let mut findings = Vec::new();
    for (at, word) in words(&code).filter(|(at, word)| is_meant(*at, word)) {
        let rest = &code[at + word.len()..];
        let called = rest.trim_start().strip_prefix('.').and_then(|call| words(call).next());
        let walked = called.is_some_and(|(begin, method)| begin == 0 && WALKS.contains(&method));
        let line_begin = code[..at].rfind('\n').map_or(0, |end| end + 1);
        let before = &code[line_begin..at];
        let looped = before.trim_start().starts_with("for ")
            && before.contains(" in ")
            && rest.trim_start().starts_with('{');
        let sorted = rest.lines().take(3).any(|line| line.contains(".sort"));
        if (walked || looped) && !sorted {
            let message = format!(
                "walks through `{word}` in hash order, which differs from run to run; sort, or use a BTreeMap"
            );
            findings.push(Finding::new(file, line_of(&code, at), message));
        }
    }
    findings
}

fn is_decision(path: &str) -> bool {
    path.contains("/src/") && (path.contains("/decide/") || path.ends_with("/decide.rs"))
}

/// The files of modules that a file declares for tests only.
fn test_modules(file: &TextFile) -> Vec<String> {
    let (_, tests) = split_tests(&code_only(&file.text));
    let folder = match file.path.strip_suffix("/decide.rs") {
        Some(parent) => format!("{parent}/decide"),
        None => file.path.trim_end_matches(".rs").to_owned(),
    };
    let names: Vec<&str> = words(&tests).map(|(_, word)| word).collect();
    let declared = names.windows(2).filter(|pair| pair[0] == "mod");
    declared.map(|pair| format!("{folder}/{}.rs", pair[1])).collect()
}

fn check_file(file: &TextFile) -> Vec<Finding> {
    let (code, _) = split_tests(&code_only(&file.text));
    let mut findings = Vec::new();
    let mut find = |at: usize, name: &str, reason: &str| {
        let message = format!("`{name}` in decide/: {reason}");
        findings.push(Finding::new(file, line_of(&code, at), message));
    };
    for (at, word) in words(&code) {
        if let Some((name, reason)) = FORBIDDEN.iter().find(|(name, _)| *name == word) {
            find(at, name, reason);
        }
        if word == "Instant" && code[at..].starts_with("Instant::now") {
            find(at, "Instant::now", "time is passed in");
        }
        if word == "std" {
            for name in used_of_std(&code[at + word.len()..]) {
                find(at, name, "decisions do no I/O");
            }
        }
    }
    findings
}

/// The forbidden modules named behind `std`: `::fs…` or `::{fs…, collections…}`.
fn used_of_std(rest: &str) -> Vec<&'static str> {
    let Some(path) = rest.strip_prefix("::") else { return Vec::new() };
    let first = |part: &str| words(part).next().map(|(_, word)| word.to_owned());
    let named: Vec<String> = match path.strip_prefix('{') {
        Some(group) => top_level_parts(group).iter().filter_map(|part| first(part)).collect(),
        None => first(path).into_iter().collect(),
    };
    FORBIDDEN_STD.into_iter().filter(|name| named.iter().any(|used| used == name)).collect()
}

/// The parts of a group in braces, divided by its own commas; `group` begins behind the opening brace.
fn top_level_parts(group: &str) -> Vec<&str> {
    let (mut parts, mut begin, mut depth) = (Vec::new(), 0, 0_u32);
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => {
                parts.push(&group[begin..at]);
                break;
            }
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&group[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::sample;

    fn lines(text: &str) -> Vec<usize> {
        check(&[sample("crates/x/src/decide/line.rs", text)]).iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn impure_code_is_found() {
        assert_eq!(lines("use tokio::time::Instant;\n"), [1]);
        assert_eq!(lines("fn f() {\n    let now = std::time::Instant::now();\n}\n"), [2]);
        assert_eq!(lines("use std::{collections::BTreeMap, fs};\n"), [1]);
        assert_eq!(lines("async fn f() {}\n"), [1]);
        assert_eq!(lines("fn f() { std::env::var(\"X\"); }\n"), [1]);
    }

    #[test]
    fn walking_in_hash_order_is_found_and_looking_up_is_not() {
        let held = "struct S { lanes: std::collections::HashMap<u8, u8> }\n";
        let found = |rest: &str| lines(&format!("{held}{rest}"));
        assert_eq!(found("fn f(s: &S) { s.lanes.get(&1); }\n"), Vec::<usize>::new());
        assert_eq!(found("fn f(s: &S) { s.lanes.values().sum() }\n"), [2]);
        assert_eq!(found("fn f(s: &S) {\n    for lane in &s.lanes {\n    }\n}\n"), [3]);
        assert_eq!(lines("let set = HashSet::new();\nset\n    .drain();\n"), [2]);
        let sorted =
            "fn f(s: &S) {\n    let mut all: Vec<_> = s.lanes.keys().collect();\n    all.sort();\n}\n";
        assert_eq!(found(sorted), Vec::<usize>::new());
    }

    #[test]
    fn pure_code_comments_and_tests_are_fine() {
        let text = "//! No tokio here.\nuse std::{collections::BTreeMap, time::Instant};\nfn f(now: Instant) {}\n\
                    #[cfg(test)]\nmod tests { use rand::Rng; }\n";
        assert_eq!(lines(text), Vec::<usize>::new());
        let elsewhere = sample("crates/x/src/perform/line.rs", "use tokio::spawn;");
        assert_eq!(check(&[elsewhere]), []);
    }

    #[test]
    fn modules_for_tests_only_are_exempt_and_others_are_not() {
        let files = [
            sample("crates/x/src/decide.rs", "#[cfg(test)]\nmod exam;\nmod line;\n"),
            sample("crates/x/src/decide/exam.rs", "use rand::Rng;\n"),
            sample("crates/x/src/decide/line.rs", "use rand::Rng;\n"),
        ];
        let found = check(&files);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].path, "crates/x/src/decide/line.rs");
    }
}
