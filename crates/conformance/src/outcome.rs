//! Disturbed commits: whatever breaks on the way, the answer is true, and an unknown outcome can be resolved.

use bellwether_storage::{AppendOutcome, ErrorKind, EventId, NewEvent, Result, TenantEntry};

use crate::given::{
    Db, PATIENCE, Patience, documents, event, events, head, kind, log, outcome, owner, position, progress,
    row, set,
};
use crate::given::{tenant, view, write};
use crate::unit::letter;
use crate::{Commit, Subject};

/// More points than any call has where it could be disturbed.
const STEPS_MAX: u32 = 64;

/// What a caller may conclude from an answer.
fn check_truth<T: std::fmt::Debug>(answered: &Result<T>, happened: bool, step: u32) {
    match kind(answered) {
        None => assert!(happened, "step {step}: answered {answered:?}, but it did not happen"),
        Some(ErrorKind::Unknown) => {}
        Some(ErrorKind::Unavailable | ErrorKind::Conflict) => {
            assert!(!happened, "step {step}: answered {answered:?}, but it happened");
        }
        Some(_) => panic!("step {step}: a disturbance was answered {answered:?}"),
    }
}

/// Head of the tenant once every disturbed transaction has ended.
pub(crate) async fn settled_head(db: &Db, tenant: &TenantEntry) -> u64 {
    let patience = Patience::new();
    loop {
        match db.lock_head(tenant.number, PATIENCE).await {
            Ok(lock) => {
                let head = lock.state().head.get();
                drop(lock);
                let_go(db, tenant).await;
                return head;
            }
            Err(error) if error.kind() == ErrorKind::Unavailable => {
                patience.pause("the head to settle").await
            }
            Err(error) => panic!("locking a head failed: {error:?}"),
        }
    }
}

/// Waits until a lock that was dropped has gone: while it is on its way out, an append is busy and proves nothing.
async fn let_go(db: &Db, tenant: &TenantEntry) {
    let patience = Patience::new();
    let impossible = u64::MAX >> 2;
    while let Ok(AppendOutcome::Busy) = outcome(db, tenant, impossible, vec![event("let-go", 1)]).await {
        patience.pause("a dropped lock to be gone").await;
    }
}

/// Sends the same batch again until it is clear what became of the first.
async fn resolve(db: &Db, tenant: &TenantEntry, head: u64, sent: &[NewEvent]) -> AppendOutcome {
    let patience = Patience::new();
    loop {
        match outcome(db, tenant, head, sent.to_vec()).await {
            Ok(AppendOutcome::Busy) => patience.pause("the head to be free").await,
            Ok(answered) => return answered,
            Err(error) if error.kind() == ErrorKind::Unavailable => patience.pause("a connection").await,
            Err(error) => panic!("the batch sent again failed: {error:?}"),
        }
    }
}

pub async fn a_disturbed_append_is_answered_truly(subject: &dyn Subject) {
    let (db, witness) = (subject.first(), subject.second());
    let acme = tenant(db, "acme").await;
    let mut lost_after = 0;
    let mut step = 0;
    while subject.disturb(Commit::Append, step).await {
        let before = settled_head(witness, &acme).await;
        let sent = events("s", before + 1, before + 2);
        let answered = outcome(db, &acme, before, sent.clone()).await;
        let after = settled_head(witness, &acme).await;
        assert!(after == before || after == before + 2, "an append is whole");
        let happened = after > before;
        check_truth(&answered, happened, step);
        lost_after += u32::from(happened && answered.is_err());
        // The head comparison resolves it, whatever was answered.
        let again = resolve(db, &acme, before, &sent).await;
        assert_eq!(
            matches!(again, AppendOutcome::Stale { .. }),
            happened,
            "step {step}: sent again, it was {again:?}"
        );
        let found: Vec<EventId> = log(witness, acme.number).await.iter().map(|event| event.id).collect();
        assert_eq!(found[before as usize..], [sent[0].id, sent[1].id], "it is there once");
        step += 1;
        assert!(step < STEPS_MAX, "disturbances must come to an end");
    }
    assert!(lost_after > 0, "{step} disturbances, and none lost an answer after the effect");
}

pub async fn a_disturbed_locked_append_is_answered_truly(subject: &dyn Subject) {
    let (db, witness) = (subject.first(), subject.second());
    let acme = tenant(db, "acme").await;
    let mut lost_after = 0;
    let mut step = 0;
    loop {
        let before = settled_head(witness, &acme).await;
        let patience = Patience::new();
        let lock = loop {
            match db.lock_head(acme.number, PATIENCE).await {
                Ok(lock) => break lock,
                Err(error) if error.kind() == ErrorKind::Unavailable => patience.pause("the head").await,
                Err(error) => panic!("locking a head failed: {error:?}"),
            }
        };
        if !subject.disturb(Commit::LockedAppend, step).await {
            break;
        }
        let sent = event("s", before + 1);
        let answered = lock.append(std::slice::from_ref(&sent), &[], None).await;
        let happened = settled_head(witness, &acme).await > before;
        check_truth(&answered, happened, step);
        lost_after += u32::from(happened && answered.is_err());
        let found = log(witness, acme.number).await;
        assert_eq!(found.iter().filter(|event| event.id == sent.id).count(), usize::from(happened));
        assert_eq!(found.len() as u64, head(witness, acme.number).await);
        step += 1;
        assert!(step < STEPS_MAX, "disturbances must come to an end");
    }
    assert!(lost_after > 0, "{step} disturbances, and none lost an answer after the effect");
}

pub async fn a_disturbed_page_is_answered_truly(subject: &dyn Subject) {
    let (db, witness) = (subject.first(), subject.second());
    let acme = tenant(db, "acme").await;
    let key = row(db, &acme, "p").await;
    let view = view(db, "v", 1).await;
    let mut lost_after = 0;
    let mut step = 0;
    loop {
        let page = position(db, owner(), key).await;
        let to = page.from.next();
        let mut unit = db.begin(&page).await.expect("a positioned page begins");
        unit.write(view, vec![write(&format!("d{step}"), "x")]).await.expect("a chunk");
        if !subject.disturb(Commit::Finish, step).await {
            break;
        }
        let answered = unit.finish(to, &[letter(key, to.get(), "p")]).await;
        // Fencing again waits for the page, and finds the truth.
        let found = position(witness, owner(), key).await;
        let happened = found.from == to;
        assert!(happened || found.from == page.from, "a page is whole");
        check_truth(&answered, happened, step);
        lost_after += u32::from(happened && answered.is_err());
        let pages = progress(witness, key).await.expect("the row").sequence.get() as usize;
        assert_eq!(documents(witness, set(view, key)).await.len(), pages, "documents go with the progress");
        assert_eq!(
            witness.dead_letters(acme.number, 1_000).await.unwrap().len(),
            pages,
            "dead letters go with the progress"
        );
        step += 1;
        assert!(step < STEPS_MAX, "disturbances must come to an end");
    }
    assert!(lost_after > 0, "{step} disturbances, and none lost an answer after the effect");
}
