//! Pages of a tenant: one snapshot, bounded in events and bytes, never past a bound, never over a hole.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bellwether_storage::{ErrorKind, EventType, Page, PageQuery, Sequence};

use crate::Subject;
use crate::given::{Db, Patience, append, event, events, everything, kind, log, seq, tenant, typed};

fn sequences(page: &Page) -> Vec<u64> {
    page.events.iter().map(|event| event.sequence.get()).collect()
}

/// Checks what holds for every page, whatever a store chose.
fn check(query: &PageQuery<'_>, page: &Page) {
    let last = query.up_to.map_or(page.head, |up_to| up_to.min(page.head)).max(query.after);
    assert!(query.after <= page.through && page.through <= last, "{query:?} went through {:?}", page.through);
    assert!(page.events.len() <= query.events_max as usize);
    assert!(page.events.iter().map(|event| event.size() as u64).sum::<u64>() <= query.bytes_max);
    assert!(page.events.windows(2).all(|pair| pair[0].sequence < pair[1].sequence));
    for event in &page.events {
        assert!(
            query.after < event.sequence && event.sequence <= page.through,
            "{query:?} gave {}",
            event.sequence
        );
        assert!(query.types.is_none_or(|types| types.contains(&event.event_type)));
    }
    if let Some((sequence, size)) = page.too_large {
        assert!(
            page.events.is_empty() && size > query.bytes_max && page.through < sequence && sequence <= last
        );
    } else {
        assert!(page.through > query.after || last == query.after, "{query:?} made no progress");
    }
}

async fn read(db: &Db, query: &PageQuery<'_>) -> Page {
    let page = db.read_page(query).await.expect("a page");
    check(query, &page);
    page
}

/// Walks from page to page to the end and returns all sequences.
async fn walk(db: &Db, mut query: PageQuery<'_>) -> Vec<u64> {
    let mut all = Vec::new();
    loop {
        let page = read(db, &query).await;
        assert_eq!(page.too_large, None);
        all.extend(sequences(&page));
        let last = query.up_to.map_or(page.head, |up_to| up_to.min(page.head));
        if page.through >= last {
            return all;
        }
        query.after = page.through;
    }
}

pub async fn pages_go_on_where_the_last_one_ended(subject: &dyn Subject) {
    let db = subject.first();
    let acme = tenant(db, "acme").await;
    append(db, &acme, 0, events("s", 1, 100)).await;
    for events_max in [1, 7, 99, 100, 101, u32::MAX] {
        let query = PageQuery { events_max, ..everything(acme.number, 0) };
        let page = read(subject.second(), &query).await;
        assert_eq!(page.events.len(), 100.min(events_max as usize), "a page is as full as it may be");
        assert_eq!((page.through.get() as usize, page.head), (page.events.len(), seq(100)));
        assert_eq!(walk(db, query).await, (1..=100).collect::<Vec<_>>());
    }
}

pub async fn a_page_stops_before_the_byte_that_is_too_much(subject: &dyn Subject) {
    let db = subject.first();
    let acme = tenant(db, "acme").await;
    let sent: Vec<_> = (1..=20u64).map(|n| typed("s", n, "Sized", vec![0xc0u8; 100 * n as usize])).collect();
    let sizes: Vec<u64> = sent.iter().map(|event| event.size() as u64).collect();
    append(db, &acme, 0, sent).await;
    for fit in 1..=20usize {
        let exactly: u64 = sizes[..fit].iter().sum();
        for (bytes_max, expected) in [(exactly, fit), (exactly - 1, fit - 1), (exactly + 1, fit)] {
            let query = PageQuery { bytes_max, ..everything(acme.number, 0) };
            let page = read(db, &query).await;
            assert_eq!(page.events.len(), expected, "{bytes_max} bytes hold {expected} events");
            assert_eq!(page.through.get(), expected as u64);
        }
    }
    // A bound that holds any one of them is enough to get to the end.
    let query = PageQuery { bytes_max: sizes[19], ..everything(acme.number, 0) };
    assert_eq!(walk(db, query).await, (1..=20).collect::<Vec<_>>());
}

