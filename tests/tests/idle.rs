//! T3: an idle agent costs memory in bytes and no statement.

use std::process::Command;

#[test]
fn idle_agents_cost_two_statements_a_tick_and_two_kilobytes_each() {
    let Some(server) = bellwether_launch::require("what idle agents cost") else { return };
    let address = server.fresh_database().unwrap();
    let name = address.rsplit('/').next().unwrap();
    server.sql(name, "CREATE EXTENSION pg_stat_statements").unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_idle_agents"))
        .args(["--address", &address, "--tenants", "2100", "--window-seconds", "65"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    println!("{report}");

    assert_eq!(report["agents"], 2_100 * 4);
    assert!(report["bytes_per_agent"].as_u64().unwrap() <= 2_048, "{report}");

    let seconds = report["window_seconds"].as_f64().unwrap();
    let ticks = report["ticks"].as_i64().unwrap();
    // Every 10 s, less the jitter; rarer still while the server says that nothing changed, but once a minute whatever it says.
    assert!(ticks >= 1, "no heads were read, so nothing was counted: {report}");
    assert!(ticks as f64 <= seconds / 10.0 * 1.2 + 1.0, "{report}");

    let (mut sieve, mut others) = (0, 0);
    for statement in report["statements"].as_array().unwrap() {
        let calls = statement["calls"].as_i64().unwrap();
        match statement["text"].as_str().unwrap().contains("pg_stat_database") {
            true => sieve += calls,
            false => others += calls,
        }
    }
    assert!(others <= 2 * ticks, "{others} statements in {ticks} ticks: {report}");
    // And yet nothing is asleep: what another process appends is found by the next read at the latest.
    assert!(report["found_seconds"].as_f64().unwrap() <= 15.0, "{report}");
    assert!(sieve as f64 <= seconds + 2.0, "{sieve} reads of pg_stat_database in {seconds} s: {report}");
}
