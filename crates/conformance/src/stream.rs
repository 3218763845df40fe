//! Pages of a stream, and the versions a writer must know.

use bellwether_storage::{ErrorKind, StoredEvent, StreamPage, StreamQuery, TenantEntry, Version};

use crate::Subject;
use crate::given::{Db, PLENTY, append, event, events, kind, log, seq, stream, tenant, typed, ver};

async fn read(
    db: &Db,
    tenant: &TenantEntry,
    name: &str,
    after: u64,
    events_max: u32,
    bytes_max: u64,
) -> StreamPage {
    let name = stream(name);
    let query =
        StreamQuery { tenant: tenant.number, stream: &name, after: ver(after), events_max, bytes_max };
    db.read_stream(&query).await.expect("a page of a stream")
}

fn versions(page: &StreamPage) -> Vec<u64> {
    page.events.iter().map(|event| event.version.get()).collect()
}

pub async fn a_stream_agrees_with_its_tenant(subject: &dyn Subject) {
    let db = subject.first();
    let acme = tenant(db, "acme").await;
    let mut head = 0;
    for round in 1..=12u64 {
        let mut sent = vec![event("often", round)];
        if round % 3 == 0 {
            sent.push(event("seldom", round / 3));
        }
        let count = sent.len() as u64;
        append(db, &acme, head, sent).await;
        head += count;
    }
    let all = log(subject.second(), acme.number).await;
    for (name, count) in [("often", 12), ("seldom", 4), ("never", 0)] {
        let of_stream: Vec<StoredEvent> =
            all.iter().filter(|event| event.stream.as_str() == name).cloned().collect();
        assert_eq!(of_stream.len(), count);
        let page = read(db, &acme, name, 0, 100, PLENTY).await;
        assert_eq!(page.events, of_stream, "{name} is the same both ways");
        assert_eq!((page.head, page.place, page.version), (seq(head), acme.place, ver(count as u64)));
    }
}

pub async fn a_stream_page_stops_at_its_bounds(subject: &dyn Subject) {
    let db = subject.first();
    let acme = tenant(db, "acme").await;
    append(db, &acme, 0, events("s", 1, 50)).await;
    let size = |version: u64| event("s", version).size() as u64;
    for (after, events_max, expected) in
        [(0, 10, 1..=10), (10, 10, 11..=20), (45, 10, 46..=50), (49, 1, 50..=50)]
    {
        let page = read(subject.second(), &acme, "s", after, events_max, PLENTY).await;
        assert_eq!(versions(&page), expected.collect::<Vec<_>>());
        assert_eq!(page.version, ver(50), "the last version comes whatever the page holds");
    }
    for after in [50, 51, 1 << 40, Version::MAX.get()] {
        assert_eq!(versions(&read(db, &acme, "s", after, 10, PLENTY).await), [] as [u64; 0], "after {after}");
    }
    let three: u64 = (1..=3).map(size).sum();
    for (bytes_max, expected) in [(three, 3), (three - 1, 2), (three + 1, 3)] {
        assert_eq!(read(db, &acme, "s", 0, 100, bytes_max).await.events.len(), expected, "{bytes_max} bytes");
    }
}

pub async fn the_first_event_of_a_stream_page_always_comes(subject: &dyn Subject) {
    let db = subject.first();
    let acme = tenant(db, "acme").await;
    let sent = vec![
        typed("s", 1, "Large", vec![1u8; 100_000]),
        event("s", 2),
        typed("s", 3, "Large", vec![3u8; 100_000]),
    ];
    append(db, &acme, 0, sent).await;
    for bytes_max in [0, 1, 1_000] {
        for (after, expected) in [(0, 1), (2, 3)] {
            let page = read(db, &acme, "s", after, 100, bytes_max).await;
            assert_eq!(versions(&page), [expected], "after {after} within {bytes_max} bytes");
            assert_eq!(page.events[0].body.len(), 100_000);
        }
    }
}

pub async fn versions_come_in_the_order_asked_and_unknown_ones_are_zero(subject: &dyn Subject) {
    let db = subject.first();
    let (acme, other) = (tenant(db, "acme").await, tenant(db, "other").await);
    append(db, &other, 0, events("unknown", 1, 7)).await;
    let mut head = 0;
    let mut expected = Vec::new();
    for index in 0..60u64 {
        let last = 1 + index % 3;
        append(db, &acme, head, events(&format!("s{index}"), 1, last)).await;
        head += last;
        expected.push((format!("s{index}"), last));
        expected.push((format!("S{index}"), 0));
    }
    expected.push(("unknown".into(), 0));
    // An order that no index has, and one name twice.
    expected.reverse();
    expected.swap(3, 50);
    expected.push(expected[0].clone());
    expected.push(expected[9].clone());
    let asked: Vec<_> = expected.iter().map(|(name, _)| stream(name)).collect();
    let found = subject.second().stream_versions(acme.number, &asked).await.unwrap();
    assert_eq!((found.head, found.place), (seq(head), acme.place));
    let found: Vec<u64> = found.streams.iter().map(|state| state.version.get()).collect();
    assert_eq!(found, expected.iter().map(|(_, version)| *version).collect::<Vec<_>>());
    assert_eq!(db.stream_versions(acme.number, &[]).await.unwrap().streams, []);
}

pub async fn a_hole_in_a_stream_is_corrupt(subject: &dyn Subject) {
    let db = subject.first();
    let acme = tenant(db, "acme").await;
    append(db, &acme, 0, events("s", 1, 9)).await;
    subject.remove_event(acme.number, seq(4)).await;
    let name = stream("s");
    let query =
        StreamQuery { tenant: acme.number, stream: &name, after: ver(0), events_max: 100, bytes_max: PLENTY };
    let found = db.read_stream(&query).await;
    assert_eq!(kind(&found), Some(ErrorKind::Corrupt), "version 4 is gone: {found:?}");
    assert_eq!(versions(&read(db, &acme, "s", 0, 3, PLENTY).await), [1, 2, 3]);
    assert_eq!(versions(&read(db, &acme, "s", 4, 100, PLENTY).await), [5, 6, 7, 8, 9]);
}
