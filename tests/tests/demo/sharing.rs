//! Two demos at the same work at once.

use std::process::{Command, Stdio};

use crate::history::{assert_agrees, history};
use crate::process::{Run, Scene, program, report};

#[test]
fn two_demos_on_one_postgres_store_at_once_are_both_verified() {
    let Some(server) = bellwether_launch::require("two demos on one PostgreSQL store") else { return };
    let scene = Scene::new();
    let rows = history(4, 12_000);
    let input = scene.write("input.tsv", &rows);
    let url = server.fresh_database().unwrap();
    let begin = |json: &str| {
        Command::new(program())
            .args(["--store", "postgres", "--url", &url, "--tenant-depth", "2", "--input"])
            .arg(&input)
            .arg("--json")
            .arg(scene.path(json))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let demos = [("one.json", begin("one.json")), ("two.json", begin("two.json"))];
    for (json, demo) in demos {
        let run = Run::from(demo.wait_with_output().unwrap());
        assert_eq!(run.code, 0, "{run}");
        let report = report(&scene.path(json));
        assert_eq!(report["verified"], true);
        assert_agrees(&report, &rows, 2);
    }
}

#[test]
fn two_demos_on_one_data_folder_share_its_server_and_the_last_one_stops_it() {
    if bellwether_launch::require("two demos on one data folder").is_none() {
        return;
    }
    let scene = Scene::new();
    let rows = history(5, 6_000);
    let input = scene.write("input.tsv", &rows);
    let demos = ["first", "second"].map(|words| (words, scene.begin("postgres", &input, words)));
    for (words, mut demo) in demos {
        let status = demo.wait().unwrap();
        assert!(status.success(), "{words}: {}", std::fs::read_to_string(scene.path(words)).unwrap());
    }
    assert!(!scene.is_served());
    assert_agrees(&scene.verified("postgres", &input), &rows, 2);
}

#[test]
fn two_demos_on_one_sqlite_file_are_both_verified() {
    let scene = Scene::new();
    let rows = history(6, 4_000);
    let input = scene.write("input.tsv", &rows);
    let demos = ["first", "second"].map(|words| (words, scene.begin("sqlite", &input, words)));
    for (words, mut demo) in demos {
        let status = demo.wait().unwrap();
        assert!(status.success(), "{words}: {}", std::fs::read_to_string(scene.path(words)).unwrap());
    }
    assert_agrees(&scene.verified("sqlite", &input), &rows, 2);
}
