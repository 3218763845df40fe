//! Rule 1: crates depend on each other only as `docs/architecture.md` says.
//!
//! The page holds a block that opens with ```` ```arrows ````. A line reads `events -> macros storage`; one that ends
//! with `(planned)` is for a crate that is still to come. Arrows to planned crates may wait. Every other arrow must be
//! there, so that the page never tells of a dependency that is gone.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::Finding;
use crate::workspace::TextFile;

const PAGE: &str = "docs/architecture.md";
const PLANNED: &str = "(planned)";

/// Which crate depends on which others of the workspace; short names, dev-dependencies apart.
pub(super) type Arrows = BTreeMap<String, BTreeSet<String>>;

/// The arrows that `cargo metadata` shows.
pub(super) fn of_metadata(metadata: &Value) -> Arrows {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let of_package = |package: &Value| {
        let ours = |dependency: &&Value| dependency["path"].is_string() && dependency["kind"] != "dev";
        let to = list(&package["dependencies"]).iter().filter(ours).map(|to| short(&to["name"])).collect();
        (short(&package["name"]), to)
    };
    list(&metadata["packages"]).iter().map(of_package).collect()
}

fn short(name: &Value) -> String {
    let name = name.as_str().unwrap_or_default();
    name.strip_prefix("bellwether-").unwrap_or(name).to_owned()
}

struct Line {
    number: usize,
    from: String,
    to: BTreeSet<String>,
    planned: bool,
}

pub(super) fn check(files: &[TextFile], actual: &Arrows) -> Vec<Finding> {
    let Some(page) = files.iter().find(|file| file.path == PAGE) else {
        return vec![Finding {
            path: PAGE.into(),
            line: 1,
            message: "the page with the arrows is missing".into(),
        }];
    };
    let lines = parse(&page.text);
    let mut findings = Vec::new();
    let mut find = |line: usize, message: String| findings.push(Finding::new(page, line, message));
    let is_planned = |name: &String| lines.iter().any(|line| line.planned && line.from == *name);
    for name in actual.keys().filter(|name| !lines.iter().any(|line| line.from == **name)) {
        find(1, format!("the block `arrows` has no line for {name}"));
    }
    for line in &lines {
        match actual.get(&line.from) {
            None if line.planned => {}
            None => {
                find(line.number, format!("{} is no crate of the workspace; mark it {PLANNED}", line.from))
            }
            Some(_) if line.planned => find(line.number, format!("{} exists; remove {PLANNED}", line.from)),
            Some(there) => {
                for to in there.difference(&line.to) {
                    find(
                        line.number,
                        format!("{} depends on {to}, which this line does not allow", line.from),
                    );
                }
                for to in line.to.difference(there).filter(|to| !is_planned(to)) {
                    find(line.number, format!("{} does not depend on {to}; remove the arrow", line.from));
                }
            }
        }
    }
    findings
}

/// The lines of the block, with their numbers in the page.
fn parse(page: &str) -> Vec<Line> {
    let inside = page.lines().enumerate().skip_while(|(_, line)| line.trim() != "```arrows").skip(1);
    inside
        .take_while(|(_, line)| line.trim() != "```")
        .filter_map(|(index, line)| {
            let planned = line.trim_end().ends_with(PLANNED);
            let (from, to) = line.trim_end().trim_end_matches(PLANNED).split_once("->")?;
            let to = to.split_whitespace().map(str::to_owned).collect();
            Some(Line { number: index + 1, from: from.trim().to_owned(), to, planned })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::sample;

    const GOOD: &str =
        "# Page\n```arrows\nstorage ->\nevents  -> storage agents\nagents  -> storage (planned)\n```\n";

    fn messages(page: &str, actual: &[(&str, &[&str])]) -> Vec<String> {
        let set = |names: &&[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let actual = actual.iter().map(|(from, to)| ((*from).to_owned(), set(to))).collect();
        check(&[sample(PAGE, page)], &actual).into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn listed_arrows_are_fine_and_arrows_to_planned_crates_may_wait() {
        assert_eq!(messages(GOOD, &[("storage", &[]), ("events", &["storage"])]), Vec::<String>::new());
    }

    #[test]
    fn an_arrow_that_is_not_listed_is_found() {
        let found = messages(GOOD, &[("storage", &["events"]), ("events", &["storage"])]);
        assert_eq!(found, ["storage depends on events, which this line does not allow"]);
    }

    #[test]
    fn a_crate_without_a_line_is_found() {
        let found = messages(GOOD, &[("storage", &[]), ("events", &["storage"]), ("console", &[])]);
        assert_eq!(found, ["the block `arrows` has no line for console"]);
    }

    #[test]
    fn a_line_that_tells_of_something_gone_is_found() {
        let found = messages(GOOD, &[("storage", &[]), ("events", &[])]);
        assert_eq!(found, ["events does not depend on storage; remove the arrow"]);
        let found = messages(GOOD, &[("storage", &[]), ("events", &["storage"]), ("agents", &["storage"])]);
        assert_eq!(found, ["agents exists; remove (planned)"]);
        let found = messages(GOOD, &[("storage", &[])]);
        assert_eq!(found, ["events is no crate of the workspace; mark it (planned)"]);
    }

    #[test]
    fn dev_dependencies_and_foreign_crates_are_no_arrows() {
        let metadata = serde_json::json!({ "packages": [{ "name": "bellwether-events", "dependencies": [
            { "name": "bellwether-storage", "path": "/s", "kind": null },
            { "name": "bellwether-memory", "path": "/m", "kind": "dev" },
            { "name": "serde", "kind": null },
        ]}]});
        let expected = BTreeMap::from([("events".to_owned(), BTreeSet::from(["storage".to_owned()]))]);
        assert_eq!(of_metadata(&metadata), expected);
    }
}
