//! Calls dropped midway: whole or nothing, and what comes after is answered as if nothing had been.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use bellwether_storage::ErrorKind;

use crate::Subject;
use crate::given::{
    Db, PATIENCE, Patience, append, documents, event, events, everything, log, outcome, owner, position,
    progress, row, seq, set, tenant, view, write,
};
use crate::outcome::settled_head;
use crate::unit::letter;

/// More polls than any call needs.
const POLLS_MAX: u32 = 400;

/// A future that is given up after so many polls.
struct Limited<F> {
    future: Pin<Box<F>>,
    left: u32,
}

impl<F: Future> Future for Limited<F> {
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.left -= 1;
        match self.future.as_mut().poll(context) {
            Poll::Ready(done) => Poll::Ready(Some(done)),
            Poll::Pending if self.left == 0 => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    }
}

/// Polls a future at most so often, and drops it.
async fn cut<F: Future>(future: F, polls: u32) -> Option<F::Output> {
    Limited { future: Box::pin(future), left: polls }.await
}

pub async fn an_append_dropped_midway_is_whole_or_nothing(subject: &dyn Subject) {
    let (db, witness) = (subject.first(), subject.second());
    let acme = tenant(db, "acme").await;
    for polls in 1.. {
        let before = settled_head(witness, &acme).await;
        let ended = cut(outcome(db, &acme, before, events("s", before + 1, before + 3)), polls).await;
        let after = settled_head(witness, &acme).await;
        assert!(after == before || after == before + 3, "from {before} to {after} after {polls} polls");
        append(db, &acme, after, vec![event("s", after + 1)]).await;
        assert_eq!(log(db, acme.number).await.len() as u64, after + 1);
        if ended.is_some() {
            break;
        }
        assert!(polls < POLLS_MAX, "an append must come to its end");
    }
}

pub async fn a_locked_append_dropped_midway_is_whole_or_nothing(subject: &dyn Subject) {
    let (db, witness) = (subject.first(), subject.second());
    let acme = tenant(db, "acme").await;
    for polls in 1.. {
        let before = settled_head(witness, &acme).await;
        let ended = cut(
            async {
                let mut lock = db.lock_head(acme.number, PATIENCE).await?;
                lock.versions(&[crate::given::stream("s")]).await?;
                lock.append(&events("s", before + 1, before + 3), &[], None).await
            },
            polls,
        )
        .await;
        let after = settled_head(witness, &acme).await;
        assert!(after == before || after == before + 3, "from {before} to {after} after {polls} polls");
        append(db, &acme, after, vec![event("s", after + 1)]).await;
        assert_eq!(log(db, acme.number).await.len() as u64, after + 1);
        if let Some(ended) = ended {
            ended.expect("an append that was not dropped");
            break;
        }
        assert!(polls < POLLS_MAX, "a locked append must come to its end");
    }
}

pub async fn a_page_dropped_midway_is_whole_or_nothing(subject: &dyn Subject) {
    let (db, witness) = (subject.first(), subject.second());
    let acme = tenant(db, "acme").await;
    let key = row(db, &acme, "p").await;
    let view = view(db, "v", 1).await;
    for polls in 1.. {
        let page = position(db, owner(), key).await;
        let pages = page.from.get() as usize;
        let ended = cut(
            async {
                let mut unit = begin_patiently(db, &page).await;
                unit.load(view, &[crate::given::key("d0")]).await?;
                unit.write(view, vec![write(&format!("d{pages}"), "x")]).await?;
                unit.finish(page.from.next(), &[letter(key, page.from.get() + 1, "p")]).await
            },
            polls,
        )
        .await;
        // Fencing waits until the page has ended, one way or the other.
        let found = position(witness, owner(), key).await.from.get() as usize;
        assert!(found == pages || found == pages + 1, "from {pages} to {found} after {polls} polls");
        assert_eq!(documents(db, set(view, key)).await.len(), found, "documents go with the progress");
        let letters = db.dead_letters(acme.number, 10_000).await.expect("dead letters");
        assert_eq!(letters.len(), found, "dead letters go with the progress");
        if let Some(ended) = ended {
            ended.expect("a page that was not dropped");
            assert_eq!(found, pages + 1);
            break;
        }
        assert!(polls < POLLS_MAX, "a page must come to its end");
    }
    assert!(progress(db, key).await.is_some_and(|row| row.sequence > seq(0)));
}

/// Begins a page whose forerunner may still be on its way out.
async fn begin_patiently(
    db: &Db,
    page: &bellwether_storage::PageStart,
) -> Box<dyn bellwether_storage::UnitOfWork> {
    let patience = Patience::new();
    loop {
        match db.begin(page).await {
            Ok(unit) => return unit,
            Err(error) if error.kind() == ErrorKind::Unavailable => patience.pause("the row").await,
            Err(error) => panic!("beginning a page failed: {error:?}"),
        }
    }
}

pub async fn a_read_dropped_midway_leaves_the_next_one_right(subject: &dyn Subject) {
    let db = subject.first();
    let (a, b) = (tenant(db, "a").await, tenant(db, "b").await);
    append(db, &a, 0, events("of-a", 1, 30)).await;
    append(db, &b, 0, events("of-b", 1, 20)).await;
    for polls in 1.. {
        // The answer to the dropped question must never be taken for the answer to the next one.
        let ended = cut(db.read_page(&everything(a.number, 0)), polls).await;
        let found = log(db, b.number).await;
        assert!(
            found.len() == 20 && found.iter().all(|event| event.stream.as_str() == "of-b"),
            "after {polls} polls"
        );
        let heads = cut(db.moved_heads(None), polls).await;
        assert_eq!(db.find_tenant(&a.id).await.unwrap().as_ref(), Some(&a), "after {polls} polls");
        if ended.is_some() && heads.is_some() {
            return;
        }
        assert!(polls < POLLS_MAX, "a read must come to its end");
    }
}
