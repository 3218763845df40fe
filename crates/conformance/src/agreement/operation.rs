//! What may be done, drawn at random: small numbers, so that operations meet.

use proptest::prelude::*;

/// One operation, relative to the state it will meet.
#[derive(Debug, Clone)]
pub(super) enum Operation {
    /// A batch; one entry per tenant.
    Append { handle: usize, entries: Vec<Entry>, now: i64 },
    /// An append under the lock, or a lock that is dropped.
    Locked { handle: usize, tenant: usize, events: Vec<Draft>, ids: Vec<u8>, now: i64, dropped: bool },
    /// A walk over pages.
    Read {
        handle: usize,
        tenant: usize,
        after: u64,
        up_to: Option<u64>,
        types: Option<Vec<usize>>,
        events_max: u32,
        bytes_max: u64,
    },
    /// A page of a stream.
    Stream { handle: usize, tenant: usize, stream: usize, after: u64, events_max: u32, bytes_max: u64 },
    /// States of streams.
    Versions { handle: usize, tenant: usize, streams: Vec<usize> },
    /// A claim on several rows.
    Fence { handle: usize, owner: usize, rows: Vec<Row>, claim: Claim },
    /// A page of a projection.
    Page {
        handle: usize,
        row: Row,
        wrong: Wrong,
        chunks: Vec<Vec<(usize, usize, Option<u8>)>>,
        letters: Vec<(u64, usize)>,
        ahead: u64,
        end: End,
    },
    /// Everything a projection left.
    Look { handle: usize, row: Row, after: usize, limit: u32 },
}

/// Events of one tenant in a batch.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) tenant: usize,
    pub(super) behind: u64,
    pub(super) misplaced: bool,
    pub(super) events: Vec<Draft>,
}

/// An event whose version follows from its stream's state.
#[derive(Debug, Clone)]
pub(super) struct Draft {
    pub(super) stream: usize,
    pub(super) event_type: usize,
    pub(super) repeats_version: bool,
    pub(super) size: usize,
}

/// A progress row: tenant, projection, build.
pub(super) type Row = (usize, usize, i32);

/// By what right a row is claimed.
#[derive(Debug, Clone, Copy)]
pub(super) enum Claim {
    Granted(i64),
    TakeOver,
    TakeOverSeen,
    TakeOverMistaken,
}

/// What of a page's start is not as stored.
#[derive(Debug, Clone, Copy)]
pub(super) enum Wrong {
    Nothing,
    From,
    Generation,
    Owner,
}

/// How a page ends.
#[derive(Debug, Clone, Copy)]
pub(super) enum End {
    Finish,
    Drop,
    RollBack,
}

/// Any operation.
pub(super) fn any() -> impl Strategy<Value = Operation> {
    let bytes_max = prop_oneof![Just(0u64), 100u64..1_200, Just(1 << 20)];
    let append = (0..2usize, proptest::collection::vec(entry(), 1..4), -5i64..100)
        .prop_map(|(handle, entries, now)| Operation::Append { handle, entries, now });
    let locked = (
        0..2usize,
        0..3usize,
        drafts(),
        proptest::collection::vec(0u8..6, 0..3),
        -5i64..100,
        proptest::bool::weighted(0.2),
    )
        .prop_map(|(handle, tenant, events, ids, now, dropped)| Operation::Locked {
            handle,
            tenant,
            events,
            ids,
            now,
            dropped,
        });
    let types = proptest::option::of(proptest::collection::vec(0..4usize, 0..3));
    let read =
        (0..2usize, 0..3usize, 0u64..12, proptest::option::of(0u64..20), types, 1u32..6, bytes_max.clone())
            .prop_map(|(handle, tenant, after, up_to, types, events_max, bytes_max)| Operation::Read {
                handle,
                tenant,
                after,
                up_to,
                types,
                events_max,
                bytes_max,
            });
    let stream = (0..2usize, 0..3usize, 0..4usize, 0u64..6, 1u32..6, bytes_max).prop_map(
        |(handle, tenant, stream, after, events_max, bytes_max)| Operation::Stream {
            handle,
            tenant,
            stream,
            after,
            events_max,
            bytes_max,
        },
    );
    let versions = (0..2usize, 0..3usize, proptest::collection::vec(0..4usize, 0..6))
        .prop_map(|(handle, tenant, streams)| Operation::Versions { handle, tenant, streams });
    let claim = prop_oneof![
        (0i64..4).prop_map(Claim::Granted),
        Just(Claim::TakeOver),
        Just(Claim::TakeOverSeen),
        Just(Claim::TakeOverMistaken)
    ];
    let fence = (0..2usize, 0..3usize, proptest::collection::hash_set(row(), 1..4), claim).prop_map(
        |(handle, owner, rows, claim)| Operation::Fence { handle, owner, rows: sorted(rows), claim },
    );
    let look = (0..2usize, row(), 0..6usize, 0u32..8)
        .prop_map(|(handle, row, after, limit)| Operation::Look { handle, row, after, limit });
    prop_oneof![4 => append, 2 => locked, 3 => read, 1 => stream, 1 => versions, 3 => fence, 8 => page(), 3 => look]
}

fn page() -> impl Strategy<Value = Operation> {
    let write = (0..2usize, 0..6usize, proptest::option::weighted(0.7, 0u8..255));
    let chunks = proptest::collection::vec(proptest::collection::vec(write, 0..5), 0..3);
    let letters = proptest::collection::hash_set((0u64..4, 0..2usize), 0..3);
    let wrong = prop_oneof![6 => Just(Wrong::Nothing), 1 => Just(Wrong::From), 1 => Just(Wrong::Generation), 1 => Just(Wrong::Owner)];
    let end = prop_oneof![4 => Just(End::Finish), 1 => Just(End::Drop), 1 => Just(End::RollBack)];
    (0..2usize, row(), wrong, chunks, letters, 0u64..4, end).prop_map(
        |(handle, row, wrong, chunks, letters, ahead, end)| {
            let mut letters: Vec<_> = letters.into_iter().collect();
            letters.sort_unstable();
            Operation::Page { handle, row, wrong, chunks, letters, ahead, end }
        },
    )
}

fn entry() -> impl Strategy<Value = Entry> {
    let behind = prop_oneof![5 => Just(0u64), 1 => 1u64..3];
    (0..3usize, behind, proptest::bool::weighted(0.1), drafts())
        .prop_map(|(tenant, behind, misplaced, events)| Entry { tenant, behind, misplaced, events })
}

fn drafts() -> impl Strategy<Value = Vec<Draft>> {
    let draft = (0..4usize, 0..4usize, proptest::bool::weighted(0.04), 0usize..500).prop_map(
        |(stream, event_type, repeats_version, size)| Draft { stream, event_type, repeats_version, size },
    );
    proptest::collection::vec(draft, 1..5)
}

fn row() -> impl Strategy<Value = Row> {
    // Mostly one projection and build, so that pages follow each other.
    let projection = prop_oneof![5 => Just(0usize), 1 => Just(1usize)];
    let build = prop_oneof![5 => Just(1i32), 1 => Just(2i32)];
    (0..2usize, projection, build)
}

/// Sets have no order of their own; a seed must give the same sequence always.
fn sorted(rows: std::collections::HashSet<Row>) -> Vec<Row> {
    let mut rows: Vec<_> = rows.into_iter().collect();
    rows.sort_unstable();
    rows
}
