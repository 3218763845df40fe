//! Appending a batch: one commit, an outcome per tenant, nothing of what was refused.

use std::time::Duration;

use bellwether_storage::{
    AppendOutcome, EVENT_BYTES_MAX, EVENTS_PER_APPEND_MAX, Encoding, ErrorKind, HEADERS_BYTES_MAX, Place,
    Sequence, ServerIdentity, Timestamp,
};
use bytes::Bytes;

use crate::Subject;
use crate::given::{
    PATIENCE, append, batch, entry, event, events, head, kind, log, nobody, outcome, refusal, seq, tenant,
    typed,
};

pub async fn events_come_back_as_they_went_in(subject: &dyn Subject) {
    let db = subject.first();
    let acme = tenant(db, "acme").await;
    let mut sent = vec![event("account/1", 1), typed("account/2", 1, "Opened", "{}"), event("account/1", 2)];
    sent[1].encoding = Encoding::Json;
    sent[1].headers = Bytes::from_static(b"\x81\xa4user\xa3ann");
    append(db, &acme, 0, sent.clone()).await;
    for handle in [db, subject.second()] {
        let found = log(handle, acme.number).await;
        assert_eq!(found.len(), sent.len());
        for (index, (found, sent)) in found.iter().zip(&sent).enumerate() {
            assert_eq!(found.sequence.get(), index as u64 + 1);
            assert_eq!((&found.stream, found.version, found.id), (&sent.stream, sent.version, sent.id));
            assert_eq!((&found.event_type, found.encoding), (&sent.event_type, sent.encoding));
            assert_eq!((&found.body, &found.headers), (&sent.body, &sent.headers));
            assert_eq!(found.size(), sent.size());
        }
        assert!(found.windows(2).all(|pair| pair[0].at == pair[1].at), "one append has one time");
    }
}

pub async fn a_batch_answers_each_tenant_in_order(subject: &dyn Subject) {
    let db = subject.first();
    let mut tenants = Vec::new();
    for index in 0..40 {
        tenants.push(tenant(db, &format!("t{index}")).await);
    }
    tenants.sort_by_key(|tenant| tenant.number);
    // Every third entry is stale, the last one is nobody's.
    let stale = |index: usize| index % 3 == 2;
    let mut sent: Vec<_> = (tenants.iter().enumerate())
        .map(|(index, tenant)| {
            entry(tenant, if stale(index) { 7 } else { 0 }, events("s", 1, 1 + index as u64 % 2))
        })
        .collect();
    sent.push(entry(&nobody(), 0, vec![event("s", 1)]));
    let receipt = db.append(&batch(sent)).await.unwrap();
    assert_eq!(receipt.outcomes.len(), 41);
    for (index, tenant) in tenants.iter().enumerate() {
        let appended = log(subject.second(), tenant.number).await.len();
        match &receipt.outcomes[index] {
            AppendOutcome::Done { .. } if !stale(index) => assert_eq!(appended, 1 + index % 2),
            AppendOutcome::Stale { head, place } if stale(index) => {
                assert_eq!((*head, *place, appended), (Sequence::ZERO, tenant.place, 0));
            }
            other => panic!("entry {index} was answered {other:?}"),
        }
    }
    assert_eq!(receipt.outcomes[40], AppendOutcome::NoTenant);
}

pub async fn a_stale_head_is_refused_and_nothing_stays(subject: &dyn Subject) {
    let db = subject.first();
    let acme = tenant(db, "acme").await;
    append(subject.second(), &acme, 0, events("s", 1, 3)).await;
    for wrong in [0, 1, 2, 4, 1 << 40] {
        let refused = outcome(db, &acme, wrong, vec![event("other", 1)]).await.unwrap();
        assert_eq!(
            refused,
            AppendOutcome::Stale { head: seq(3), place: acme.place },
            "expected head {wrong}"
        );
        assert_eq!(log(db, acme.number).await.len(), 3);
    }
    append(db, &acme, 3, vec![event("other", 1)]).await;
    assert_eq!(head(subject.second(), acme.number).await, 4);
}

pub async fn a_stale_place_is_refused_and_nothing_stays(subject: &dyn Subject) {
    let db = subject.first();
    let acme = tenant(db, "acme").await;
    let mut elsewhere = acme.clone();
    elsewhere.place = Place(acme.place.0 + 1);
    let refused = outcome(db, &elsewhere, 0, vec![event("s", 1)]).await.unwrap();
    assert_eq!(refused, AppendOutcome::Stale { head: seq(0), place: acme.place });
    assert_eq!(log(db, acme.number).await, []);
}

