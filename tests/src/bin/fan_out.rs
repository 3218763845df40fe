//! One process in which a page fans out to many documents, and which says how much memory it took at its peak.
//!
//! Run by the test `fan_out`: the kernel's peak of a process can only be read for a process that does nothing else.
//! Prints one line of JSON: `{"idle_peak_bytes", "peak_bytes", "documents", "bytes_in_flight_peak"}`.

use std::time::Duration;

use bellwether::prelude::*;
use bytes::Bytes;
use clap::Parser;
use serde::{Deserialize, Serialize};

#[derive(Parser)]
struct Args {
    /// Address of the store.
    #[arg(long)]
    address: String,
    /// The load budget in bytes.
    #[arg(long)]
    budget_bytes: u64,
    /// Events of the page.
    #[arg(long)]
    events: u32,
    /// Documents each event goes to.
    #[arg(long)]
    documents_per_event: u32,
    /// Bytes of a document.
    #[arg(long)]
    document_bytes: usize,
}

#[derive(Debug, Clone, Event)]
enum Burst {
    Fired { first: u32, documents: u32, bytes: usize },
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Spark {
    body: Bytes,
}

impl MultiView for Spark {
    const NAME: &'static str = "sparks";
    type Event = Burst;

    fn keys(recorded: &Recorded<Burst>, keys: &mut Keys) {
        let Burst::Fired { first, documents, .. } = recorded.event;
        for number in first..first + documents {
            keys.push(format!("{number:08}"));
        }
    }

    fn apply(&mut self, key: &str, recorded: &Recorded<Burst>) -> Change {
        let Burst::Fired { bytes, .. } = recorded.event;
        self.body = random_bytes(key, bytes);
        Change::Save
    }
}

/// Bytes no compression makes smaller, the same for the same key.
fn random_bytes(key: &str, bytes: usize) -> Bytes {
    let mut state = key.bytes().fold(0x9e37_79b9_7f4a_7c15_u64, |state, byte| {
        (state ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    });
    let mut body = Vec::with_capacity(bytes + 8);
    while body.len() < bytes {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        body.extend_from_slice(&state.to_le_bytes());
    }
    body.truncate(bytes);
    Bytes::from(body)
}

/// Peak resident memory of this process so far, by the kernel.
fn peak_bytes() -> u64 {
    let status =
        std::fs::read_to_string("/proc/self/status").expect("the kernel tells a process about itself");
    let line =
        status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("the kernel tells the peak");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number of kB") * 1024
}

#[tokio::main]
async fn main() -> Result<(), bellwether::BoxError> {
    let args = Args::parse();
    let store = bellwether::open(&args.address).await?;
    let node =
        Node::builder(store.clone()).multi_view::<Spark>().budget_bytes(args.budget_bytes).start().await?;
    let tenant = store.tenant("acme")?;
    let stream = tenant.stream_of::<Burst>("bursts")?;
    // Connections are open and every path has been taken once.
    stream.append([Burst::Fired { first: 0, documents: 1, bytes: 1 }]).await?;
    node.caught_up(Duration::from_secs(60)).await?;
    let idle_peak_bytes = peak_bytes();

    let fired = (0..args.events).map(|n| Burst::Fired {
        first: 1 + n * args.documents_per_event,
        documents: args.documents_per_event,
        bytes: args.document_bytes,
    });
    stream.append(fired.collect::<Vec<_>>()).await?;
    node.caught_up(Duration::from_secs(300)).await?;
    let peak_bytes = peak_bytes();
    let bytes_in_flight_peak = node.daemon().status().counters.page_bytes_peak;

    // Read back after the peak was taken: every document, with the right content.
    let mut documents = 0u64;
    let mut after: Option<String> = None;
    loop {
        let page = tenant.list::<Spark>(after.as_deref(), 200).await?;
        let Some((last, _)) = page.last() else { break };
        after = Some(last.clone());
        for (key, spark) in &page {
            let bytes = if key == "00000000" { 1 } else { args.document_bytes };
            assert!(spark.body == random_bytes(key, bytes), "document {key} has another content");
            documents += 1;
        }
    }
    println!(
        "{}",
        serde_json::json!({
            "idle_peak_bytes": idle_peak_bytes,
            "peak_bytes": peak_bytes,
            "documents": documents - 1,
            "bytes_in_flight_peak": bytes_in_flight_peak,
        })
    );
    node.stop().await?;
    Ok(())
}
