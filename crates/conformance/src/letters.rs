//! Dead letters: kept with their page, never doubled, listed in order.

use bellwether_storage::{Build, DeadLetter, ErrorKind, EventType, ProgressKey, Timestamp};
use uuid::Uuid;

use crate::Subject;
use crate::given::{Db, owner, position, row, seq, tenant};
use crate::unit::letter;

/// Commits letters as a page of their row.
async fn keep(db: &Db, key: ProgressKey, letters: &[DeadLetter]) {
    let page = position(db, owner(), key).await;
    db.begin(&page).await.expect("a page").finish(page.from, letters).await.expect("the page's commit");
}

/// Without the time, which the database may decide.
fn timeless(letters: &[DeadLetter]) -> Vec<DeadLetter> {
    letters.iter().map(|letter| DeadLetter { at: Timestamp::default(), ..letter.clone() }).collect()
}

pub async fn a_dead_letter_comes_back_as_it_went_in(subject: &dyn Subject) {
    let db = subject.first();
    let acme = tenant(db, "acme").await;
    let key = row(db, &acme, "p").await;
    let sent = DeadLetter {
        key,
        sequence: seq(17),
        member: "totals".into(),
        event_id: Uuid::now_v7(),
        event_type: EventType::new("bank/Withdrawn").unwrap(),
        class: "decode".into(),
        reason: "r".repeat(4096),
        at: Timestamp::default(),
    };
    keep(db, key, std::slice::from_ref(&sent)).await;
    let found = subject.second().dead_letters(acme.number, 10).await.unwrap();
    assert_eq!(timeless(&found), [sent]);
    assert!(
        found[0].at.as_micros() > 1_000_000_000_000_000,
        "the database's clock decides: {:?}",
        found[0].at
    );
}

pub async fn a_dead_letter_written_again_is_not_doubled(subject: &dyn Subject) {
    let db = subject.first();
    let acme = tenant(db, "acme").await;
    let key = row(db, &acme, "p").await;
    let mut first = letter(key, 5, "a");
    keep(db, key, &[first.clone(), letter(key, 5, "b"), letter(key, 6, "a")]).await;
    first.reason = "another reason".into();
    first.class = "decode".into();
    keep(subject.second(), key, std::slice::from_ref(&first)).await;
    let found = timeless(&db.dead_letters(acme.number, 10).await.unwrap());
    assert_eq!(
        found,
        [first, letter(key, 5, "b"), letter(key, 6, "a")],
        "the newer one replaces the older one"
    );
}

pub async fn dead_letters_are_listed_in_order_and_of_one_tenant(subject: &dyn Subject) {
    let db = subject.first();
    let (a, b) = (tenant(db, "a").await, tenant(db, "b").await);
    let mut expected = Vec::new();
    for name in ["p", "q"] {
        let first = row(db, &a, name).await;
        for (version, build) in [(1, 1), (1, 2), (2, 1), (10, 1)] {
            let key = ProgressKey { version, build: Build(build), ..first };
            let letters = [(2, "b"), (2, "a"), (10, "a"), (2, "B")]
                .map(|(sequence, member)| letter(key, sequence, member));
            keep(db, key, &letters).await;
            expected.extend(letters);
        }
        let elsewhere = row(db, &b, name).await;
        keep(db, elsewhere, &[letter(elsewhere, 2, "a")]).await;
    }
    expected.sort_by(|x, y| {
        let place =
            |l: &DeadLetter| (l.key.projection, l.key.version, l.key.build, l.sequence, l.member.clone());
        place(x).cmp(&place(y))
    });
    for limit in [0, 1, 7, 32, 1_000] {
        let found = subject.second().dead_letters(a.number, limit).await.unwrap();
        assert_eq!(timeless(&found), expected[..expected.len().min(limit as usize)], "limit {limit}");
    }
    assert_eq!(db.dead_letters(b.number, 10).await.unwrap().len(), 2);
    // A letter goes the way of its page.
    let key = row(db, &b, "p").await;
    let stale = bellwether_storage::PageStart { from: seq(99), ..position(db, owner(), key).await };
    let refused = db.begin(&stale).await;
    assert_eq!(crate::given::kind(&refused), Some(ErrorKind::Fenced));
    assert_eq!(db.dead_letters(b.number, 10).await.unwrap().len(), 2);
}
