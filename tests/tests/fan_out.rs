//! T5: peak memory follows the budget, not the fan-out of an event.

use std::process::Command;

const BUDGET_BYTES: u64 = 16 * 1024 * 1024;
const MIB: u64 = 1024 * 1024;

/// A page that fans out to 11,000 documents of 8 KB of random bytes, in a process of its own.
fn check(address: &str, events: u32, documents_per_event: u32) {
    let output = Command::new(env!("CARGO_BIN_EXE_fan_out"))
        .args(["--address", address])
        .args(["--budget-bytes", &BUDGET_BYTES.to_string()])
        .args(["--events", &events.to_string()])
        .args(["--documents-per-event", &documents_per_event.to_string()])
        .args(["--document-bytes", "8192"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let number = |name: &str| report[name].as_u64().unwrap();
    println!("{report}");
    assert_eq!(number("documents"), u64::from(events) * u64::from(documents_per_event));
    assert!(number("bytes_in_flight_peak") <= BUDGET_BYTES, "{report}");
    let limit = (number("idle_peak_bytes") + BUDGET_BYTES + MIB) * 11 / 10;
    assert!(number("peak_bytes") <= limit, "the peak is above {limit}: {report}");
}

fn sqlite(events: u32, documents_per_event: u32) {
    let folder = tempfile::tempdir().unwrap();
    check(&format!("sqlite:{}", folder.path().join("fan.db").display()), events, documents_per_event);
}

fn postgres(events: u32, documents_per_event: u32) {
    let Some(server) = bellwether_launch::require("fan-out on PostgreSQL") else { return };
    check(&server.fresh_database().unwrap(), events, documents_per_event);
}

#[test]
fn one_event_to_11000_documents_stays_within_the_budget_on_sqlite() {
    sqlite(1, 11_000);
}

#[test]
fn eleven_events_to_1000_documents_each_stay_within_the_budget_on_sqlite() {
    sqlite(11, 1_000);
}

#[test]
fn one_event_to_11000_documents_stays_within_the_budget_on_postgres() {
    postgres(1, 11_000);
}

#[test]
fn eleven_events_to_1000_documents_each_stay_within_the_budget_on_postgres() {
    postgres(11, 1_000);
}