pub async fn an_event_larger_than_the_page_is_named_with_its_size(subject: &dyn Subject) {
    let db = subject.first();
    let acme = tenant(db, "acme").await;
    let sent = vec![event("s", 1), typed("s", 2, "Large", vec![0u8; 50_000]), event("s", 3)];
    let (small, large) = (sent[0].size() as u64, sent[1].size() as u64);
    append(db, &acme, 0, sent).await;
    // Behind a small one, the page just ends before it.
    let page = read(db, &PageQuery { bytes_max: large - 1, ..everything(acme.number, 0) }).await;
    assert_eq!((sequences(&page), page.too_large), (vec![1], None));
    for bytes_max in [0, 1, large - 1] {
        let page = read(db, &PageQuery { bytes_max, ..everything(acme.number, 1) }).await;
        assert_eq!((sequences(&page), page.too_large, page.through), (vec![], Some((seq(2), large)), seq(1)));
        assert_eq!(page.head, seq(3));
    }
    let page = read(db, &PageQuery { bytes_max: large, ..everything(acme.number, 1) }).await;
    assert_eq!((sequences(&page), page.too_large), (vec![2], None));
    // Of the first event asked for, not of one that is passed over.
    let types = [EventType::new("Happened").unwrap()];
    let query = PageQuery { bytes_max: small, types: Some(&types), ..everything(acme.number, 1) };
    assert_eq!(walk(db, query).await, [3]);
    let types = [EventType::new("Large").unwrap()];
    let page =
        read(db, &PageQuery { bytes_max: small, types: Some(&types), ..everything(acme.number, 0) }).await;
    assert_eq!((sequences(&page), page.too_large), (vec![], Some((seq(2), large))));
}

pub async fn a_page_never_reads_past_its_bound(subject: &dyn Subject) {
    let db = subject.first();
    let acme = tenant(db, "acme").await;
    append(db, &acme, 0, events("s", 1, 10)).await;
    for (after, up_to, expected) in [
        (0, 4, vec![1, 2, 3, 4]),
        (3, 4, vec![4]),
        (4, 4, vec![]),
        (7, 4, vec![]),
        (0, 0, vec![]),
        (8, 10, vec![9, 10]),
        (8, 1_000, vec![9, 10]),
    ] {
        let query = PageQuery { up_to: Some(seq(up_to)), ..everything(acme.number, after) };
        let page = read(db, &query).await;
        assert_eq!((sequences(&page), page.head), (expected.clone(), seq(10)), "after {after} up to {up_to}");
        assert_eq!(
            page.through.get(),
            expected.last().copied().unwrap_or(after),
            "after {after} up to {up_to}"
        );
        let none = [EventType::new("Nothing").unwrap()];
        assert_eq!(walk(db, PageQuery { types: Some(&none), ..query }).await, []);
    }
}

pub async fn a_page_never_reads_past_the_head(subject: &dyn Subject) {
    let db = subject.first();
    let acme = tenant(db, "acme").await;
    for count in [0u64, 3] {
        if count > 0 {
            append(db, &acme, 0, events("s", 1, count)).await;
        }
        for after in [count, count + 1, 1 << 40, Sequence::MAX.get()] {
            let page = read(db, &everything(acme.number, after)).await;
            assert_eq!(
                (page.head, page.through, page.events.len()),
                (seq(count), seq(after), 0),
                "after {after}"
            );
            let bounded = PageQuery { up_to: Some(Sequence::MAX), ..everything(acme.number, after) };
            assert_eq!(read(db, &bounded).await.through, seq(after));
        }
    }
}

pub async fn only_the_types_asked_for_are_loaded(subject: &dyn Subject) {
    let db = subject.first();
    let acme = tenant(db, "acme").await;
    let name = |n: u64| {
        ["Even", "Third", "Rest"][if n.is_multiple_of(2) { 0 } else { usize::from(!n.is_multiple_of(3)) + 1 }]
    };
    let sent = (1..=60).map(|n| typed("s", n, name(n), vec![n as u8])).collect();
    append(db, &acme, 0, sent).await;
    let of = |names: &[&str]| (1..=60).filter(|n| names.contains(&name(*n))).collect::<Vec<u64>>();
    for names in [
        &["Even"][..],
        &["Third", "Rest"],
        &["Even", "Unheard"],
        &["Unheard"],
        &[],
        &["even"],
        &["Even", "Third", "Rest"],
    ] {
        let types: Vec<EventType> = names.iter().map(|name| EventType::new(name).unwrap()).collect();
        for events_max in [1, 4, 1_000] {
            let query = PageQuery { types: Some(&types), events_max, ..everything(acme.number, 0) };
            assert_eq!(walk(db, query).await, of(names), "{names:?}, {events_max} a page");
        }
    }
    // What is passed over counts against no bound.
    let types = [EventType::new("Rest").unwrap()];
    let one = event("s", 1).size() as u64;
    let query =
        PageQuery { types: Some(&types), bytes_max: one, events_max: 1, ..everything(acme.number, 0) };
    assert_eq!(walk(db, query).await, of(&["Rest"]));
}

