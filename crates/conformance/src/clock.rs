//! Time: the database's clock or the moment passed in, never backwards along the sequence.

use bellwether_storage::{AppendBatch, AppendOutcome, Timestamp};

use crate::Subject;
use crate::given::{PATIENCE, entry, event, log, tenant};

/// 2001-09-09, in microseconds.
const MOMENT: i64 = 1_000_000_000_000_000;

pub async fn times_never_run_backwards(subject: &dyn Subject) {
    let db = subject.first();
    let acme = tenant(db, "acme").await;
    // What is passed in, and what must be recorded.
    // The first may be before 1970: nothing is there that it could run behind.
    let moments = [
        (-7, -7),
        (MOMENT, MOMENT),
        (MOMENT + 5, MOMENT + 5),
        (MOMENT - 5, MOMENT + 5),
        (0, MOMENT + 5),
        (-1, MOMENT + 5),
    ];
    for (index, (passed, _)) in moments.iter().enumerate() {
        let now = Some(Timestamp::from_micros(*passed));
        let events = vec![event("s", index as u64 + 1)];
        let at = if index % 2 == 0 {
            let sent = AppendBatch { tenants: vec![entry(&acme, index as u64, events)], now, identity: None };
            match &db.append(&sent).await.unwrap().outcomes[..] {
                [AppendOutcome::Done { at }] => *at,
                other => panic!("{other:?}"),
            }
        } else {
            let lock = subject.second().lock_head(acme.number, PATIENCE).await.unwrap();
            lock.append(&events, &[], now).await.unwrap()
        };
        assert_eq!(at.as_micros(), moments[index].1, "append {index} with moment {passed}");
    }
    let found: Vec<i64> = log(db, acme.number).await.iter().map(|event| event.at.as_micros()).collect();
    assert_eq!(found, moments.map(|(_, recorded)| recorded));
}

pub async fn the_databases_clock_decides_when_no_moment_is_given(subject: &dyn Subject) {
    let (db, other) = (subject.first(), subject.second());
    let acme = tenant(db, "acme").await;
    for round in 0..10u64 {
        let handle = if round % 2 == 0 { db } else { other };
        let sent = AppendBatch {
            tenants: vec![entry(&acme, round, vec![event("s", round + 1)])],
            ..AppendBatch::default()
        };
        let outcomes = handle.append(&sent).await.unwrap().outcomes;
        let [AppendOutcome::Done { at }] = outcomes[..] else { panic!("{outcomes:?}") };
        assert_eq!(log(handle, acme.number).await.last().map(|event| event.at), Some(at));
    }
    let times: Vec<Timestamp> = log(db, acme.number).await.iter().map(|event| event.at).collect();
    assert!(times.is_sorted(), "{times:?}");
    assert!(times[0].as_micros() > MOMENT, "a clock of our time, in microseconds: {:?}", times[0]);
    assert!(times[0].as_micros() < 10 * MOMENT, "a clock of our time, in microseconds: {:?}", times[0]);
}
