//! Fencing: who may move a progress row, and from where.

use bellwether_storage::{
    Build, ErrorKind, FenceClaim, FenceOutcome, FenceRequest, Generation, Owner, Progress, ProgressKey,
    ProjectionName, Sequence, ViewName,
};
use uuid::Uuid;

use crate::Subject;
use crate::given::{
    Patience, fence, generation, owner, position, progress, progress_of, projection, row, seq, start, tenant,
};

fn granted(number: i64) -> FenceClaim {
    FenceClaim::Granted(generation(number))
}

fn at(sequence: u64, number: i64, owner: Owner) -> Progress {
    Progress { sequence: seq(sequence), generation: generation(number), owner: Some(owner) }
}

pub async fn a_fence_creates_its_row_at_zero(subject: &dyn Subject) {
    let db = subject.first();
    let acme = tenant(db, "acme").await;
    let (granted_row, taken_row) = (row(db, &acme, "granted").await, row(db, &acme, "taken").await);
    assert_eq!(db.progress(&[granted_row, taken_row]).await.unwrap(), [None, None]);
    let me = owner();
    let positioned = fence(db, me, granted_row, granted(5)).await.unwrap();
    assert_eq!(positioned, FenceOutcome::Positioned(at(0, 5, me)));
    let positioned = fence(db, me, taken_row, FenceClaim::TakeOver { seen: None }).await.unwrap();
    assert_eq!(positioned, FenceOutcome::Positioned(at(0, 1, me)));
    assert_eq!(
        subject.second().progress(&[taken_row, granted_row]).await.unwrap(),
        [Some(at(0, 1, me)), Some(at(0, 5, me))]
    );
    assert_eq!(db.progress(&[]).await.unwrap(), []);
}

pub async fn a_grant_wins_by_generation_then_owner(subject: &dyn Subject) {
    let db = subject.first();
    let acme = tenant(db, "acme").await;
    let key = row(db, &acme, "p").await;
    let (small, large) = (Owner(Uuid::from_u128(1)), Owner(Uuid::from_u128(u128::MAX - 1)));
    let middle = Owner(Uuid::from_u128(1 << 127));
    // Claimed by whom at which generation, and who holds the row afterwards.
    for (who, number, holder) in [
        (middle, 3, (3, middle)),
        (middle, 3, (3, middle)),
        (small, 3, (3, middle)),
        (large, 2, (3, middle)),
        (small, 0, (3, middle)),
        (large, 3, (3, large)),
        (middle, 3, (3, large)),
        (small, 4, (4, small)),
        (large, 3, (4, small)),
        (small, 1 << 40, (1 << 40, small)),
        (middle, 5, (1 << 40, small)),
    ] {
        let stored = at(0, holder.0, holder.1);
        let wins = (number, who) == holder;
        let expected = if wins { FenceOutcome::Positioned(stored) } else { FenceOutcome::Refused(stored) };
        let handle = if wins { db } else { subject.second() };
        assert_eq!(fence(handle, who, key, granted(number)).await.unwrap(), expected, "{who:?} at {number}");
        assert_eq!(progress(db, key).await, Some(stored));
    }
}

pub async fn a_take_over_compares_what_was_seen(subject: &dyn Subject) {
    let db = subject.first();
    let acme = tenant(db, "acme").await;
    let key = row(db, &acme, "p").await;
    let (mine, theirs) = (owner(), owner());
    let first = at(0, 1, mine);
    assert_eq!(
        fence(db, mine, key, FenceClaim::TakeOver { seen: None }).await.unwrap(),
        FenceOutcome::Positioned(first)
    );
    for wrong in [
        Progress { sequence: seq(1), ..first },
        Progress { generation: generation(0), ..first },
        Progress { generation: generation(2), ..first },
        Progress { owner: Some(theirs), ..first },
        Progress { owner: None, ..first },
    ] {
        let refused =
            fence(subject.second(), theirs, key, FenceClaim::TakeOver { seen: Some(wrong) }).await.unwrap();
        assert_eq!(refused, FenceOutcome::Refused(first), "seen {wrong:?}");
    }
    assert_eq!(progress(db, key).await, Some(first));
    let taken =
        fence(subject.second(), theirs, key, FenceClaim::TakeOver { seen: Some(first) }).await.unwrap();
    assert_eq!(taken, FenceOutcome::Positioned(at(0, 2, theirs)));
    let late = fence(db, mine, key, FenceClaim::TakeOver { seen: Some(first) }).await.unwrap();
    assert_eq!(late, FenceOutcome::Refused(at(0, 2, theirs)));
    let whatever = fence(db, mine, key, FenceClaim::TakeOver { seen: None }).await.unwrap();
    assert_eq!(whatever, FenceOutcome::Positioned(at(0, 3, mine)));
}

pub async fn raced_take_overs_have_one_winner(subject: &dyn Subject) {
    let acme = tenant(subject.first(), "acme").await;
    let key = row(subject.first(), &acme, "p").await;
    let mut seen = position(subject.first(), owner(), key).await;
    for round in 0..10 {
        let row = progress_of(&seen, 0);
        let racers = (0..6).map(|racer| {
            let db = if racer % 2 == 0 { subject.first() } else { subject.second() }.clone();
            tokio::spawn(async move {
                let patience = Patience::new();
                loop {
                    match fence(&db, owner(), key, FenceClaim::TakeOver { seen: Some(row) }).await {
                        Ok(FenceOutcome::Positioned(won)) => return Some(won),
                        Ok(FenceOutcome::Refused(_)) => return None,
                        Err(error) if error.kind() == ErrorKind::Unavailable => {
                            patience.pause("the row").await
                        }
                        other => panic!("a raced take-over was answered {other:?}"),
                    }
                }
            })
        });
        let mut winners = Vec::new();
        for racer in racers.collect::<Vec<_>>() {
            winners.extend(racer.await.unwrap());
        }
        assert_eq!(winners.len(), 1, "round {round}: {winners:?}");
        assert_eq!(progress(subject.second(), key).await, Some(winners[0]));
        assert_eq!(winners[0].generation, Generation(row.generation.0 + 1));
        seen = start(key, winners[0]);
    }
}

