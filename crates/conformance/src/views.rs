//! Documents of views: chunks, order, and what must never meet.

use bellwether_storage::{
    Build, DocumentSet, DocumentWrite, EVENT_BYTES_MAX, PageStart, ProgressKey, ViewNo,
};
use bytes::Bytes;

use crate::Subject;
use crate::given::{Db, delete, documents, key, owner, position, row, seq, set, tenant, view, write};

/// Commits chunks as one page that moves nothing.
async fn put(db: &Db, page: &PageStart, view: ViewNo, chunks: Vec<Vec<DocumentWrite>>) {
    let mut unit = db.begin(page).await.expect("a page");
    for chunk in chunks {
        unit.write(view, chunk).await.expect("a chunk");
    }
    unit.finish(page.from, &[]).await.expect("the page's commit");
}

async fn scene(db: &Db) -> (ViewNo, PageStart, DocumentSet) {
    let acme = tenant(db, "acme").await;
    let page = position(db, owner(), row(db, &acme, "p").await).await;
    let view = view(db, "v", 1).await;
    (view, page, set(view, page.key))
}

fn text(documents: Vec<(String, Bytes)>) -> Vec<String> {
    documents.into_iter().map(|(key, body)| format!("{key}={}", String::from_utf8_lossy(&body))).collect()
}

pub async fn a_later_chunk_overwrites_an_earlier_one(subject: &dyn Subject) {
    let db = subject.first();
    let (view, page, set) = scene(db).await;
    put(
        db,
        &page,
        view,
        vec![
            vec![write("a", "1"), write("b", "1"), write("c", "1")],
            vec![write("a", "2"), delete("b")],
            vec![write("a", "3"), write("b", "3"), delete("c"), write("d", "3")],
        ],
    )
    .await;
    assert_eq!(text(documents(subject.second(), set).await), ["a=3", "b=3", "d=3"]);
    put(db, &page, view, vec![vec![delete("a"), write("b", "longer than it was")], vec![]]).await;
    assert_eq!(text(documents(subject.second(), set).await), ["b=longer than it was", "d=3"]);
}

pub async fn deleting_what_is_not_there_is_fine(subject: &dyn Subject) {
    let db = subject.first();
    let (view, page, set) = scene(db).await;
    put(
        db,
        &page,
        view,
        vec![vec![delete("never"), write("a", "1")], vec![delete("never"), delete("a")], vec![delete("a")]],
    )
    .await;
    assert_eq!(documents(db, set).await, []);
    assert_eq!(db.load(set, &[key("a"), key("never")]).await.unwrap(), []);
}

pub async fn documents_are_listed_in_byte_order_in_pages(subject: &dyn Subject) {
    let db = subject.first();
    let (view, page, set) = scene(db).await;
    let mut names: Vec<String> = [
        "B", "a", "b", "A", "aa", "a b", "a-b", "a_b", "ä", "z", "é", "e\u{301}", "😀", "\u{ffff}", "10",
        "9", "_", "~", "É",
    ]
    .map(String::from)
    .into();
    names.extend((0..50).map(|n| format!("k{n}")));
    put(db, &page, view, vec![names.iter().map(|name| write(name, name.clone())).collect()]).await;
    names.sort_unstable();
    for limit in [1, 7, 69, 1_000] {
        let mut found = Vec::new();
        let mut after = None;
        loop {
            let part = subject.second().list(set, after.as_ref(), limit).await.unwrap();
            assert!(part.len() <= limit as usize);
            let Some(last) = part.last() else { break };
            after = Some(last.key.clone());
            found.extend(part.into_iter().map(|document| document.key.as_str().to_owned()));
        }
        assert_eq!(found, names, "pages of {limit}");
    }
    // After a key that is not there.
    let after = key("b-not-there");
    let found = db.list(set, Some(&after), 1).await.unwrap();
    assert_eq!(found[0].key.as_str(), names[names.partition_point(|name| name.as_str() <= "b-not-there")]);
    assert_eq!(db.list(set, None, 0).await.unwrap(), []);
}