pub async fn a_locked_head_is_busy(subject: &dyn Subject) {
    let db = subject.first();
    let acme = tenant(db, "acme").await;
    let lock = subject.second().lock_head(acme.number, PATIENCE).await.unwrap();
    let answered =
        tokio::time::timeout(Duration::from_secs(20), outcome(db, &acme, 0, vec![event("s", 1)])).await;
    let answered = answered.expect("an append must not wait for a head");
    assert_eq!(answered.unwrap(), AppendOutcome::Busy);
    lock.append(&[event("s", 1)], &[], None).await.unwrap();
    let after = outcome(db, &acme, 0, vec![event("s", 1)]).await.unwrap();
    assert_eq!(after, AppendOutcome::Stale { head: seq(1), place: acme.place }, "the lock is free again");
}

pub async fn the_others_of_a_batch_go_in_beside_a_busy_one(subject: &dyn Subject) {
    let db = subject.first();
    let (a, b, c) = (tenant(db, "a").await, tenant(db, "b").await, tenant(db, "c").await);
    let lock = subject.second().lock_head(b.number, PATIENCE).await.unwrap();
    let sent = batch([&a, &b, &c].map(|tenant| entry(tenant, 0, vec![event("s", 1)])).into());
    let receipt = tokio::time::timeout(Duration::from_secs(20), db.append(&sent))
        .await
        .expect("no wait for a head")
        .unwrap();
    assert!(
        matches!(
            receipt.outcomes[..],
            [AppendOutcome::Done { .. }, AppendOutcome::Busy, AppendOutcome::Done { .. }]
        ),
        "{:?}",
        receipt.outcomes
    );
    lock.append(&events("s", 1, 2), &[], None).await.unwrap();
    for (tenant, expected) in [(&a, 1), (&b, 2), (&c, 1)] {
        assert_eq!(log(db, tenant.number).await.len(), expected);
    }
}

pub async fn a_closed_tenant_takes_no_events(subject: &dyn Subject) {
    let db = subject.first();
    let (acme, open) = (tenant(db, "acme").await, tenant(db, "open").await);
    append(db, &acme, 0, vec![event("s", 1)]).await;
    subject.set_open(acme.number, false).await;
    let sent = batch(vec![entry(&acme, 1, vec![event("s", 2)]), entry(&open, 0, vec![event("s", 1)])]);
    let outcomes = db.append(&sent).await.unwrap().outcomes;
    assert!(matches!(outcomes[..], [AppendOutcome::Closed, AppendOutcome::Done { .. }]), "{outcomes:?}");
    assert!(!db.find_tenant(&acme.id).await.unwrap().unwrap().open);
    let lock = subject.second().lock_head(acme.number, PATIENCE).await.unwrap();
    assert!(!lock.state().open, "the lock says that the tenant is closed");
    drop(lock);
    assert_eq!(log(db, acme.number).await.len(), 1, "a closed tenant can still be read");
    subject.set_open(acme.number, true).await;
    append(db, &acme, 1, vec![event("s", 2)]).await;
}

pub async fn a_refused_row_undoes_the_whole_batch(subject: &dyn Subject) {
    let db = subject.first();
    let (a, b) = (tenant(db, "a").await, tenant(db, "b").await);
    append(db, &b, 0, vec![event("s", 1)]).await;
    // Version 1 of stream s is taken.
    let mixed = vec![event("t", 1), event("s", 1), event("t", 2)];
    let refused = db.append(&batch(vec![entry(&a, 0, events("s", 1, 2)), entry(&b, 1, mixed.clone())])).await;
    assert_eq!(kind(&refused), Some(ErrorKind::Rejected), "{:?}", refused.err());
    assert_eq!((head(db, a.number).await, head(db, b.number).await), (0, 1));
    assert_eq!(log(subject.second(), a.number).await, []);
    assert_eq!(log(subject.second(), b.number).await.len(), 1);
    // The same twice within one entry.
    let twice = batch(vec![entry(&a, 0, vec![event("u", 1), event("u", 1)])]);
    assert_eq!(refusal(db, &twice).await, Some(ErrorKind::Rejected));
    // Alone, the innocent goes in, and no number is lost.
    append(db, &a, 0, events("s", 1, 2)).await;
    assert_eq!(log(db, a.number).await.len(), 2);
}

pub async fn a_batch_sent_again_is_resolved_by_its_head(subject: &dyn Subject) {
    let db = subject.first();
    let acme = tenant(db, "acme").await;
    let sent = events("s", 1, 3);
    append(db, &acme, 0, sent.clone()).await;
    let again = outcome(subject.second(), &acme, 0, sent.clone()).await.unwrap();
    assert_eq!(again, AppendOutcome::Stale { head: seq(3), place: acme.place });
    let ids: Vec<_> = log(subject.second(), acme.number).await.iter().map(|event| event.id).collect();
    assert_eq!(
        ids,
        sent.iter().map(|event| event.id).collect::<Vec<_>>(),
        "the own ids are found after the expected head"
    );
}

