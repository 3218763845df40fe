//! What an idle agent costs: 2,100 tenants and 4 projections, in a process of its own.

use std::sync::Arc;
use std::time::Duration;

use bellwether_daemon::{Change, Daemon, View};
use bellwether_events::{Event, Recorded};
use bellwether_memory::Memory;
use bellwether_storage::{
    AppendBatch, Encoding, EventLog, EventType, NewEvent, StreamId, TenantAppend, TenantId, Version,
};
use bellwether_storage::{Database, Place, Sequence, Tenants};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
enum Ping {
    Pinged { number: u64 },
}

macro_rules! views {
    ($($name:ident),*) => {
        $(#[derive(Default, Serialize, Deserialize)]
        struct $name(u64);

        impl View for $name {
            const NAME: &'static str = stringify!($name);
            type Event = Ping;

            fn apply(&mut self, event: &Recorded<Ping>) -> Change {
                let Ping::Pinged { number } = event.event;
                self.0 += number;
                Change::Save
            }
        })*
    };
}

views!(One, Two, Three, Four);

const TENANTS: u64 = 2_100;

/// Resident bytes of this process.
fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kib| kib * 1024)
}

async fn ping(memory: &Memory, tenant: u64) {
    let tenant = memory.ensure_tenant(&TenantId::new(format!("tenant-{tenant}")).unwrap()).await.unwrap();
    let event = NewEvent {
        stream: StreamId::new("s").unwrap(),
        version: Version::new(1),
        id: uuid::Uuid::now_v7(),
        event_type: EventType::new("Pinged").unwrap(),
        encoding: Encoding::MessagePack,
        body: Ping::Pinged { number: 1 }.encode(Encoding::MessagePack).unwrap().into(),
        headers: Default::default(),
    };
    let tenants = vec![TenantAppend {
        tenant: tenant.number,
        expected_head: Sequence::ZERO,
        place: Place::default(),
        events: vec![event],
    }];
    memory.append(&AppendBatch { tenants, ..AppendBatch::default() }).await.unwrap();
}

// T3
#[tokio::test]
async fn an_idle_agent_costs_at_most_two_kilobytes_and_no_statement() {
    let memory = Memory::new();
    for tenant in 0..TENANTS {
        ping(&memory, tenant).await;
    }
    let before = resident();
    let databases: Vec<Arc<dyn Database>> = vec![Arc::new(memory.clone())];
    let daemon = Daemon::over(databases)
        .view::<One>()
        .view::<Two>()
        .view::<Three>()
        .view::<Four>()
        .start()
        .await
        .unwrap();
    daemon.caught_up(Duration::from_secs(60)).await.unwrap();
    let after = resident();
    assert_eq!(daemon.status().agents.len() as u64, TENANTS * 4);
    assert_eq!(daemon.status().counters.pages, TENANTS * 4);
    // What `memory` stores of their documents and progress is counted too.
    if let (Some(before), Some(after)) = (before, after) {
        let each = after.saturating_sub(before) / (TENANTS * 4);
        println!("{each} bytes per agent");
        assert!(each <= 2_048, "{each} bytes per agent");
    }
    daemon.stop().await.unwrap();
}