pub async fn head_and_events_are_of_one_snapshot(subject: &dyn Subject) {
    let acme = tenant(subject.first(), "acme").await;
    let (done, pages) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let (db, ended, read_pages, number) =
        (subject.second().clone(), done.clone(), pages.clone(), acme.number);
    let reader = tokio::spawn(async move {
        while !ended.load(Ordering::Acquire) {
            let page = read(&db, &everything(number, 0)).await;
            let (events, head) = (page.events.len() as u64, page.head.get());
            assert_eq!(events, head, "a head without its events, or events without their head");
            assert_eq!(page.through, page.head);
            read_pages.fetch_add(1, Ordering::Release);
        }
    });
    let patience = Patience::new();
    let (mut head, mut round) = (0, 0);
    // Until both have done enough beside each other.
    while round < 60 || (pages.load(Ordering::Acquire) < 20 && !reader.is_finished()) {
        let count = 1 + round % 4;
        append(subject.first(), &acme, head, events("s", head + 1, head + count)).await;
        head += count;
        round += 1;
        patience.pause("the reader to read beside the writer").await;
    }
    done.store(true, Ordering::Release);
    reader.await.unwrap();
}

pub async fn a_hole_is_corrupt_and_never_skipped(subject: &dyn Subject) {
    let db = subject.first();
    for (index, missing) in [1u64, 5, 10].into_iter().enumerate() {
        let acme = tenant(db, &format!("holed-{index}")).await;
        append(
            db,
            &acme,
            0,
            (1..=10).map(|n| typed("s", n, if n == 5 { "Rare" } else { "Common" }, "x")).collect(),
        )
        .await;
        subject.remove_event(acme.number, seq(missing)).await;
        let rare = [EventType::new("Rare").unwrap()];
        let common = [EventType::new("Common").unwrap()];
        for types in [None, Some(&rare[..]), Some(&common[..])] {
            let mut query = PageQuery { types, ..everything(acme.number, 0) };
            // Up to the hole it may give what is there; over it, never.
            let found = loop {
                match db.read_page(&query).await {
                    Ok(page) if page.through < seq(missing) && page.through > query.after => {
                        query.after = page.through
                    }
                    other => break other,
                }
            };
            assert_eq!(
                kind(&found),
                Some(ErrorKind::Corrupt),
                "event {missing} is gone, types {types:?}: {found:?}"
            );
        }
        // Beside the hole all is well.
        let below = PageQuery { up_to: Some(seq(missing - 1)), ..everything(acme.number, 0) };
        assert_eq!(read(db, &below).await.events.len() as u64, missing - 1);
        assert_eq!(read(db, &everything(acme.number, missing)).await.events.len() as u64, 10 - missing);
    }
}

pub async fn pages_of_tenants_are_kept_apart(subject: &dyn Subject) {
    let db = subject.first();
    let (a, b) = (tenant(db, "a").await, tenant(db, "b").await);
    for round in 0..10u64 {
        append(db, &a, round, vec![typed("shared", round + 1, "Happened", "a")]).await;
        append(
            db,
            &b,
            2 * round,
            vec![
                typed("shared", 2 * round + 1, "Happened", "b"),
                typed("shared", 2 * round + 2, "Happened", "b"),
            ],
        )
        .await;
    }
    for (tenant, body, count) in [(&a, "a", 10), (&b, "b", 20)] {
        let found = log(subject.second(), tenant.number).await;
        assert_eq!(found.len(), count);
        assert!(found.iter().all(|event| event.body == body), "an event of another tenant");
    }
}
