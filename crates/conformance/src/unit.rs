//! The unit of work of a page: all of it or nothing, and only by its owner.

use bellwether_storage::{
    Build, DeadLetter, Error, ErrorKind, Generation, Owner, PageStart, ProgressKey, Sequence, Timestamp,
    UnitOfWork, ViewNo,
};
use uuid::Uuid;

use crate::Subject;
use crate::given::{
    Db, Patience, delete, documents, key, kind, owner, position, progress, progress_of, row, seq, set,
    tenant, view, write,
};

/// A dead letter of a row.
pub(crate) fn letter(key: ProgressKey, sequence: u64, member: &str) -> DeadLetter {
    DeadLetter {
        key,
        sequence: seq(sequence),
        member: member.into(),
        event_id: Uuid::from_u128(u128::from(sequence)),
        event_type: bellwether_storage::EventType::new("Happened").expect("an event type"),
        class: "apply".into(),
        reason: format!("no way at {sequence}"),
        at: Timestamp::default(),
    }
}

/// A projection with a view, positioned.
struct Scene {
    view: ViewNo,
    page: PageStart,
}

async fn scene(db: &Db, tenant_name: &str) -> Scene {
    let acme = tenant(db, tenant_name).await;
    let key = row(db, &acme, "p").await;
    Scene { view: view(db, "v", 1).await, page: position(db, owner(), key).await }
}

impl Scene {
    /// Documents, sequence and number of dead letters, as another process sees them.
    async fn found(&self, db: &Db) -> (Vec<String>, u64, usize) {
        let documents = documents(db, set(self.view, self.page.key)).await;
        let bodies =
            documents.into_iter().map(|(key, body)| format!("{key}={}", String::from_utf8_lossy(&body)));
        let progress = progress(db, self.page.key).await.expect("a positioned row");
        let letters = db.dead_letters(self.page.key.tenant, 1_000).await.expect("dead letters");
        (bodies.collect(), progress.sequence.get(), letters.len())
    }
}

pub async fn a_page_commits_as_a_whole(subject: &dyn Subject) {
    let db = subject.first();
    let mut scene = scene(db, "acme").await;
    for round in 0..3u64 {
        let to = (round + 1) * 10;
        let mut unit = db.begin(&scene.page).await.unwrap();
        unit.write(scene.view, vec![write("a", format!("{round}")), write(&format!("r{round}"), "x")])
            .await
            .unwrap();
        unit.write(scene.view, vec![write("b", format!("{round}"))]).await.unwrap();
        unit.finish(seq(to), &[letter(scene.page.key, to - 1, "p")]).await.unwrap();
        let (documents, sequence, letters) = scene.found(subject.second()).await;
        assert_eq!((sequence, letters as u64), (to, round + 1));
        assert_eq!(documents.len() as u64, 3 + round);
        assert_eq!(documents[..2], [format!("a={round}"), format!("b={round}")]);
        assert_eq!(progress(db, scene.page.key).await, Some(progress_of(&scene.page, to)));
        scene.page.from = seq(to);
    }
}

pub async fn a_page_that_does_not_finish_leaves_nothing(subject: &dyn Subject) {
    let db = subject.first();
    let mut scene = scene(db, "acme").await;
    let mut unit = db.begin(&scene.page).await.unwrap();
    unit.write(scene.view, vec![write("kept", "1"), write("gone", "1")]).await.unwrap();
    unit.finish(seq(5), &[]).await.unwrap();
    scene.page.from = seq(5);
    let before = (vec!["gone=1".to_owned(), "kept=1".to_owned()], 5, 0);
    // Given up after each step, by drop and by roll-back.
    for (steps, dropped) in (0..4).flat_map(|steps| [(steps, true), (steps, false)]) {
        let mut unit = begin_again(db, &scene.page).await;
        if steps > 0 {
            unit.write(scene.view, vec![write("kept", "2"), delete("gone"), write("new", "1")])
                .await
                .unwrap();
        }
        if steps > 1 {
            unit.load(scene.view, &[key("kept"), key("gone"), key("new")]).await.unwrap();
        }
        if steps > 2 {
            unit.write(scene.view, vec![write("newer", "1")]).await.unwrap();
        }
        if dropped {
            drop(unit);
        } else {
            unit.roll_back().await;
        }
        assert_eq!(
            scene.found(subject.second()).await,
            before,
            "given up after {steps} steps, dropped: {dropped}"
        );
    }
    begin_again(db, &scene.page).await.finish(seq(6), &[]).await.unwrap();
}

