//! Histories in all forms, and bad rows.

use std::io::Write;
use std::path::Path;
use std::process::Command;

use crate::history::{HEADER, assert_agrees, history};
use crate::process::{Scene, report, text};

#[test]
fn every_store_gives_the_figures_of_the_history_in_the_form_that_was_asked_for() {
    let scene = Scene::new();
    let rows = history(9, 2_000);
    let input = scene.write("input.tsv", &rows);
    let json = scene.path("report.json");
    for store in ["memory", "sqlite", "postgres"] {
        if store == "postgres" && bellwether_launch::require("the demo on PostgreSQL").is_none() {
            continue;
        }
        let budget = ["--budget-bytes", "1048576", "--budget-events", "2000"];
        let places = ["--input", input.to_str().unwrap(), "--json", json.to_str().unwrap()];
        let run =
            scene.demo(["--store", store, "--tenant-depth", "2"].into_iter().chain(budget).chain(places));
        assert_eq!(run.code, 0, "{store}: {run}");
        let report = report(&json);
        assert_eq!(report["store"], store);
        assert_agrees(&report, &rows, 2);
        let mut keys: Vec<&str> = report.as_object().unwrap().keys().map(String::as_str).collect();
        keys.sort_unstable();
        assert_eq!(keys, ["events", "peak_rss_bytes", "seconds", "store", "tenants", "verified"]);
        assert!(report["seconds"]["import"].as_f64().unwrap() > 0.0);
        assert!(report["seconds"]["catch_up"].as_f64().unwrap() > 0.0);
        assert_eq!(report["seconds"].as_object().unwrap().len(), 2);
        let peak = report["peak_rss_bytes"].as_u64().unwrap();
        assert!((1 << 20..150_000_000).contains(&peak), "{store}: {peak} bytes");
    }
}

#[test]
fn without_flags_it_runs_the_history_it_carries() {
    let run = Scene::new().demo::<&str>([]);
    assert_eq!(run.code, 0, "{run}");
    assert!(run.out.contains("verified: 3671 events"), "{run}");
}

#[test]
fn bad_rows_are_named_by_line_and_reason_and_the_rest_goes_in() {
    let scene = Scene::new();
    let good = history(10, 100);
    let mut lines: Vec<&str> = good.lines().collect();
    let long = format!("c\t1\ta\t1\t1\t{}", "x".repeat(600));
    lines.insert(90, "c\t1\ta\t1\t1\t");
    lines.insert(60, &long);
    lines.insert(30, "c\tyesterday\ta\t1\t1\tlib/a");
    lines.insert(30, "c\t1\ta\tmany\t1\tlib/a");
    lines.insert(1, "only one column");
    let mut bytes = lines.join("\n").into_bytes();
    bytes.extend(b"\nc\t1\ta\t1\t1\tlib/\xff\n");
    let input = scene.write("input.tsv", bytes);
    let json = scene.path("report.json");
    let run = scene.on("sqlite", &input, &["--json", json.to_str().unwrap()]);
    assert_eq!(run.code, 3, "{run}");
    for named in [
        "line 2: 1 columns",
        "line 32: added \"many\"",
        "line 33: unix_time \"yesterday\"",
        "line 64: path has 600 bytes",
        "line 95: path is empty",
        "line 107: not UTF-8",
    ] {
        assert!(run.errors.contains(named), "{named} is missing: {run}");
    }
    let report = report(&json);
    assert_eq!(report["verified"], true);
    assert_agrees(&report, &good, 2);
}

#[test]
fn a_compressed_history_is_the_same_history() {
    let scene = Scene::new();
    let rows = history(11, 500);
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packed.write_all(rows.as_bytes()).unwrap();
    let packed = scene.write("input.tsv.gz", packed.finish().unwrap());
    let plain = scene.write("input.tsv", &rows);
    assert_agrees(&scene.verified("sqlite", &packed), &rows, 2);
    let check = scene.on("sqlite", &plain, &["--check"]);
    assert_eq!(check.code, 0, "{check}");
}

#[test]
fn what_is_no_history_is_refused() {
    let scene = Scene::new();
    for (content, word) in [("", "empty"), ("when\twho\n", "first line"), ("\u{1f}\u{8b}", "first line")] {
        let input = scene.write("input.tsv", content);
        let run = scene.on("sqlite", &input, &[]);
        assert_eq!(run.code, 2, "{run}");
        assert!(run.errors.contains(word), "{run}");
    }
    let run = scene.on("sqlite", &scene.path("nowhere.tsv"), &[]);
    assert_eq!(run.code, 2, "{run}");
    assert!(run.errors.contains("nowhere.tsv"), "{run}");
    assert!(!scene.data().exists(), "refused before anything is made");
}

#[test]
fn a_git_repository_gives_the_history_that_git_tells_whatever_its_files_are_called() {
    let scene = Scene::new();
    let repository = scene.path("repository");
    std::fs::create_dir(&repository).unwrap();
    git(&repository, &["init", "--quiet"]);
    let odd = [
        "plain.txt",
        "a b/c \"quoted\".rs",
        "ünï/日本/emoji 😀.md",
        "-dash/--flag",
        "back\\slash/x",
        " lead/ trail ",
    ];
    for (round, author) in ["Ann \"the\" One", "Бо"].into_iter().enumerate() {
        for (no, name) in odd.iter().enumerate().skip(round) {
            write_line(&repository.join(name), &format!("line {round} {no}\n"));
        }
        std::fs::write(repository.join("picture.bin"), [0, 1, 2, round as u8]).unwrap();
        commit(&repository, author);
    }
    git(&repository, &["mv", "plain.txt", "renamed.txt"]);
    commit(&repository, "Ann \"the\" One");

    // The same history by hand.
    let mut rows = HEADER.to_owned();
    let mut row =
        |author: &str, lines: &str, name: &str| rows += &format!("c\t1\t{author}\t{lines}\t{name}\n");
    for (round, author) in ["Ann \"the\" One", "Бо"].into_iter().enumerate() {
        odd.iter().skip(round).for_each(|name| row(author, "1\t0", name));
        row(author, "-\t-", "picture.bin");
    }
    row("Ann \"the\" One", "0\t1", "plain.txt");
    row("Ann \"the\" One", "1\t0", "renamed.txt");

    let json = scene.path("report.json");
    let data = scene.data();
    let places = ["--json", json.to_str().unwrap(), "--data", data.to_str().unwrap()];
    let run = scene.demo(["--git", repository.to_str().unwrap()].into_iter().chain(places));
    assert_eq!(run.code, 0, "{run}");
    assert_agrees(&report(&json), &rows, 1);

    // A name that no stream can have is a bad row; and the repository is now another input.
    std::fs::write(repository.join("tab\there"), "x\n").unwrap();
    commit(&repository, "Ann");
    let run = scene.demo(["--git", repository.to_str().unwrap(), "--store", "memory"]);
    assert_eq!(run.code, 3, "{run}");
    assert!(run.errors.contains("control character"), "{run}");
}

fn write_line(path: &Path, line: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
    file.write_all(line.as_bytes()).unwrap();
}

fn commit(repository: &Path, author: &str) {
    git(repository, &["add", "--all"]);
    let name = format!("user.name={author}");
    git(
        repository,
        &["-c", &name, "-c", "user.email=a@example.org", "commit", "--quiet", "--message", "more"],
    );
}

fn git(repository: &Path, arguments: &[&str]) {
    let output = Command::new("git").arg("-C").arg(repository).args(arguments).output().unwrap();
    assert!(output.status.success(), "git {arguments:?}: {}", text(&output.stderr));
}
