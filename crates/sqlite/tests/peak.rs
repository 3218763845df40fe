//! Memory of a page whose output is far larger than memory should be. Alone in its process, because the kernel's figure is of
//! the whole process and never falls.

#![cfg(target_os = "linux")]

use bellwether_sqlite::Sqlite;
use bellwether_storage::{
    Build, DocumentKey, DocumentSet, DocumentWrite, FenceClaim, FenceOutcome, FenceRequest, Owner, PageStart,
    ProgressKey, ProjectionName, Projections, Sequence, TenantId, Tenants, ViewName,
};
use bytes::Bytes;
use uuid::Uuid;

const DOCUMENTS: usize = 11_000;
const DOCUMENT_BYTES: usize = 8 * 1024;
const CHUNK: usize = 128;

/// The kernel's high-water mark of this process.
fn peak_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

fn chunk(from: usize, to: usize) -> Vec<DocumentWrite> {
    // Noise, so that nothing along the way can make it smaller.
    let mut state = from as u64 | 1;
    let mut byte = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    (from..to)
        .map(|n| DocumentWrite {
            key: DocumentKey::new(format!("document-{n:06}")).unwrap(),
            body: Some(Bytes::from((0..DOCUMENT_BYTES).map(|_| byte()).collect::<Vec<u8>>())),
        })
        .collect()
}

// T9
#[tokio::test]
async fn a_page_of_ninety_megabytes_costs_the_cache_and_a_few_chunks() {
    let folder = tempfile::tempdir().unwrap();
    let store = Sqlite::open(folder.path().join("store.db")).await.unwrap();
    let tenant = store.ensure_tenant(&TenantId::new("acme").unwrap()).await.unwrap();
    let projection = store.ensure_projection(&ProjectionName::new("wide").unwrap()).await.unwrap();
    let view = store.ensure_view(&ViewName::new("wide").unwrap(), 1).await.unwrap();
    let key = ProgressKey { tenant: tenant.number, projection, version: 1, build: Build::FIRST };
    let owner = Owner(Uuid::now_v7());
    let claim = FenceRequest { key, claim: FenceClaim::TakeOver { seen: None } };
    let outcome = store.fence(owner, &[claim]).await.unwrap().remove(0);
    let FenceOutcome::Positioned(progress) = outcome else { panic!("{outcome:?}") };
    let start = PageStart { key, from: Sequence::ZERO, generation: progress.generation, owner };

    let before = peak_bytes();
    let mut unit = store.begin(&start).await.unwrap();
    for from in (0..DOCUMENTS).step_by(CHUNK) {
        unit.write(view, chunk(from, DOCUMENTS.min(from + CHUNK))).await.unwrap();
    }
    unit.finish(Sequence::new(1), &[]).await.unwrap();
    let grown = peak_bytes() - before;

    let set = DocumentSet { view, tenant: tenant.number, build: key.build };
    let last = DocumentKey::new(format!("document-{:06}", DOCUMENTS - 1)).unwrap();
    assert_eq!(store.load(set, &[last]).await.unwrap().len(), 1);
    println!("{} KiB more for {} KiB written", grown / 1024, DOCUMENTS * DOCUMENT_BYTES / 1024);
    let bound = 12 * 1024 * 1024;
    assert!(grown <= bound, "{grown} bytes more at the peak, expected at most {bound}");
}
