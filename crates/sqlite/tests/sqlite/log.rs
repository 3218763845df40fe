//! The log in a file: pages, bounds, holes, times.

use bellwether_storage::{
    AppendOutcome, ErrorKind, EventLog, EventType, PageQuery, Sequence, StreamId, StreamQuery, Timestamp,
    Version,
};

use crate::given::{Subject, all, append, batch, event, raw, subject, tenant};

// X3
#[tokio::test]
async fn what_was_appended_is_read_back_by_tenant_and_by_stream() {
    let Subject { store, folder: _folder } = subject().await;
    let acme = tenant(&store, "acme").await;
    let events: Vec<_> = (1..=200_u64)
        .map(|n| event(&format!("s-{}", n % 2), n.div_ceil(2), "Happened", n as usize))
        .collect();
    assert!(matches!(append(&store, &acme, 0, events.clone()).await, AppendOutcome::Done { .. }));

    let page = store.read_page(&all(&acme)).await.unwrap();
    assert_eq!((page.head.get(), page.through.get(), page.events.len()), (200, 200, 200));
    for (read, written) in page.events.iter().zip(&events) {
        assert_eq!(
            (&read.id, &read.body, read.version, read.size()),
            (&written.id, &written.body, written.version, written.size())
        );
    }
    let stream = StreamId::new("s-1").unwrap();
    let query = StreamQuery {
        tenant: acme.number,
        stream: &stream,
        after: Version::new(98),
        events_max: 10,
        bytes_max: 1,
    };
    let read = store.read_stream(&query).await.unwrap();
    assert_eq!((read.version.get(), read.events.len(), read.events[0].version.get()), (100, 1, 99));
}

#[tokio::test]
async fn a_page_stops_at_its_bytes_and_says_how_large_the_first_event_is() {
    let Subject { store, folder: _folder } = subject().await;
    let acme = tenant(&store, "acme").await;
    let events = vec![event("s", 1, "Small", 10), event("s", 2, "Large", 5000), event("s", 3, "Small", 10)];
    append(&store, &acme, 0, events.clone()).await;
    let sizes: Vec<u64> = events.iter().map(|event| event.size() as u64).collect();

    let page =
        store.read_page(&PageQuery { bytes_max: sizes[0] + sizes[1] - 1, ..all(&acme) }).await.unwrap();
    assert_eq!((page.events.len(), page.through.get(), page.too_large), (1, 1, None));

    let after = PageQuery { after: Sequence::new(1), bytes_max: sizes[1] - 1, ..all(&acme) };
    let page = store.read_page(&after).await.unwrap();
    assert_eq!((page.events.len(), page.through.get()), (0, 1));
    assert_eq!(page.too_large, Some((Sequence::new(2), sizes[1])));

    let small = [EventType::new("Small").unwrap()];
    let page = store
        .read_page(&PageQuery { types: Some(&small), bytes_max: sizes[0] + sizes[2], ..all(&acme) })
        .await
        .unwrap();
    assert_eq!(page.events.iter().map(|event| event.sequence.get()).collect::<Vec<_>>(), [1, 3]);
}

#[tokio::test]
async fn a_page_without_a_match_still_moves_on_by_a_bounded_range() {
    let Subject { store, folder: _folder } = subject().await;
    let acme = tenant(&store, "acme").await;
    for head in (0..21_000).step_by(7_000) {
        let events = (1..=7_000).map(|n| event("s", head + n, "Other", 1)).collect();
        assert!(matches!(append(&store, &acme, head, events).await, AppendOutcome::Done { .. }));
    }
    let wanted = [EventType::new("Wanted").unwrap()];
    let query = PageQuery { types: Some(&wanted), ..all(&acme) };
    let first = store.read_page(&query).await.unwrap();
    assert_eq!((first.head.get(), first.through.get(), first.events.len()), (21_000, 20_000, 0));
    let second = store.read_page(&PageQuery { after: first.through, ..query }).await.unwrap();
    assert_eq!(second.through.get(), 21_000);
}

// T1
#[tokio::test]
async fn a_hole_is_corrupt_even_between_types_nobody_asked_for() {
    let subject = subject().await;
    let acme = tenant(&subject.store, "acme").await;
    let events = (1..=5).map(|n| event("s", n, if n == 5 { "Wanted" } else { "Other" }, 1)).collect();
    append(&subject.store, &acme, 0, events).await;
    let mut direct = raw(&subject.path()).await;
    sqlx::query("DELETE FROM events WHERE seq = 3").execute(&mut direct).await.unwrap();

    let wanted = [EventType::new("Wanted").unwrap()];
    for types in [None, Some(&wanted[..])] {
        let error = subject.store.read_page(&PageQuery { types, ..all(&acme) }).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    }
}

#[tokio::test]
async fn a_refused_row_rejects_the_whole_batch() {
    let Subject { store, folder: _folder } = subject().await;
    let acme = tenant(&store, "acme").await;
    let twice = vec![event("s", 1, "Happened", 1), event("s", 1, "Happened", 1)];
    assert_eq!(store.append(&batch(&acme, 0, twice)).await.unwrap_err().kind(), ErrorKind::Rejected);
    let page = store.read_page(&all(&acme)).await.unwrap();
    assert_eq!((page.head, page.events.len()), (Sequence::ZERO, 0));
}

#[tokio::test]
async fn times_never_run_backwards() {
    let Subject { store, folder: _folder } = subject().await;
    let acme = tenant(&store, "acme").await;
    let late = Timestamp::from_micros(4_000_000_000_000_000);
    let mut entry = batch(&acme, 0, vec![event("s", 1, "Happened", 1)]);
    entry.now = Some(late);
    assert_eq!(store.append(&entry).await.unwrap().outcomes[0], AppendOutcome::Done { at: late });
    let mut entry = batch(&acme, 1, vec![event("s", 2, "Happened", 1)]);
    entry.now = Some(Timestamp::from_micros(5));
    assert_eq!(store.append(&entry).await.unwrap().outcomes[0], AppendOutcome::Done { at: late });
    assert_eq!(store.read_page(&all(&acme)).await.unwrap().events[1].at, late);
}
