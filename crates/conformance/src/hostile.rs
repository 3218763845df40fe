//! Hostile names: refused clearly, or kept exactly apart, through every port.

use std::collections::BTreeMap;

use bellwether_storage::{
    DocumentKey, Error, ErrorKind, EventType, PageQuery, ProgressKey, ProjectionName, StreamId, StreamQuery,
    TenantId, Timestamp, ViewName,
};

use crate::Subject;
use crate::given::{
    PLENTY, append, event, everything, kind, log, owner, position, progress, row, seq, set, tenant, ver, view,
};
use crate::unit::letter;

/// Names that broke somebody's store: quotes, wildcards, control characters, length, case, normal forms, white space, SQL.
fn names() -> Vec<String> {
    let plain = [
        "it's",
        "it''s",
        "\"quoted\"",
        "`tick`",
        "50%",
        "%",
        "a_b",
        "axb",
        "a-b",
        "ab",
        "_",
        "?",
        "$1",
        "$$",
        ":a",
        "@a",
        "{}",
        "%s",
        "\\",
        "\\x00",
        "\\'",
        "\0",
        "nul\0byte",
        "nul",
        "line\nbreak",
        "tab\t",
        "\u{7f}",
        "\u{85}",
        "Case",
        "case",
        "CASE",
        "cASE",
        "\u{e9}",
        "e\u{301}",
        "\u{c5}",
        "A\u{30a}",
        "\u{212b}",
        "ß",
        "ss",
        "SS",
        "ẞ",
        "ﬀ",
        "ff",
        "İ",
        "i",
        "I",
        "ı",
        "i\u{307}",
        "Σ",
        "σ",
        "ς",
        " ",
        "a",
        " a",
        "a ",
        "a  ",
        "a\u{a0}",
        "\u{200b}",
        "a\u{200b}",
        "\u{202e}abc",
        "\u{feff}",
        "😀",
        "😁",
        "𝒳",
        "\u{10ffff}",
        "\u{fffd}",
        "\u{fffe}",
        "../../etc/passwd",
        "/",
        "//",
        "a/",
        "/a",
        "'; DROP TABLE events; --",
        "/* */",
        "--",
        "null",
        "NULL",
        "0",
        "00",
        "-1",
        "1e3",
        "true",
        "",
    ];
    let mut names: Vec<String> = plain.map(String::from).into();
    for length in [62, 63, 64, 127, 128, 129, 511, 512, 513, 1023, 1024, 1025, 10_000] {
        names.push("x".repeat(length));
        names.push("y".repeat(length - 1) + "z");
    }
    for length in [32, 33, 128, 129, 256, 257, 10_000] {
        names.push("😀".repeat(length));
    }
    names
}

/// The names a checked constructor accepts, each judged: what is refused is refused clearly, what is accepted is kept as it is.
fn accepted<T>(new: impl Fn(&str) -> Result<T, Error>, shown: impl Fn(&T) -> &str) -> Vec<T> {
    let mut accepted = Vec::new();
    for name in names() {
        match new(&name) {
            Ok(kept) => {
                assert_eq!(shown(&kept), name);
                assert!(
                    !name.is_empty() && name.len() < 10_000 && !name.contains('\0'),
                    "{name:?} must be refused"
                );
                accepted.push(kept);
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Rejected, "{name:?}: {error:?}");
                assert!(error.to_string().len() < 1_000, "a refusal never repeats a huge input");
            }
        }
    }
    accepted
}

pub async fn tenant_ids_are_refused_or_kept_apart(subject: &dyn Subject) {
    let db = subject.first();
    let mut ids = accepted(|name| TenantId::new(name), TenantId::as_str);
    ids.extend(["a__b", "a_c", "a-c", "0-", "x_"].map(|id| TenantId::new(id).unwrap()));
    assert!(ids.len() > 10, "{ids:?}");
    let mut made = Vec::new();
    for (index, id) in ids.iter().enumerate() {
        assert_eq!(db.find_tenant(id).await.unwrap(), None, "{id} is nobody yet");
        let entry = tenant(db, id.as_str()).await;
        append(db, &entry, 0, (1..=1 + index as u64).map(|n| event("s", n)).collect()).await;
        made.push(entry);
    }
    for (index, (id, entry)) in ids.iter().zip(&made).enumerate() {
        assert_eq!(subject.second().find_tenant(id).await.unwrap().as_ref(), Some(entry));
        assert_eq!(log(subject.second(), entry.number).await.len(), index + 1, "the log of {id}");
    }
    let heads = db.moved_heads(None).await.unwrap().heads;
    let found: BTreeMap<_, _> = heads.into_iter().map(|head| (head.id, head.head.get())).collect();
    assert_eq!(found, ids.into_iter().zip(1..).collect());
}

