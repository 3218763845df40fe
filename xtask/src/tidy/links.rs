//! Rule 5: links in documents lead to files and headings that exist.

use super::Finding;
use crate::workspace::TextFile;

/// `exists` tells whether a path, relative to the root, is there.
pub(super) fn check(files: &[TextFile], exists: impl Fn(&str) -> bool) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| file.is("md")) {
        for (line, target) in links(&file.text) {
            if let Some(problem) = problem(files, file, target, &exists) {
                findings.push(Finding::new(file, line, problem));
            }
        }
    }
    findings
}

fn problem(
    files: &[TextFile],
    file: &TextFile,
    target: &str,
    exists: &impl Fn(&str) -> bool,
) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (path, anchor) = target.split_once('#').map_or((target, None), |(path, anchor)| (path, Some(anchor)));
    let Some(path) = resolve(&file.path, path) else {
        return Some(format!("{target} leads out of the project"));
    };
    if !exists(&path) {
        return Some(format!("{target} leads nowhere; there is no {path}"));
    }
    let page = files.iter().find(|other| other.path == path && other.is("md"))?;
    let anchor = anchor?;
    (!headings(&page.text).any(|heading| heading == anchor))
        .then(|| format!("{path} has no heading #{anchor}"))
}

/// The path that a link in `from` means; an empty one means `from` itself.
fn resolve(from: &str, link: &str) -> Option<String> {
    if link.is_empty() {
        return Some(from.to_owned());
    }
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

/// The lines outside of code blocks, numbered from 1.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut inside_code = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        let fence = line.trim_start().starts_with("```");
        inside_code ^= fence;
        (!fence && !inside_code).then_some((index + 1, line))
    })
}

/// The targets of `[text](target)`, outside of code.
fn links(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    for (number, line) in prose(text) {
        // Every second part between backticks is code.
        for part in line.split('`').step_by(2) {
            let targets = part.split("](").skip(1).filter_map(|rest| rest.split(')').next());
            found.extend(targets.map(|target| (number, target.trim())));
        }
        // A link whose text is code has its target right behind the closing backtick.
        for part in line.split("`](").skip(1) {
            found.extend(part.split(')').next().map(|target| (number, target.trim())));
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// The anchors of a page's headings: lower case, blanks become `-`, other marks go.
fn headings(text: &str) -> impl Iterator<Item = String> {
    prose(text).filter(|(_, line)| line.starts_with('#')).map(|(_, line)| {
        let title = line.trim_start_matches('#').trim().to_lowercase();
        let kept = title.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::sample;

    fn messages(text: &str) -> Vec<String> {
        let files = [sample("docs/a.md", text), sample("docs/b.md", "# The budget: in bytes\n")];
        let there = |path: &str| ["docs/a.md", "docs/b.md", "crates/x"].contains(&path);
        check(&files, there).into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn links_that_lead_somewhere_are_fine() {
        let text = "[b](b.md) [h](b.md#the-budget-in-bytes) [`x`](../crates/x) [web](https://example.org) [a](#top)\n\n# Top\n";
        assert_eq!(messages(text), Vec::<String>::new());
        assert_eq!(messages("`[no](link.md)`\n```\n[no](link.md)\n```\n"), Vec::<String>::new());
    }

    #[test]
    fn links_that_lead_nowhere_are_found() {
        assert_eq!(messages("[c](c.md)"), ["c.md leads nowhere; there is no docs/c.md"]);
        assert_eq!(messages("[`c`](c.md)"), ["c.md leads nowhere; there is no docs/c.md"]);
        assert_eq!(messages("[h](b.md#nope)"), ["docs/b.md has no heading #nope"]);
        assert_eq!(messages("[out](../../etc/x)"), ["../../etc/x leads out of the project"]);
    }
}