/// Begins a page whose forerunner may still be on its way out.
async fn begin_again(db: &Db, page: &PageStart) -> Box<dyn UnitOfWork> {
    let patience = Patience::new();
    loop {
        match db.begin(page).await {
            Ok(unit) => return unit,
            Err(error) if error.kind() == ErrorKind::Unavailable => {
                patience.pause("the row to be free").await
            }
            Err(error) => panic!("beginning a page failed: {error:?}"),
        }
    }
}

/// Begins, writes and finishes; what a store must refuse at some point before the end.
async fn whole_page(db: &Db, view: ViewNo, page: &PageStart) -> Result<(), Error> {
    let mut unit = db.begin(page).await?;
    unit.write(view, vec![write("intruder", "1")]).await?;
    unit.finish(seq(page.from.get() + 10), &[letter(page.key, page.from.get() + 1, "p")]).await
}

pub async fn a_stale_page_is_refused_and_nothing_stays(subject: &dyn Subject) {
    let db = subject.first();
    let mut scene = scene(db, "acme").await;
    let key = scene.page.key;
    db.begin(&scene.page).await.unwrap().finish(seq(7), &[]).await.unwrap();
    // Fenced twice more, so that a smaller and a larger generation and another owner exist.
    let old = scene.page;
    position(subject.second(), owner(), key).await;
    scene.page = position(subject.second(), owner(), key).await;
    let current = scene.page;
    assert_eq!(current.from, seq(7));
    let stale = [
        PageStart { from: seq(7), ..old },
        PageStart { generation: old.generation, ..current },
        PageStart { generation: Generation(current.generation.0 - 1), ..current },
        PageStart { generation: Generation(current.generation.0 + 1), ..current },
        PageStart { owner: old.owner, ..current },
        PageStart { owner: Owner(Uuid::nil()), ..current },
        PageStart { from: seq(0), ..current },
        PageStart { from: seq(6), ..current },
        PageStart { from: seq(8), ..current },
    ];
    for page in stale {
        let refused = whole_page(db, scene.view, &page).await;
        assert_eq!(kind(&refused), Some(ErrorKind::Fenced), "{page:?} against {current:?}: {refused:?}");
        assert_eq!(scene.found(subject.second()).await, (vec![], 7, 0), "{page:?}");
        assert_eq!(progress(db, key).await, Some(progress_of(&current, 7)));
    }
    whole_page(db, scene.view, &current).await.expect("the owner goes on");
    // A blind repetition of a page that went in is stale as well.
    assert_eq!(kind(&whole_page(db, scene.view, &current).await), Some(ErrorKind::Fenced));
    assert_eq!(scene.found(subject.second()).await, (vec!["intruder=1".to_owned()], 17, 1));
}

pub async fn a_page_without_a_row_is_refused(subject: &dyn Subject) {
    let db = subject.first();
    let scene = scene(db, "acme").await;
    for other in [
        ProgressKey { version: 2, ..scene.page.key },
        ProgressKey { build: Build(2), ..scene.page.key },
        ProgressKey { tenant: tenant(db, "other").await.number, ..scene.page.key },
        row(db, &tenant(db, "acme").await, "another").await,
    ] {
        let page = PageStart { key: other, ..scene.page };
        let refused = whole_page(db, scene.view, &page).await;
        assert_eq!(kind(&refused), Some(ErrorKind::Fenced), "{other:?}: {refused:?}");
        assert_eq!(progress(db, other).await, None, "a refused page makes no row");
        assert_eq!(documents(db, set(scene.view, other)).await, []);
    }
}