pub async fn stream_names_are_refused_or_kept_apart(subject: &dyn Subject) {
    let db = subject.first();
    let acme = tenant(db, "acme").await;
    let streams = accepted(|name| StreamId::new(name), StreamId::as_str);
    assert!(streams.len() > 60);
    // Every other one is written, so that a name that is taken for its neighbour shows.
    let count = |index: usize| if index.is_multiple_of(2) { 1 + index as u64 % 5 } else { 0 };
    let mut sent = Vec::new();
    for (index, stream) in streams.iter().enumerate() {
        for version in 1..=count(index) {
            sent.push(bellwether_storage::NewEvent {
                stream: stream.clone(),
                ..event("placeholder", version)
            });
        }
    }
    append(db, &acme, 0, sent.clone()).await;
    let found = log(subject.second(), acme.number).await;
    assert!(found.iter().map(|event| &event.stream).eq(sent.iter().map(|event| &event.stream)));
    let versions = subject.second().stream_versions(acme.number, &streams).await.unwrap().streams;
    for (index, stream) in streams.iter().enumerate() {
        assert_eq!(versions[index].version.get(), count(index), "version of {stream:?}");
        let query =
            StreamQuery { tenant: acme.number, stream, after: ver(0), events_max: 100, bytes_max: PLENTY };
        let page = db.read_stream(&query).await.unwrap();
        assert_eq!(
            (page.version.get(), page.events.len() as u64),
            (count(index), count(index)),
            "page of {stream:?}"
        );
        assert!(page.events.iter().all(|event| event.stream == *stream));
    }
    // The same through the lock.
    let mut lock = db.lock_head(acme.number, crate::given::PATIENCE).await.unwrap();
    let locked = lock.versions(&streams).await.unwrap().streams;
    assert_eq!(locked, versions);
    let sent: Vec<_> = (streams.iter().enumerate())
        .map(|(index, stream)| bellwether_storage::NewEvent {
            stream: stream.clone(),
            ..event("p", count(index) + 1)
        })
        .collect();
    lock.append(&sent, &[], None).await.unwrap();
    let versions = db.stream_versions(acme.number, &streams).await.unwrap().streams;
    assert!(versions.iter().enumerate().all(|(index, state)| state.version.get() == count(index) + 1));
}

pub async fn event_types_are_refused_or_kept_apart(subject: &dyn Subject) {
    let db = subject.first();
    let acme = tenant(db, "acme").await;
    let types = accepted(|name| EventType::new(name), EventType::as_str);
    assert!(types.len() > 60);
    let sent = types.iter().zip(1..).map(|(event_type, version)| bellwether_storage::NewEvent {
        event_type: event_type.clone(),
        ..event("s", version)
    });
    append(db, &acme, 0, sent.collect()).await;
    let found = log(subject.second(), acme.number).await;
    assert!(found.iter().map(|event| &event.event_type).eq(&types));
    for (index, event_type) in types.iter().enumerate() {
        let query = PageQuery { types: Some(std::slice::from_ref(event_type)), ..everything(acme.number, 0) };
        let page = db.read_page(&query).await.unwrap();
        let sequences: Vec<_> = page.events.iter().map(|event| event.sequence.get()).collect();
        assert_eq!(sequences, [index as u64 + 1], "only {event_type:?} itself");
    }
    let all = PageQuery { types: Some(&types), ..everything(acme.number, 0) };
    assert_eq!(db.read_page(&all).await.unwrap().events, found);
}

