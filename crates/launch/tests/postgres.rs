//! A server starts, survives, is found again, and never stays behind.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::Path,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use bellwether_launch::{LaunchError, Lifetime, Options, Postgres, TEST_SERVER_VARIABLE, require};

fn in_folder(folder: &Path, lifetime: Lifetime) -> Postgres {
    Postgres::start(Options { data_dir: Some(folder.to_owned()), lifetime, ..Options::default() }).unwrap()
}

/// A folder that the server's user may reach.
fn open_folder() -> tempfile::TempDir {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

#[track_caller]
fn eventually(what: &str, condition: impl Fn() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what}: not within 60 s");
        thread::park_timeout(Duration::from_millis(10));
    }
}

fn uid_of(pid: u32) -> u32 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("Uid:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn a_server_answers_as_soon_as_it_is_started_and_is_gone_when_dropped() {
    if require("start of a server").is_none() {
        return;
    }
    let server = Postgres::start(Options::default()).unwrap();
    server.create_database("shop").unwrap();
    assert_eq!(server.sql("shop", "SELECT 40 + 2").unwrap(), "42");
    assert!(server.url("shop").ends_with(&format!("@127.0.0.1:{}/shop", server.port().unwrap())));
    let (pid, data_dir) = (server.pid().unwrap(), server.data_dir().unwrap().to_owned());
    assert_ne!(uid_of(pid), 0, "never as root");
    drop(server);
    assert!(!Path::new(&format!("/proc/{pid}")).exists());
    assert!(!data_dir.exists(), "the temporary folder goes with the server");
}

#[test]
fn two_servers_run_side_by_side() {
    if require("two servers at once").is_none() {
        return;
    }
    let (one, other) = thread::scope(|scope| {
        let start = || Postgres::start(Options::default()).unwrap();
        let (one, other) = (scope.spawn(start), scope.spawn(start));
        (one.join().unwrap(), other.join().unwrap())
    });
    assert_ne!(one.port(), other.port());
    one.create_database("shop").unwrap();
    assert_eq!(
        other.sql("postgres", "SELECT count(*) FROM pg_database WHERE datname = 'shop'").unwrap(),
        "0"
    );
}

#[test]
fn a_killed_server_starts_again_on_the_same_port_with_what_was_committed() {
    if require("restart after a kill").is_none() {
        return;
    }
    let server = Postgres::start(Options::default()).unwrap();
    server.sql("postgres", "CREATE TABLE kept AS SELECT 7 AS n").unwrap();
    server.sql("postgres", "CHECKPOINT").unwrap();
    let (url, pid) = (server.url("postgres"), server.pid());
    server.kill().unwrap();
    assert_eq!(server.pid(), None);
    assert!(server.sql("postgres", "SELECT 1").is_err(), "nobody listens");
    server.restart().unwrap();
    assert_eq!(server.url("postgres"), url);
    assert_ne!(server.pid(), pid);
    assert_eq!(server.sql("postgres", "SELECT n FROM kept").unwrap(), "7");
}

#[test]
fn a_detached_server_outlives_its_handle_and_is_adopted_as_it_runs() {
    if require("adopting a running server").is_none() {
        return;
    }
    let folder = open_folder();
    let data_dir = folder.path().join("data");
    let first = in_folder(&data_dir, Lifetime::Detached);
    let (pid, port) = (first.pid(), first.port());
    drop(first);
    let adopted = Postgres::adopt(&data_dir).unwrap();
    assert_eq!((adopted.pid(), adopted.port()), (pid, port));
    let started = in_folder(&data_dir, Lifetime::Detached);
    assert_eq!(started.pid(), pid, "a start takes over what runs");
    adopted.stop().unwrap();
    assert!(started.sql("postgres", "SELECT 1").is_err());
}

#[test]
fn a_detached_server_that_was_killed_is_adopted_with_its_data_settings_and_port() {
    if require("adopting a killed server").is_none() {
        return;
    }
    let folder = open_folder();
    let data_dir = folder.path().join("data");
    let options = Options {
        data_dir: Some(data_dir.clone()),
        lifetime: Lifetime::Detached,
        fsync: true,
        settings: vec![("max_connections".into(), "37".into())],
    };
    let first = Postgres::start(options).unwrap();
    first.sql("postgres", "CREATE TABLE kept AS SELECT 7 AS n").unwrap();
    let port = first.port();
    first.kill().unwrap();
    assert!(data_dir.join("postmaster.pid").exists(), "a crash leaves its mark");
    let adopted = Postgres::adopt(&data_dir).unwrap();
    assert_eq!(adopted.port(), port);
    assert_eq!(adopted.sql("postgres", "SELECT n FROM kept").unwrap(), "7");
    assert_eq!(adopted.sql("postgres", "SHOW max_connections").unwrap(), "37");
    adopted.stop().unwrap();
}

#[test]
fn a_given_folder_outlives_its_server() {
    if require("a server in a given folder").is_none() {
        return;
    }
    let folder = open_folder();
    let data_dir = folder.path().join("deep/er/data");
    let first = in_folder(&data_dir, Lifetime::WithParent);
    first.create_database("kept").unwrap();
    let pid = first.pid().unwrap();
    drop(first);
    assert!(!Path::new(&format!("/proc/{pid}")).exists());
    let second = in_folder(&data_dir, Lifetime::WithParent);
    assert_eq!(second.sql("kept", "SELECT 1").unwrap(), "1");
}

#[test]
fn the_server_of_a_killed_process_ends_and_its_folder_is_removed() {
    if require("the end of a parent").is_none() {
        return;
    }
    let mut parent = Command::new(env!("CARGO_BIN_EXE_bellwether-serve"))
        .env_remove(TEST_SERVER_VARIABLE)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // A child of ours that was started meanwhile must not keep the watchdog's pipe open.
    let mut line = String::new();
    BufReader::new(parent.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let (url, version) = line.trim().split_once(' ').unwrap();
    assert!(version.contains("PostgreSQL"), "{line}");
    let server = Postgres::at(url).unwrap();
    let data_dir = server.sql("postgres", "SHOW data_directory").unwrap();
    assert!(Path::new(&data_dir).exists());
    parent.kill().unwrap();
    parent.wait().unwrap();
    eventually("the folder is removed", || !Path::new(&data_dir).exists());
    assert!(server.sql("postgres", "SELECT 1").is_err(), "the server has stopped");
}

#[test]
fn a_server_given_by_address_is_not_stopped_or_killed() {
    let Some(shared) = require("a server given by its address") else { return };
    let given = Postgres::at(&shared.url("postgres")).unwrap();
    assert!(matches!(given.stop(), Err(LaunchError::NotOurs("stop"))));
    assert!(matches!(given.kill(), Err(LaunchError::NotOurs("kill"))));
    let (one, other) = (given.fresh_database().unwrap(), given.fresh_database().unwrap());
    assert_ne!(one, other);
}

#[test]
fn a_folder_with_other_files_is_refused_and_left_alone() {
    if require("refusing a foreign folder").is_none() {
        return;
    }
    let folder = open_folder();
    fs::write(folder.path().join("letter.txt"), "dear").unwrap();
    let options = Options { data_dir: Some(folder.path().to_owned()), ..Options::default() };
    let refused = Postgres::start(options).unwrap_err();
    assert!(matches!(refused, LaunchError::Occupied(_)), "{refused}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    assert!(matches!(Postgres::adopt(folder.path()), Err(LaunchError::NoCluster(_))));
}
