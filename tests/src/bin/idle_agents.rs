//! One process with thousands of idle agents, and what they cost: memory here, statements in the database.
//!
//! Run by the test `idle`. Needs a PostgreSQL database with the extension `pg_stat_statements`. Prints one line of JSON:
//! `{"agents", "bytes_per_agent", "ticks", "window_seconds", "statements": [{"text", "calls"}], "found_seconds"}`.

use std::time::{Duration, Instant};

use bellwether::prelude::*;
use bellwether_storage::{Database, Statement, TenantId};
use clap::Parser;
use serde::{Deserialize, Serialize};

#[derive(Parser)]
struct Args {
    /// Address of the database.
    #[arg(long)]
    address: String,
    /// Tenants; each gets four agents.
    #[arg(long)]
    tenants: u32,
    /// How long statements are counted once the ticks have adapted.
    #[arg(long)]
    window_seconds: u64,
}

#[derive(Debug, Clone, Event)]
enum Noise {
    Heard { words: u64 },
}

macro_rules! counting_view {
    ($name:ident, $label:literal) => {
        #[derive(Debug, Default, Serialize, Deserialize)]
        struct $name {
            words: u64,
        }

        impl View for $name {
            const NAME: &'static str = $label;
            type Event = Noise;

            fn apply(&mut self, recorded: &Recorded<Noise>) -> Change {
                let Noise::Heard { words } = recorded.event;
                self.words += words;
                Change::Save
            }
        }
    };
}

counting_view!(First, "first");
counting_view!(Second, "second");
counting_view!(Third, "third");
counting_view!(Fourth, "fourth");

fn resident_bytes() -> u64 {
    let status =
        std::fs::read_to_string("/proc/self/status").expect("the kernel tells a process about itself");
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .expect("the kernel tells the resident size");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number of kB") * 1024
}

async fn statements(database: &dyn Database) -> Result<Vec<(String, i64)>, bellwether::BoxError> {
    let rows = database
        .query(&Statement::new(
            "SELECT s.query, s.calls FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid
             WHERE d.datname = current_database() AND s.query NOT LIKE '%pg_stat_statements%' ORDER BY s.calls DESC",
        ))
        .await?;
    rows.iter().map(|row| Ok((row.text(0)?.to_owned(), row.int(1)?))).collect()
}

/// An append through another store, as another process would make it, reaches the idle agents of its tenant. Returns how long
/// that took.
async fn appended_elsewhere_is_found(address: &str, node: &Node) -> Result<f64, bellwether::BoxError> {
    let elsewhere = bellwether::open(address).await?;
    let tenant = elsewhere.tenant("tenant-00007")?;
    tenant.stream_of::<Noise>("street")?.append([Noise::Heard { words: 3 }]).await?;
    let began = Instant::now();
    loop {
        let agents = node.daemon().status().agents;
        let mut theirs = agents.iter().filter(|agent| agent.tenant == *tenant.id());
        if theirs.all(|agent| agent.progress == Some(Sequence::new(1))) {
            elsewhere.close().await;
            return Ok(began.elapsed().as_secs_f64());
        }
        if began.elapsed() > Duration::from_secs(60) {
            return Err("an append of another process was not found within a minute".into());
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<(), bellwether::BoxError> {
    let args = Args::parse();
    let store = bellwether::open(&args.address).await?;
    let database = &store.databases()[0];
    for number in 0..args.tenants {
        database.ensure_tenant(&TenantId::new(format!("tenant-{number:05}"))?).await?;
    }
    let before = resident_bytes();
    let node = Node::builder(store.clone())
        .view::<First>()
        .view::<Second>()
        .view::<Third>()
        .view::<Fourth>()
        .start()
        .await?;
    node.caught_up(Duration::from_secs(60)).await?;
    let agents = node.daemon().status().agents.len() as u64;
    let bytes_per_agent = resident_bytes().saturating_sub(before) / agents.max(1);

    // The ticks double from 250 ms to 10 s: less than 21 s until they stay there.
    tokio::time::sleep(Duration::from_secs(25)).await;
    database
        .query(&Statement::new("SELECT 1::bigint FROM (SELECT pg_stat_statements_reset()) AS reset"))
        .await?;
    let ticks_before = node.daemon().status().counters.polls;
    let began = Instant::now();
    tokio::time::sleep(Duration::from_secs(args.window_seconds)).await;
    let ticks = node.daemon().status().counters.polls - ticks_before;
    let seen = statements(database.as_ref()).await?;
    let found_seconds = appended_elsewhere_is_found(&args.address, &node).await?;
    println!(
        "{}",
        serde_json::json!({
            "agents": agents,
            "bytes_per_agent": bytes_per_agent,
            "ticks": ticks,
            "window_seconds": began.elapsed().as_secs_f64(),
            "statements": seen.iter().map(|(text, calls)| serde_json::json!({"text": text, "calls": calls})).collect::<Vec<_>>(),
            "found_seconds": found_seconds,
        })
    );
    node.stop().await?;
    Ok(())
}
