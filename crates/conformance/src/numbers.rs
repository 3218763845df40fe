//! Numbers near 2³¹, 2³², 2⁵³ and the end of the range, through every port.

use bellwether_storage::{
    AppendOutcome, Build, ErrorKind, FenceClaim, FenceOutcome, Generation, PageQuery, ProgressKey, Sequence,
    StreamQuery, Version,
};

use crate::Subject;
use crate::given::{
    PATIENCE, PLENTY, append, event, events, everything, fence, generation, kind, outcome, owner, position,
    progress, row, seq, set, stream, tenant, ver, view, write,
};
use crate::unit::letter;

/// Just below each edge where a number loses bits somewhere.
const EDGES: [u64; 5] = [(1 << 31) - 3, (1 << 32) - 3, (1 << 53) - 3, (1 << 62) - 3, i64::MAX as u64 - 20];

pub async fn heads_near_their_bounds_survive(subject: &dyn Subject) {
    let db = subject.first();
    for (index, base) in EDGES.into_iter().enumerate() {
        let acme = tenant(db, &format!("t{index}")).await;
        let cursor = db.moved_heads(None).await.unwrap().cursor;
        subject.raise_head(acme.number, seq(base)).await;
        append(db, &acme, base, events("s", 1, 3)).await;
        let lock = subject.second().lock_head(acme.number, PATIENCE).await.unwrap();
        assert_eq!(lock.state().head, seq(base + 3));
        lock.append(&events("s", 4, 6), &[], None).await.unwrap();
        let stale = outcome(db, &acme, base, vec![event("s", 7)]).await.unwrap();
        assert_eq!(stale, AppendOutcome::Stale { head: seq(base + 6), place: acme.place });
        let expected: Vec<u64> = (base + 1..=base + 6).collect();
        for query in [
            everything(acme.number, base),
            PageQuery { up_to: Some(seq(base + 6)), ..everything(acme.number, base) },
        ] {
            let page = subject.second().read_page(&query).await.unwrap();
            assert_eq!((page.head.get(), page.through.get()), (base + 6, base + 6));
            assert_eq!(page.events.iter().map(|event| event.sequence.get()).collect::<Vec<_>>(), expected);
        }
        let bounded =
            PageQuery { up_to: Some(seq(base + 4)), events_max: 2, ..everything(acme.number, base + 1) };
        assert_eq!(db.read_page(&bounded).await.unwrap().through, seq(base + 3));
        let name = stream("s");
        let query = StreamQuery {
            tenant: acme.number,
            stream: &name,
            after: ver(0),
            events_max: 10,
            bytes_max: PLENTY,
        };
        let page = db.read_stream(&query).await.unwrap();
        assert_eq!(page.events.iter().map(|event| event.sequence.get()).collect::<Vec<_>>(), expected);
        assert_eq!(db.stream_versions(acme.number, &[name]).await.unwrap().head, seq(base + 6));
        let moved = db.moved_heads(Some(&cursor)).await.unwrap().heads;
        assert!(moved.iter().any(|head| head.tenant == acme.number && head.head == seq(base + 6)));
    }
}

pub async fn versions_near_their_bounds_survive(subject: &dyn Subject) {
    let db = subject.first();
    let acme = tenant(db, "acme").await;
    let mut head = 0;
    for (index, base) in EDGES.into_iter().chain([Version::MAX.get() - 2]).enumerate() {
        let name = stream(&format!("s{index}"));
        append(db, &acme, head, vec![event(name.as_str(), base + 1), event(name.as_str(), base + 2)]).await;
        head += 2;
        for handle in [db, subject.second()] {
            let states = handle.stream_versions(acme.number, std::slice::from_ref(&name)).await.unwrap();
            assert_eq!(states.streams[0].version, ver(base + 2));
            let query = StreamQuery {
                tenant: acme.number,
                stream: &name,
                after: ver(base),
                events_max: 10,
                bytes_max: PLENTY,
            };
            let page = handle.read_stream(&query).await.unwrap();
            assert_eq!(page.version, ver(base + 2));
            assert_eq!(
                page.events.iter().map(|event| event.version.get()).collect::<Vec<_>>(),
                [base + 1, base + 2]
            );
        }
    }
}

pub async fn progress_near_its_bounds_survives(subject: &dyn Subject) {
    let db = subject.first();
    let acme = tenant(db, "acme").await;
    let first = row(db, &acme, "p").await;
    let mut letters = 0;
    for version in [i32::MAX as u32, i32::MAX as u32 + 1, u32::MAX] {
        let view = view(db, "v", version).await;
        let key = ProgressKey { version, build: Build(i32::MAX), ..first };
        for base in EDGES {
            let me = owner();
            let claimed = fence(db, me, key, FenceClaim::Granted(generation(base as i64))).await.unwrap();
            let FenceOutcome::Positioned(positioned) = claimed else { panic!("{claimed:?}") };
            assert_eq!(positioned.generation, Generation(base as i64));
            let page = crate::given::start(key, positioned);
            let mut unit = db.begin(&page).await.unwrap();
            unit.write(view, vec![write("d", format!("{version}/{base}"))]).await.unwrap();
            unit.finish(seq(base + 1), &[letter(key, base, "p")]).await.unwrap();
            letters += 1;
            let stored = progress(subject.second(), key).await.unwrap();
            assert_eq!((stored.sequence, stored.generation), (seq(base + 1), Generation(base as i64)));
            let found = subject.second().list(set(view, key), None, 10).await.unwrap();
            assert_eq!((found.len(), &found[0].body[..]), (1, format!("{version}/{base}").as_bytes()));
            let taken = position(subject.second(), owner(), key).await;
            assert_eq!((taken.from, taken.generation), (seq(base + 1), Generation(base as i64 + 1)));
        }
    }
    let found = db.dead_letters(acme.number, 100).await.unwrap();
    assert_eq!(found.len(), letters);
    let expected = [i32::MAX as u32, i32::MAX as u32 + 1, u32::MAX]
        .into_iter()
        .flat_map(|version| EDGES.map(|base| (version, base)));
    assert!(
        found.iter().map(|letter| (letter.key.version, letter.sequence.get())).eq(expected),
        "in order of version, sequence"
    );
}

pub async fn a_head_at_its_end_takes_no_more(subject: &dyn Subject) {
    let db = subject.first();
    let acme = tenant(db, "acme").await;
    let last = Sequence::MAX.get();
    subject.raise_head(acme.number, seq(last - 1)).await;
    append(db, &acme, last - 1, vec![event("s", 1)]).await;
    let refused = outcome(db, &acme, last, vec![event("s", 2)]).await;
    assert_eq!(kind(&refused), Some(ErrorKind::Rejected), "{refused:?}");
    let lock = db.lock_head(acme.number, PATIENCE).await.unwrap();
    let refused = lock.append(&[event("s", 2)], &[], None).await;
    assert_eq!(kind(&refused), Some(ErrorKind::Rejected), "{refused:?}");
    let page = subject.second().read_page(&everything(acme.number, last - 1)).await.unwrap();
    assert_eq!((page.head, page.through, page.events.len()), (Sequence::MAX, Sequence::MAX, 1));
}