pub async fn two_pages_of_one_row_take_turns(subject: &dyn Subject) {
    let scene = scene(subject.first(), "acme").await;
    let mut from = 0;
    for round in 0..5 {
        let page = PageStart { from: seq(from), ..scene.page };
        let racers = [subject.first(), subject.second()].map(|db| {
            let (db, view) = (db.clone(), scene.view);
            tokio::spawn(async move {
                let patience = Patience::new();
                loop {
                    match whole_page(&db, view, &page).await {
                        Err(error) if error.kind() == ErrorKind::Unavailable => {
                            patience.pause("the row").await
                        }
                        other => return other,
                    }
                }
            })
        });
        let mut kinds = Vec::new();
        for racer in racers {
            kinds.push(kind(&racer.await.unwrap()));
        }
        kinds.sort_unstable_by_key(Option::is_some);
        assert_eq!(kinds, [None, Some(ErrorKind::Fenced)], "round {round}: one goes in, the other is stale");
        from += 10;
        assert_eq!(progress(subject.second(), scene.page.key).await, Some(progress_of(&page, from)));
    }
}

pub async fn pages_of_two_tenants_are_open_side_by_side(subject: &dyn Subject) {
    let db = subject.first();
    let (a, b) = (scene(db, "a").await, scene(db, "b").await);
    let mut open = db.begin(&a.page).await.unwrap();
    open.write(a.view, vec![write("d", "a")]).await.unwrap();
    let beside = tokio::time::timeout(
        std::time::Duration::from_secs(20),
        whole_page(subject.second(), b.view, &b.page),
    );
    beside.await.expect("a page must not wait for another tenant's").unwrap();
    assert_eq!(a.found(subject.second()).await, (vec![], 0, 0));
    open.finish(seq(3), &[]).await.unwrap();
    assert_eq!(a.found(subject.second()).await, (vec!["d=a".to_owned()], 3, 0));
    assert_eq!(b.found(subject.second()).await, (vec!["intruder=1".to_owned()], 10, 1));
}

pub async fn a_page_sees_its_own_writes_and_nobody_else_does(subject: &dyn Subject) {
    let db = subject.first();
    let mut scene = scene(db, "acme").await;
    let mut unit = db.begin(&scene.page).await.unwrap();
    unit.write(scene.view, vec![write("old", "1"), write("gone", "1")]).await.unwrap();
    unit.finish(seq(1), &[]).await.unwrap();
    scene.page.from = seq(1);
    let asked = ["absent", "gone", "new", "old"].map(key);
    let mut unit = db.begin(&scene.page).await.unwrap();
    assert_eq!(bodies(&mut *unit, scene.view, &asked).await, ["gone=1", "old=1"]);
    unit.write(scene.view, vec![write("old", "2"), delete("gone"), write("new", "2")]).await.unwrap();
    assert_eq!(bodies(&mut *unit, scene.view, &asked).await, ["new=2", "old=2"]);
    assert_eq!(scene.found(subject.second()).await.0, ["gone=1", "old=1"], "nobody else sees an open page");
    assert_eq!(bodies(&mut *unit, scene.view, &[]).await, [] as [String; 0]);
    unit.finish(seq(2), &[]).await.unwrap();
    assert_eq!(scene.found(subject.second()).await.0, ["new=2", "old=2"]);
}

async fn bodies(
    unit: &mut dyn UnitOfWork,
    view: ViewNo,
    keys: &[bellwether_storage::DocumentKey],
) -> Vec<String> {
    let found = unit.load(view, keys).await.expect("documents inside a page");
    let mut shown: Vec<_> =
        found.iter().map(|d| format!("{}={}", d.key, String::from_utf8_lossy(&d.body))).collect();
    shown.sort_unstable();
    shown
}

pub async fn a_page_can_end_anywhere_from_its_start(subject: &dyn Subject) {
    let db = subject.first();
    let mut scene = scene(db, "acme").await;
    for to in [0u64, 3, 3, 4, 100] {
        let mut unit = db.begin(&scene.page).await.unwrap();
        unit.write(scene.view, vec![write("d", format!("{to}"))]).await.unwrap();
        unit.finish(seq(to), &[]).await.unwrap();
        assert_eq!(scene.found(subject.second()).await, (vec![format!("d={to}")], to, 0));
        scene.page.from = seq(to);
    }
    assert_eq!(progress(db, scene.page.key).await.map_or(Sequence::ZERO, |row| row.sequence), seq(100));
}