pub async fn documents_of_tenants_builds_views_and_versions_are_kept_apart(subject: &dyn Subject) {
    let db = subject.first();
    let (a, b) = (tenant(db, "a").await, tenant(db, "b").await);
    let views =
        [view(db, "v", 1).await, view(db, "v", 2).await, view(db, "w", 1).await, view(db, "V", 1).await];
    let mut written = Vec::new();
    for acme in [&a, &b] {
        let first = row(db, acme, "p").await;
        for build in [Build(1), Build(2)] {
            let page = position(db, owner(), ProgressKey { build, ..first }).await;
            for view in views {
                let body = format!("{}/{}/{}", acme.id, build.0, view.0);
                put(
                    db,
                    &page,
                    view,
                    vec![vec![write("same key", body.clone()), write("other", "x")], vec![delete("other")]],
                )
                .await;
                written.push((DocumentSet { view, tenant: acme.number, build }, body));
            }
        }
    }
    for (set, body) in &written {
        assert_eq!(text(documents(subject.second(), *set).await), [format!("same key={body}")]);
    }
    // Deleting one leaves the others.
    let (gone, _) = written.remove(5);
    let page = position(
        db,
        owner(),
        ProgressKey { tenant: gone.tenant, build: gone.build, ..row(db, &a, "p").await },
    )
    .await;
    put(db, &page, gone.view, vec![vec![delete("same key")]]).await;
    assert_eq!(documents(db, gone).await, []);
    for (set, body) in &written {
        assert_eq!(text(documents(subject.second(), *set).await), [format!("same key={body}")]);
    }
}

pub async fn thousands_of_documents_go_through_one_page(subject: &dyn Subject) {
    let db = subject.first();
    let (view, page, set) = scene(db).await;
    let name = |n: usize| format!("document/{n:05}");
    let chunks = (0..12)
        .map(|chunk| (0..500).map(|n| write(&name(chunk * 500 + n), vec![chunk as u8; 200])).collect());
    put(db, &page, view, chunks.collect()).await;
    let found = documents(subject.second(), set).await;
    assert_eq!(found.len(), 6_000);
    assert!(
        found
            .iter()
            .enumerate()
            .all(|(n, (key, body))| *key == name(n) && body[..] == [(n / 500) as u8; 200])
    );
    // Read by key, with as many that are not there, in a page and outside.
    let keys: Vec<_> = (3_000..9_000).rev().map(|n| key(&name(n))).collect();
    assert_eq!(db.load(set, &keys).await.unwrap().len(), 3_000);
    let mut unit = db.begin(&page).await.unwrap();
    assert_eq!(unit.load(view, &keys).await.unwrap().len(), 3_000);
    unit.write(view, (0..6_000).map(|n| delete(&name(n))).collect()).await.unwrap();
    assert_eq!(unit.load(view, &keys).await.unwrap(), []);
    unit.finish(seq(1), &[]).await.unwrap();
    assert_eq!(documents(subject.second(), set).await, []);
}

pub async fn documents_of_every_byte_empty_and_four_mebibytes_survive(subject: &dyn Subject) {
    let db = subject.first();
    let (view, page, set) = scene(db).await;
    let every_byte = Bytes::from((0..=255u8).collect::<Vec<_>>());
    let mut state = 7u64;
    let noise = std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 56) as u8
    });
    let large = Bytes::from(noise.take(EVENT_BYTES_MAX).collect::<Vec<_>>());
    let bodies = [
        ("a-every-byte", every_byte),
        ("b-empty", Bytes::new()),
        ("c-large", large),
        ("d-nul", Bytes::from_static(b"\0")),
    ];
    let writes = bodies.iter().map(|(name, body)| write(name, body.clone())).collect();
    put(db, &page, view, vec![writes]).await;
    let found = documents(subject.second(), set).await;
    assert_eq!(found.len(), bodies.len());
    for ((found_key, found_body), (name, body)) in found.iter().zip(&bodies) {
        assert!(found_key == name && found_body == body, "{name} came back changed");
    }
}
