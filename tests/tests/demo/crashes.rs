//! Killed at any moment, the demo goes on where it was and repeats nothing.

use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

use bellwether_launch::Postgres;

use crate::history::{Chance, assert_agrees, history};
use crate::process::Scene;

/// Kills that must hit.
const KILLS: u32 = 10;
/// Runs that may end before their kill comes.
const MISSES_MAX: u32 = 60;
/// Between two looks at a process.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// Waits for the end of a process, `moment` at most; `true` when it ended.
fn ended_within(demo: &mut Child, moment: Duration) -> bool {
    let begun = Instant::now();
    loop {
        if demo.try_wait().unwrap().is_some() {
            return true;
        }
        let left = moment.saturating_sub(begun.elapsed());
        if left.is_zero() {
            return false;
        }
        std::thread::sleep(left.min(LOOK_EVERY));
    }
}

/// How long a run takes that nobody disturbs.
fn whole_run(store: &str, input: &Path) -> Duration {
    let undisturbed = Scene::new();
    let begun = Instant::now();
    undisturbed.verified(store, input);
    begun.elapsed()
}

fn killed_and_restarted(store: &str, seed: u64) {
    let scene = Scene::new();
    let rows = history(seed, 12_000);
    let input = scene.write("input.tsv", &rows);
    let mut moments = Chance::announced(store);
    let mut longest = whole_run(store, &input);

    let (mut kills, mut misses) = (0, 0);
    while kills < KILLS {
        let moment = Duration::from_micros(moments.below(longest.as_micros() as u64));
        let mut demo = scene.begin(store, &input, "words");
        if ended_within(&mut demo, moment) {
            misses += 1;
            assert!(misses <= MISSES_MAX, "{store}: {misses} runs ended before they were killed");
            let words = std::fs::read_to_string(scene.path("words")).unwrap();
            assert!(demo.wait().unwrap().success(), "{store}: a restarted run failed: {words}");
            // What is left to do is shorter than the whole.
            longest = longest * 3 / 4;
            continue;
        }
        demo.kill().unwrap();
        demo.wait().unwrap();
        kills += 1;
        println!("{store}: kill {kills} after {moment:?}");
    }

    let report = scene.verified(store, &input);
    assert_agrees(&report, &rows, 2);
    let check = scene.on(store, &input, &["--check"]);
    assert_eq!(check.code, 0, "{check}");
}

#[test]
fn killed_ten_times_on_sqlite_it_ends_verified_and_nothing_is_doubled() {
    killed_and_restarted("sqlite", 1);
}

#[test]
fn killed_ten_times_on_postgres_it_ends_verified_and_nothing_is_doubled() {
    if bellwether_launch::require("killing the demo on PostgreSQL").is_none() {
        return;
    }
    killed_and_restarted("postgres", 2);
}

#[test]
fn the_server_killed_ten_times_under_it_the_demo_ends_verified_and_nothing_is_doubled() {
    if bellwether_launch::require("killing PostgreSQL under the demo").is_none() {
        return;
    }
    let scene = Scene::new();
    let rows = history(3, 12_000);
    let input = scene.write("input.tsv", &rows);
    let mut moments = Chance::announced("server");
    let mut longest = whole_run("postgres", &input);

    let mut demo = scene.begin("postgres", &input, "words");
    let (mut kills, mut starts) = (0, 1);
    while kills < KILLS {
        let moment = Duration::from_micros(moments.below(longest.as_micros() as u64));
        if ended_within(&mut demo, moment) {
            // Finished, or given up: either way the next run goes on from here.
            starts += 1;
            assert!(starts <= MISSES_MAX, "{starts} runs ended before the server was killed");
            longest = longest * 3 / 4;
            demo = scene.begin("postgres", &input, "words");
            continue;
        }
        if !scene.postgres().join("PG_VERSION").exists() {
            continue;
        }
        // Takes over the one that runs.
        let Ok(server) = Postgres::adopt(scene.postgres()) else { continue };
        server.kill().unwrap();
        kills += 1;
        println!("server: kill {kills} after {moment:?}, run {starts}");
    }
    demo.wait().unwrap();

    let report = scene.verified("postgres", &input);
    assert_agrees(&report, &rows, 2);
    assert!(!scene.is_served(), "the private server is stopped by the last demo");
}