pub async fn raced_batches_on_one_head_have_one_winner(subject: &dyn Subject) {
    let acme = tenant(subject.first(), "acme").await;
    for round in 0..20u64 {
        let racers = (0..4).map(|racer| {
            let db = if racer % 2 == 0 { subject.first() } else { subject.second() }.clone();
            let acme = acme.clone();
            tokio::spawn(async move {
                outcome(&db, &acme, round, vec![event(&format!("r{racer}"), round + 1)]).await
            })
        });
        let mut winners = 0;
        for racer in racers.collect::<Vec<_>>() {
            match racer.await.unwrap() {
                Ok(AppendOutcome::Done { .. }) => winners += 1,
                Ok(AppendOutcome::Busy | AppendOutcome::Stale { .. }) => {}
                Err(error) if matches!(error.kind(), ErrorKind::Conflict | ErrorKind::Unavailable) => {}
                other => panic!("a raced append was answered {other:?}"),
            }
        }
        assert!(winners <= 1, "{winners} appends went in under one expected head");
        if winners == 0 {
            append(subject.first(), &acme, round, vec![event("nobody-won", round + 1)]).await;
        }
        assert_eq!(head(subject.second(), acme.number).await, round + 1);
    }
    assert_eq!(log(subject.first(), acme.number).await.len(), 20);
}

pub async fn the_largest_append_goes_in(subject: &dyn Subject) {
    let db = subject.first();
    let acme = tenant(db, "acme").await;
    let count = EVENTS_PER_APPEND_MAX as u64;
    let lock = db.lock_head(acme.number, PATIENCE).await.unwrap();
    lock.append(&events("s", 1, count), &[], None).await.unwrap();
    append(db, &acme, count, events("t", 1, count)).await;
    let found = log(subject.second(), acme.number).await;
    assert_eq!(found.len() as u64, 2 * count);
    assert!(found.iter().enumerate().all(|(index, event)| event.version.get() == index as u64 % count + 1));
}

pub async fn bodies_of_every_byte_empty_and_four_mebibytes_survive(subject: &dyn Subject) {
    let db = subject.first();
    let acme = tenant(db, "acme").await;
    let every_byte: Vec<u8> = (0..=255).collect();
    let mut sent = vec![
        typed("every-byte", 1, "Raw", every_byte.clone()),
        typed("empty", 1, "Raw", Bytes::new()),
        typed("nul", 1, "Raw", vec![0u8; 1]),
        typed("headers", 1, "Raw", Bytes::new()),
    ];
    sent[0].headers = every_byte.repeat(HEADERS_BYTES_MAX / 256).into();
    append(db, &acme, 0, sent.clone()).await;
    // Not compressible, so that it is as large inside as outside.
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let noise = std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 56) as u8
    });
    let large: Vec<u8> = noise.take(EVENT_BYTES_MAX).collect();
    sent.push(typed("large", 1, "Raw", large));
    append(db, &acme, 4, sent[4..].to_vec()).await;
    let found = log(subject.second(), acme.number).await;
    for (found, sent) in found.iter().zip(&sent) {
        assert!(
            found.body == sent.body && found.headers == sent.headers,
            "{} came back changed",
            sent.stream
        );
    }
    assert_eq!(found.len(), 5);
}

pub async fn a_batch_decided_on_another_server_is_refused(subject: &dyn Subject) {
    let db = subject.first();
    let acme = tenant(db, "acme").await;
    let here = db.identity().await.unwrap();
    let mut sent = batch(vec![entry(&acme, 0, vec![event("s", 1)])]);
    let elsewhere = [
        ServerIdentity { system: format!("{}-other", here.system), ..here.clone() },
        ServerIdentity { timeline: here.timeline + 1, ..here.clone() },
        ServerIdentity {
            started_at: Timestamp::from_micros(here.started_at.as_micros() + 1),
            ..here.clone()
        },
    ];
    for identity in elsewhere {
        sent.identity = Some(identity);
        assert_eq!(refusal(db, &sent).await, Some(ErrorKind::Unavailable));
        assert_eq!(log(subject.second(), acme.number).await.len(), 0);
    }
    sent.identity = Some(here);
    let receipt = db.append(&sent).await.unwrap();
    assert!(matches!(receipt.outcomes[..], [AppendOutcome::Done { .. }]), "{:?}", receipt.outcomes);
}