pub async fn document_keys_are_refused_or_kept_apart(subject: &dyn Subject) {
    let db = subject.first();
    let acme = tenant(db, "acme").await;
    let mut keys = accepted(|name| DocumentKey::new(name), DocumentKey::as_str);
    keys.sort_unstable();
    assert!(keys.len() > 60);
    let view = view(db, "v", 1).await;
    let page = position(db, owner(), row(db, &acme, "p").await).await;
    let set = set(view, page.key);
    let written: Vec<_> = keys.iter().step_by(2).cloned().collect();
    let writes = written.iter().map(|key| bellwether_storage::DocumentWrite {
        key: key.clone(),
        body: Some(key.as_str().to_owned().into()),
    });
    let mut unit = db.begin(&page).await.unwrap();
    unit.write(view, writes.collect()).await.unwrap();
    let loaded = unit.load(view, &keys).await.unwrap();
    assert_eq!(loaded.len(), written.len(), "inside the page, only what was written is there");
    unit.finish(seq(1), &[]).await.unwrap();
    let listed = subject.second().list(set, None, 10_000).await.unwrap();
    assert!(listed.iter().map(|document| &document.key).eq(&written), "listed in byte order");
    assert!(listed.iter().all(|document| document.body == document.key.as_str()));
    for key in &keys {
        let found = db.load(set, std::slice::from_ref(key)).await.unwrap();
        let expected = usize::from(written.contains(key));
        assert_eq!(found.len(), expected, "document {key:?}");
        // Whatever the key, what comes after it is larger byte for byte.
        let after = db.list(set, Some(key), 1).await.unwrap();
        let next = written.iter().find(|other| *other > key);
        assert_eq!(after.first().map(|document| &document.key), next, "after {key:?}");
    }
}

pub async fn projection_names_are_refused_or_kept_apart(subject: &dyn Subject) {
    let db = subject.first();
    let acme = tenant(db, "acme").await;
    let names = accepted(|name| ProjectionName::new(name), ProjectionName::as_str);
    assert!(names.len() > 60);
    let mut numbers = Vec::new();
    for name in &names {
        let number = db.ensure_projection(name).await.unwrap();
        assert!(!numbers.contains(&number), "{name:?} shares a number with another");
        numbers.push(number);
    }
    for (index, (name, number)) in names.iter().zip(&numbers).enumerate() {
        assert_eq!(
            subject.second().ensure_projection(name).await.unwrap(),
            *number,
            "{name:?} keeps its number"
        );
        let key = ProgressKey { projection: *number, ..row(db, &acme, "p").await };
        let page = position(db, owner(), key).await;
        db.begin(&page).await.unwrap().finish(seq(index as u64), &[]).await.unwrap();
    }
    for (index, number) in numbers.iter().enumerate() {
        let key = ProgressKey { projection: *number, ..row(db, &acme, "p").await };
        assert_eq!(progress(db, key).await.map(|row| row.sequence), Some(seq(index as u64)));
    }
}

pub async fn view_names_are_refused_or_kept_apart(subject: &dyn Subject) {
    let db = subject.first();
    let acme = tenant(db, "acme").await;
    let names = accepted(|name| ViewName::new(name), ViewName::as_str);
    assert!(names.len() > 60);
    let page = position(db, owner(), row(db, &acme, "p").await).await;
    let mut views = Vec::new();
    for name in &names {
        let view = db.ensure_view(name, 1).await.unwrap();
        assert!(!views.contains(&view), "{name:?} shares a table with another");
        views.push(view);
    }
    let mut unit = db.begin(&page).await.unwrap();
    for (name, view) in names.iter().zip(&views) {
        unit.write(*view, vec![crate::given::write("same key", name.as_str().to_owned())]).await.unwrap();
    }
    unit.finish(seq(1), &[]).await.unwrap();
    for (name, view) in names.iter().zip(&views) {
        assert_eq!(subject.second().ensure_view(name, 1).await.unwrap(), *view, "{name:?} keeps its table");
        let found = subject.second().list(set(*view, page.key), None, 10).await.unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].body, name.as_str());
    }
}

pub async fn texts_of_dead_letters_are_refused_or_kept(subject: &dyn Subject) {
    let db = subject.first();
    let acme = tenant(db, "acme").await;
    let key = row(db, &acme, "p").await;
    let mut kept = Vec::new();
    for (index, text) in names().into_iter().enumerate() {
        let mut sent = letter(key, index as u64 + 1, &text);
        (sent.class, sent.reason) = (text.clone(), text.clone());
        let page = position(db, owner(), key).await;
        let answered =
            db.begin(&page).await.unwrap().finish(page.from.next(), std::slice::from_ref(&sent)).await;
        let moved = progress(db, key).await.unwrap().sequence;
        match kind(&answered) {
            None => {
                assert_eq!(moved, page.from.next());
                kept.push(sent);
            }
            Some(ErrorKind::Rejected) => assert_eq!(moved, page.from, "a refused page moves nothing"),
            Some(_) => panic!("a letter of {text:?} was answered {answered:?}"),
        }
    }
    assert!(kept.len() > 60, "only {} letters were kept", kept.len());
    let mut found = subject.second().dead_letters(acme.number, 10_000).await.unwrap();
    found.iter_mut().for_each(|letter| letter.at = Timestamp::default());
    assert_eq!(found, kept);
}
