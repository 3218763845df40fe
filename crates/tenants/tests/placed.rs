//! T2: tenants over several databases by explicit placement.

use std::sync::Arc;

use bellwether_memory::Memory;
use bellwether_storage::{DatabaseNo, Directory, ErrorKind, TenantId, Tenants};
use bellwether_tenants::{Placed, Rule};

fn tenant(name: &str) -> TenantId {
    TenantId::new(name).unwrap()
}

fn fleet(count: usize) -> (Vec<Memory>, Placed) {
    let databases: Vec<Memory> = (0..count).map(|_| Memory::new()).collect();
    let placed = Placed::new(databases.iter().map(|d| Arc::new(d.clone()) as _).collect(), Rule::Explicit);
    (databases, placed)
}

#[tokio::test]
async fn a_single_database_creates_unknown_tenants() {
    let directory = Placed::new(vec![Arc::new(Memory::new())], Rule::Single);
    let first = directory.locate(&tenant("acme")).await.unwrap();
    assert_eq!(directory.locate(&tenant("acme")).await.unwrap(), first);
    assert_eq!(directory.list().await.unwrap(), [(tenant("acme"), first)]);
}

#[tokio::test]
async fn an_unplaced_tenant_is_refused_and_not_created() {
    let (databases, directory) = fleet(2);
    assert_eq!(directory.locate(&tenant("acme")).await.unwrap_err().kind(), ErrorKind::Rejected);
    for database in &databases {
        assert_eq!(database.find_tenant(&tenant("acme")).await.unwrap(), None);
    }
}

#[tokio::test]
async fn a_placed_tenant_stays_where_it_is() {
    let (_databases, directory) = fleet(3);
    let there = directory.place(&tenant("acme"), DatabaseNo(2)).await.unwrap();
    assert_eq!(directory.place(&tenant("acme"), DatabaseNo(2)).await.unwrap(), there);
    assert_eq!(
        directory.place(&tenant("acme"), DatabaseNo(0)).await.unwrap_err().kind(),
        ErrorKind::Conflict
    );
    assert_eq!(
        directory.place(&tenant("globex"), DatabaseNo(3)).await.unwrap_err().kind(),
        ErrorKind::Rejected
    );
    assert_eq!(directory.locate(&tenant("acme")).await.unwrap(), there);
}

#[tokio::test]
async fn a_tenant_placed_by_another_process_is_found() {
    let (databases, directory) = fleet(3);
    databases[1].ensure_tenant(&tenant("acme")).await.unwrap();
    assert_eq!(directory.locate(&tenant("acme")).await.unwrap().database, DatabaseNo(1));
}

#[tokio::test]
async fn a_tenant_in_two_databases_is_corrupt() {
    let (databases, directory) = fleet(2);
    for database in &databases {
        database.ensure_tenant(&tenant("acme")).await.unwrap();
    }
    assert_eq!(directory.locate(&tenant("acme")).await.unwrap_err().kind(), ErrorKind::Corrupt);
    assert_eq!(directory.list().await.unwrap_err().kind(), ErrorKind::Corrupt);
}

#[tokio::test]
async fn listing_pages_through_large_registers() {
    let (databases, directory) = fleet(2);
    for n in 0..2_100 {
        databases[n % 2].ensure_tenant(&tenant(&format!("t-{n:04}"))).await.unwrap();
    }
    let all = directory.list().await.unwrap();
    assert_eq!(all.len(), 2_100);
    assert!(all.windows(2).all(|pair| pair[0].0 < pair[1].0));
}