pub async fn several_rows_are_fenced_at_once(subject: &dyn Subject) {
    let db = subject.first();
    let me = owner();
    let mut keys = Vec::new();
    for index in 0..24 {
        let acme = tenant(db, &format!("t{}", index % 6)).await;
        let key = row(db, &acme, &format!("p{}", index / 6)).await;
        keys.push(ProgressKey { version: 1 + index % 2, build: Build(1 + index as i32 % 3), ..key });
    }
    // Every third row belongs to somebody stronger.
    let other = owner();
    for key in keys.iter().step_by(3) {
        fence(db, other, *key, granted(9)).await.unwrap();
    }
    // An order that no key has.
    keys.reverse();
    keys.swap(2, 17);
    let requests: Vec<_> = keys.iter().map(|key| FenceRequest { key: *key, claim: granted(4) }).collect();
    let outcomes = subject.second().fence(me, &requests).await.unwrap();
    assert_eq!(outcomes.len(), 24);
    let rows = db.progress(&keys).await.unwrap();
    let mut refused = 0;
    for (outcome, row) in outcomes.iter().zip(rows) {
        match outcome {
            FenceOutcome::Positioned(positioned) => {
                assert_eq!((*positioned, row), (at(0, 4, me), Some(at(0, 4, me))))
            }
            FenceOutcome::Refused(stored) => {
                refused += 1;
                assert_eq!((*stored, row), (at(0, 9, other), Some(at(0, 9, other))));
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(refused, 8);
    assert_eq!(db.fence(me, &[]).await.unwrap(), []);
}

pub async fn a_fence_keeps_the_sequence(subject: &dyn Subject) {
    let db = subject.first();
    let acme = tenant(db, "acme").await;
    let key = row(db, &acme, "p").await;
    let me = owner();
    let page = position(db, me, key).await;
    db.begin(&page).await.unwrap().finish(seq(42), &[]).await.unwrap();
    let other = owner();
    let taken = position(subject.second(), other, key).await;
    assert_eq!((taken.from, taken.generation), (seq(42), Generation(page.generation.0 + 1)));
    let granted = fence(db, me, key, granted(taken.generation.0 + 1)).await.unwrap();
    assert_eq!(granted, FenceOutcome::Positioned(at(42, taken.generation.0 + 1, me)));
}

pub async fn a_fence_and_an_open_page_agree(subject: &dyn Subject) {
    let acme = tenant(subject.first(), "acme").await;
    let key = row(subject.first(), &acme, "p").await;
    for _ in 0..4 {
        let page = position(subject.first(), owner(), key).await;
        let unit = subject.first().begin(&page).await.unwrap();
        let (db, me) = (subject.second().clone(), owner());
        let fencer =
            tokio::spawn(async move { fence(&db, me, key, FenceClaim::TakeOver { seen: None }).await });
        tokio::task::yield_now().await;
        let finished = unit.finish(page.from.next(), &[]).await;
        let moved_to = if finished.is_ok() { page.from.next() } else { page.from };
        match fencer.await.unwrap() {
            Ok(FenceOutcome::Positioned(found)) => {
                // The fence waited for the page, or came before its begin and made an end of it.
                assert_eq!(
                    (found.sequence, found.owner),
                    (moved_to, Some(me)),
                    "the page was answered {finished:?}"
                );
            }
            Err(error) if error.kind() == ErrorKind::Unavailable => {
                assert!(finished.is_ok(), "neither the page nor the fence got through");
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(progress(subject.first(), key).await.map_or(Sequence::ZERO, |row| row.sequence), moved_to);
    }
}

pub async fn raced_registrations_give_one_number(subject: &dyn Subject) {
    let racers = (0..12).map(|racer| {
        let db = if racer % 2 == 0 { subject.first() } else { subject.second() }.clone();
        tokio::spawn(async move {
            let shared = projection(&db, "shared").await;
            let own = projection(&db, &format!("own-{racer}")).await;
            let view = db.ensure_view(&ViewName::new("shared").unwrap(), 1).await.expect("a raced view");
            let newer = db.ensure_view(&ViewName::new("shared").unwrap(), 2).await.expect("a raced view");
            assert_ne!(view, newer, "each version has a table of its own");
            (shared, view, newer, own)
        })
    });
    let (mut shared, mut own) = (Vec::new(), Vec::new());
    for racer in racers.collect::<Vec<_>>() {
        let (projection, view, newer, mine) = racer.await.unwrap();
        shared.push((projection, view, newer));
        own.push(mine);
    }
    assert!(shared.iter().all(|numbers| *numbers == shared[0]), "{shared:?}");
    own.push(shared[0].0);
    own.sort_unstable();
    own.dedup();
    assert_eq!(own.len(), 13, "every projection has a number of its own");
    let again = subject.second().ensure_projection(&ProjectionName::new("shared").unwrap()).await.unwrap();
    assert_eq!(again, shared[0].0);
}
