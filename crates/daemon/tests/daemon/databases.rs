//! Several databases under one daemon.

use std::sync::Arc;
use std::time::Duration;

use bellwether_daemon::{Daemon, DaemonConfig};
use bellwether_memory::Memory;
use bellwether_storage::{Database, DatabaseNo};

use crate::bank::{Balance, deposited};
use crate::ground::{SOON, append, load, quick};

fn three() -> Vec<Arc<dyn Database>> {
    ["one", "two", "three"].map(|name| Arc::new(Memory::named(name)) as Arc<dyn Database>).into()
}

// T2 T5
#[tokio::test]
async fn tenants_of_several_databases_share_one_budget() {
    let databases = three();
    for (number, database) in databases.iter().enumerate() {
        for tenant in 0..3 {
            append(database.as_ref(), &format!("tenant-{number}-{tenant}"), "a-1", &vec![deposited(1); 50])
                .await;
        }
    }
    let mut config = quick();
    config.budget.events_max = 50;
    let daemon = Daemon::over(databases.clone()).config(config).view::<Balance>().start().await.unwrap();
    daemon.caught_up(SOON).await.unwrap();
    for (number, database) in databases.iter().enumerate() {
        for tenant in 0..3 {
            let balance =
                load::<Balance, _>(database.as_ref(), &format!("tenant-{number}-{tenant}"), "a-1").await;
            assert_eq!(balance, Some(Balance { cents: 50, events: 50 }));
        }
    }
    let status = daemon.status();
    assert!(status.budget.events.peak <= 50);
    let places: Vec<_> = status.agents.iter().map(|agent| agent.database).collect();
    assert_eq!(places, [0, 0, 0, 1, 1, 1, 2, 2, 2].map(DatabaseNo));
    daemon.stop().await.unwrap();
}

// T1 T8
#[tokio::test(start_paused = true)]
async fn a_database_that_hangs_does_not_starve_the_others() {
    let slow = Memory::named("slow");
    let quick_one = Memory::named("quick");
    let databases: Vec<Arc<dyn Database>> = vec![Arc::new(slow.clone()), Arc::new(quick_one.clone())];
    let daemon = Daemon::over(databases)
        .config(DaemonConfig { pages_per_database: 2, ..quick() })
        .view::<Balance>()
        .start()
        .await
        .unwrap();
    for tenant in 0..8 {
        append(&slow, &format!("slow-{tenant}"), "a-1", &[deposited(1)]).await;
    }
    slow.faults().latency(Some(Duration::from_secs(3_600)));
    append(&quick_one, "quick", "a-1", &[deposited(1)]).await;
    while load::<Balance, _>(&quick_one, "quick", "a-1").await.is_none() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert!(
        daemon.status().budget.holders.iter().filter(|holder| holder.database == DatabaseNo(0)).count() <= 2
    );
    let refused = daemon.stop().await.unwrap_err().to_string();
    assert!(refused.contains("roll back"), "{refused}");
}
