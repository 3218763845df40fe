//! Memory of a page whose output is far larger than memory should be. Alone in its process, because the kernel's figure is of
//! the whole process and never falls.

#![cfg(target_os = "linux")]

#[allow(dead_code, reason = "each test file takes what it needs")]
#[path = "server/scene.rs"]
mod scene;

use bellwether_storage::{DocumentKey, DocumentSet, DocumentWrite, Projections, Sequence, ViewName};
use bytes::Bytes;

use crate::scene::{fresh, handle, owner, row, take_over, tenant};

const DOCUMENTS: usize = 11_000;
const DOCUMENT_BYTES: usize = 8 * 1024;
/// A mebibyte of documents.
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
    let documents = (from..to).map(|n| DocumentWrite {
        key: DocumentKey::new(format!("document-{n:06}")).unwrap(),
        body: Some(Bytes::from((0..DOCUMENT_BYTES).map(|_| byte()).collect::<Vec<u8>>())),
    });
    documents.collect()
}

// T9
#[tokio::test]
async fn a_page_of_ninety_megabytes_costs_three_chunks() {
    let Some(url) = fresh("a_page_of_ninety_megabytes_costs_three_chunks").await else { return };
    let db = handle(&url).await;
    let acme = tenant(&db, "acme").await;
    let key = row(&db, &acme).await;
    let view = db.ensure_view(&ViewName::new("wide").unwrap(), 1).await.unwrap();
    let start = take_over(&db, owner(), key).await.unwrap();

    let before = peak_bytes();
    let mut unit = db.begin(&start).await.unwrap();
    for from in (0..DOCUMENTS).step_by(CHUNK) {
        unit.write(view, chunk(from, DOCUMENTS.min(from + CHUNK))).await.unwrap();
    }
    unit.finish(Sequence::new(1), &[]).await.unwrap();
    let grown = peak_bytes() - before;

    let set = DocumentSet { view, tenant: acme.number, build: key.build };
    let last = DocumentKey::new(format!("document-{:06}", DOCUMENTS - 1)).unwrap();
    assert_eq!(db.load(set, &[last]).await.unwrap().len(), 1);
    println!("{} KiB more for {} KiB written", grown / 1024, DOCUMENTS * DOCUMENT_BYTES / 1024);
    let bound = 3 * (CHUNK * DOCUMENT_BYTES) as u64;
    assert!(grown <= bound, "{grown} bytes more at the peak, expected at most {bound}");
}
