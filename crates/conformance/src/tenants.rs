//! Tenants: registered once, found by name, listed by number.

use bellwether_storage::{AppendOutcome, ErrorKind, StreamQuery, TenantId, TenantNo};

use crate::Subject;
use crate::given::{PLENTY, batch, entry, event, everything, head, kind, nobody, stream, tenant, ver};

pub async fn a_tenant_is_ensured_once(subject: &dyn Subject) {
    let (db, other) = (subject.first(), subject.second());
    let id = TenantId::new("acme").unwrap();
    assert_eq!(db.find_tenant(&id).await.unwrap(), None);
    let made = db.ensure_tenant(&id).await.unwrap();
    assert!(made.open && made.id == id, "a tenant starts open, under its name: {made:?}");
    for handle in [db, other] {
        assert_eq!(handle.ensure_tenant(&id).await.unwrap(), made);
        assert_eq!(handle.find_tenant(&id).await.unwrap(), Some(made.clone()));
    }
    assert_eq!(head(other, made.number).await, 0, "a tenant starts at head zero");
    assert_ne!(tenant(other, "acme-2").await.number, made.number);
}

pub async fn raced_ensures_make_one_tenant(subject: &dyn Subject) {
    let racers = (0..16).map(|index| {
        let db = if index % 2 == 0 { subject.first() } else { subject.second() };
        let db = db.clone();
        tokio::spawn(async move {
            // Half of them race for one name, all of them for the next number.
            let shared = tenant(&db, "shared").await;
            let own = tenant(&db, &format!("own-{index}")).await;
            assert_eq!(tenant(&db, "shared").await, shared);
            (shared.number, own.number)
        })
    });
    let mut shared = Vec::new();
    let mut own = Vec::new();
    for racer in racers.collect::<Vec<_>>() {
        let (one, another) = racer.await.unwrap();
        shared.push(one);
        own.push(another);
    }
    shared.dedup();
    assert_eq!(shared.len(), 1, "the shared name has one number: {shared:?}");
    own.push(shared[0]);
    own.sort_unstable();
    own.dedup();
    assert_eq!(own.len(), 17, "every name has a number of its own");
    assert_eq!(subject.first().list_tenants(None, 100).await.unwrap().len(), 17);
}

pub async fn tenants_are_listed_by_number_in_pages(subject: &dyn Subject) {
    let db = subject.first();
    let mut made = Vec::new();
    for index in 0..25 {
        made.push(tenant(db, &format!("tenant-{}", 25 - index)).await);
    }
    made.sort_by_key(|tenant| tenant.number);
    let mut listed = Vec::new();
    let mut after: Option<TenantNo> = None;
    loop {
        let page = subject.second().list_tenants(after, 10).await.unwrap();
        assert!(page.len() <= 10, "a page holds at most its limit");
        let Some(last) = page.last() else { break };
        after = Some(last.number);
        listed.extend(page);
    }
    assert_eq!(listed, made);
    assert_eq!(db.list_tenants(Some(TenantNo(i32::MAX)), 10).await.unwrap(), []);
    assert_eq!(db.list_tenants(None, 0).await.unwrap(), []);
}

pub async fn an_unknown_tenant_is_refused_by_every_port(subject: &dyn Subject) {
    let db = subject.first();
    let known = tenant(db, "known").await;
    let unknown = nobody();
    assert_eq!(db.find_tenant(&unknown.id).await.unwrap(), None);
    for number in [unknown.number, TenantNo(-1), TenantNo(0), TenantNo(i32::MIN)] {
        let query = StreamQuery {
            tenant: number,
            stream: &stream("s"),
            after: ver(0),
            events_max: 1,
            bytes_max: PLENTY,
        };
        assert_eq!(
            kind(&db.read_page(&everything(number, 0)).await),
            Some(ErrorKind::Rejected),
            "a page of {number:?}"
        );
        assert_eq!(kind(&db.read_stream(&query).await), Some(ErrorKind::Rejected), "a stream of {number:?}");
        let versions = db.stream_versions(number, &[stream("s")]).await;
        assert_eq!(kind(&versions), Some(ErrorKind::Rejected), "versions of {number:?}");
        let lock = db.lock_head(number, std::time::Duration::from_secs(5)).await;
        assert_eq!(kind(&lock), Some(ErrorKind::Rejected), "a lock of {number:?}");
        assert_eq!(db.dead_letters(number, 10).await.unwrap(), []);
    }
    let both = batch(vec![entry(&known, 0, vec![event("s", 1)]), entry(&unknown, 0, vec![event("s", 1)])]);
    let outcomes = db.append(&both).await.unwrap().outcomes;
    assert!(
        matches!(outcomes[..], [AppendOutcome::Done { .. }, AppendOutcome::NoTenant]),
        "the known one goes in: {outcomes:?}"
    );
    assert_eq!(head(db, known.number).await, 1);
}
