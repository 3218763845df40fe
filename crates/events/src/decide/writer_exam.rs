//! The writer against a model of a database: random appends, faults, other writers, held heads and failovers in any order.
//!
//! The model assumes that a batch decided on what one server said reaches no other server: a failover shows as a broken
//! connection first. (Under a lock nothing is assumed: what is decided there was read there.)

mod database;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bellwether_storage::{
    AppendBatch, Encoding, ErrorKind, EventId, EventType, NewEvent, Place, Sequence, ServerIdentity,
    StreamId, StreamState, TenantId, TenantNo, Timestamp, Version,
};
use bytes::Bytes;
use proptest::prelude::*;
use uuid::Uuid;

use self::database::Log;
use super::{Append, AppendKey, Bounds, Look, News, Order, Part, Reply, Seen, Task, Write, Writer};
use crate::Expected;

/// The stream whose rows the database refuses.
const POISON: u8 = 4;

#[derive(Debug, Clone)]
enum Act {
    Append { tenant: u8, parts: Vec<(u8, Wish, u8)>, key: Option<u8>, read_before: bool },
    Orders { now: bool },
    Step { which: usize, fate: Fate },
    Other { tenant: u8, stream: u8 },
    Hold { tenant: u8, on: bool },
    Ghost { which: usize, commits: bool },
    FailOver { lose: usize },
}

#[derive(Debug, Clone, Copy)]
enum Wish {
    Any,
    None,
    Now,
    Wrong,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Fate {
    Normal,
    LostBefore,
    LostAfter,
    /// The answer is lost now; what becomes of it shows later.
    Late,
    Unavailable,
    Conflict,
}

fn acts(faults: bool) -> impl Strategy<Value = Vec<Act>> {
    let wish = prop_oneof![5 => Just(Wish::Any), 1 => Just(Wish::None), 2 => Just(Wish::Now), 1 => Just(Wish::Wrong)];
    let part = (0..=POISON, wish, 1..4u8).prop_map(|(stream, wish, count)| {
        // The poison stream is rare.
        (if stream == POISON && count != 3 { 0 } else { stream }, wish, count)
    });
    let append =
        (0..3u8, prop::collection::vec(part, 1..3), prop::option::weighted(0.15, 0..3u8), any::<bool>())
            .prop_map(|(tenant, parts, key, read_before)| Act::Append { tenant, parts, key, read_before });
    let fate = match faults {
        true => prop_oneof![
            12 => Just(Fate::Normal), 1 => Just(Fate::LostBefore), 1 => Just(Fate::LostAfter),
            1 => Just(Fate::Late), 1 => Just(Fate::Unavailable), 1 => Just(Fate::Conflict)
        ]
        .boxed(),
        false => Just(Fate::Normal).boxed(),
    };
    let step = (any::<usize>(), fate).prop_map(|(which, fate)| Act::Step { which, fate });
    let other = (0..3u8, 0..POISON).prop_map(|(tenant, stream)| Act::Other { tenant, stream });
    let hold = (0..3u8, any::<bool>()).prop_map(|(tenant, on)| Act::Hold { tenant, on });
    let ghost = (any::<usize>(), any::<bool>()).prop_map(|(which, commits)| Act::Ghost { which, commits });
    let act = match faults {
        true => prop_oneof![
            10 => append, 8 => any::<bool>().prop_map(|now| Act::Orders { now }), 14 => step, 2 => other, 1 => hold, 2 => ghost,
            1 => (0..3usize).prop_map(|lose| Act::FailOver { lose })
        ]
        .boxed(),
        false => prop_oneof![10 => append, 8 => any::<bool>().prop_map(|now| Act::Orders { now }), 14 => step, 2 => other, 1 => hold].boxed(),
    };
    prop::collection::vec(act, 1..160)
}

/// An order under way.
struct Air {
    order: Order,
    stage: Stage,
    /// The life of the server its connection belongs to.
    life: u64,
    /// The life of the server its decision was made on, once the writer has heard of one.
    facts: Option<u64>,
}

enum Stage {
    Begin,
    Look(Look),
    Write(Write),
}

/// An append whose answer was lost before its effect.
enum Ghost {
    Batch(Arc<AppendBatch>),
    /// Holds the head until it commits or ends.
    Locked(TenantNo, Write),
}

struct Asked {
    tenant: u8,
    parts: Vec<Part>,
    ids: Vec<EventId>,
    key: Option<AppendKey>,
    step: u64,
}

struct World {
    writer: Writer<usize>,
    logs: BTreeMap<u8, Log>,
    life: u64,
    /// The life the writer's new orders are carried out in: it finds out about a failover by a broken connection.
    connected: u64,
    air: Vec<Air>,
    ghosts: Vec<Ghost>,
    asked: Vec<Asked>,
    replies: BTreeMap<usize, (u64, Reply)>,
    heads: BTreeMap<u8, Sequence>,
    lost: BTreeSet<EventId>,
    failed_over: bool,
    step: u64,
    fresh_ids: u128,
}

impl World {
    fn new() -> Self {
        let bounds = Bounds { versions: 5, strikes: 4, slow_waits: 4, fold: 6, ..Bounds::default() };
        Self {
            writer: Writer::new(bounds),
            logs: (0..3).map(|tenant| (tenant, Log::default())).collect(),
            life: 1,
            connected: 1,
            air: Vec::new(),
            ghosts: Vec::new(),
            asked: Vec::new(),
            replies: BTreeMap::new(),
            heads: BTreeMap::new(),
            lost: BTreeSet::new(),
            failed_over: false,
            step: 0,
            fresh_ids: 0,
        }
    }

    fn identity(&self) -> ServerIdentity {
        let started_at = Timestamp::from_micros(self.life as i64);
        ServerIdentity { system: "model".into(), timeline: self.life as u32, started_at }
    }

    fn act(&mut self, act: Act) {
        self.step += 1;
        match act {
            Act::Append { tenant, parts, key, read_before } => self.append(tenant, parts, key, read_before),
            Act::Orders { now } => self.orders(now),
            Act::Step { which, fate } => self.step_order(which, fate),
            Act::Other { tenant, stream } => self.other(tenant, stream),
            Act::Hold { tenant, on } => self.log(tenant).held = on,
            Act::Ghost { which, commits } => self.ghost(which, commits),
            Act::FailOver { lose } => self.fail_over(lose),
        }
        self.listen();
    }

    fn log(&mut self, tenant: u8) -> &mut Log {
        self.logs.get_mut(&tenant).expect("a tenant")
    }

    fn event(&mut self, stream: &StreamId) -> NewEvent {
        self.fresh_ids += 1;
        NewEvent {
            stream: stream.clone(),
            version: Version::ZERO,
            id: Uuid::from_u128(self.fresh_ids),
            event_type: EventType::new("Happened").unwrap(),
            encoding: Encoding::MessagePack,
            body: Bytes::from_static(b"x"),
            headers: Bytes::new(),
        }
    }

    fn append(&mut self, tenant: u8, wishes: Vec<(u8, Wish, u8)>, key: Option<u8>, read_before: bool) {
        let mut parts: Vec<Part> = Vec::new();
        let mut events = Vec::new();
        for (stream, wish, count) in wishes {
            let stream = stream_id(stream);
            if parts.iter().any(|part| part.stream == stream) {
                continue;
            }
            let now = self.log(tenant).version(&stream);
            let expected = match wish {
                Wish::Any => Expected::Any,
                Wish::None => Expected::None,
                Wish::Now => Expected::Exact(now),
                Wish::Wrong => Expected::Exact(now.plus(2)),
            };
            events.extend((0..count).map(|_| self.event(&stream)));
            parts.push(Part { stream, expected, count: usize::from(count) });
        }
        let ids = events.iter().map(|event| event.id).collect();
        let digest = [events.len() as u8; 16];
        let key = key.map(|key| AppendKey { id: Uuid::from_u128(1_000_000 + u128::from(key)), digest });
        let mut append = Append::new(self.asked.len(), parts.clone(), events);
        append.key = key;
        if read_before {
            let stream = parts[0].stream.clone();
            let (identity, log) = (self.identity(), self.log(tenant));
            let state = StreamState { version: log.version(&stream), archived: false };
            append.seen = Some(Seen { stream, state, head: log.head(), place: Place(0), identity });
        }
        self.asked.push(Asked { tenant, parts, ids, key, step: self.step });
        let id = TenantId::new(format!("t{tenant}")).unwrap();
        self.writer.queue(TenantNo(i32::from(tenant)), &id, Place(0), append);
    }

    fn orders(&mut self, now: bool) {
        for _ in 0..20 {
            let order = if now { self.writer.order_now() } else { self.writer.order() };
            let Some(order) = order else { return };
            self.check_order(&order);
            let facts = self.writer.identity.as_ref().map(|identity| u64::from(identity.timeline));
            self.air.push(Air { order, stage: Stage::Begin, life: self.connected, facts });
        }
        panic!("more than 20 orders at once: the bounds on flights are not kept");
    }

    /// A tenant flies once at a time, in ascending order inside a batch.
    fn check_order(&self, order: &Order) {
        let tenants = |order: &Order| -> Vec<TenantNo> {
            match &order.task {
                Task::Append(batch) => batch.tenants.iter().map(|entry| entry.tenant).collect(),
                Task::Lock { tenant, .. } | Task::Read { tenant, .. } | Task::Find { tenant, .. } => {
                    vec![*tenant]
                }
                Task::Probe => Vec::new(),
            }
        };
        let own = tenants(order);
        assert!(own.is_sorted_by(|a, b| a < b), "{own:?}");
        for other in &self.air {
            assert!(tenants(&other.order).iter().all(|tenant| !own.contains(tenant)), "a tenant flies twice");
        }
    }

    fn listen(&mut self) {
        for news in self.writer.news() {
            match news {
                News::Reply(ticket, reply) => {
                    let before = self.replies.insert(ticket, (self.step, reply));
                    assert!(before.is_none(), "ticket {ticket} was told twice");
                }
                News::Head { tenant, head, .. } => {
                    let tenant = tenant.0 as u8;
                    if !self.failed_over {
                        assert!(head <= self.logs[&tenant].head(), "a head was told before it was there");
                        self.heads
                            .insert(tenant, head.max(*self.heads.get(&tenant).unwrap_or(&Sequence::ZERO)));
                    }
                }
            }
        }
    }

    /// Faults end; everything must come to its end in bounded time.
    fn settle(&mut self) {
        for tenant in 0..3 {
            self.log(tenant).held = false;
        }
        for round in 0.. {
            self.act(Act::Orders { now: round % 2 == 0 });
            if self.air.is_empty() {
                assert!(!self.writer.holds_back(), "held back although nothing flies");
                break;
            }
            assert!(round < 5_000, "the writer does not come to rest");
            // A lost transaction that holds a head ends some day.
            if round % 3 == 2 && self.ghosts.iter().any(|ghost| matches!(ghost, Ghost::Locked(..))) {
                let which = self.ghosts.iter().position(|ghost| matches!(ghost, Ghost::Locked(..)));
                self.act(Act::Ghost { which: which.unwrap_or(0), commits: round % 2 == 0 });
            }
            self.act(Act::Step { which: round, fate: Fate::Normal });
        }
        assert!(self.writer.is_idle(), "something is left: {:?}", self.writer);
        // Whatever is still on its way arrives after everybody has been told: it must find another head.
        while !self.ghosts.is_empty() {
            self.act(Act::Ghost { which: 0, commits: true });
        }
    }

    fn check(&self) {
        for (ticket, asked) in self.asked.iter().enumerate() {
            let Some((told, reply)) = self.replies.get(&ticket) else {
                panic!("ticket {ticket} was never told")
            };
            let log = &self.logs[&asked.tenant];
            let at: Vec<usize> = asked
                .ids
                .iter()
                .flat_map(|id| {
                    log.events().enumerate().filter(|(_, event)| event.id == *id).map(|(at, _)| at)
                })
                .collect();
            let lost = asked.ids.iter().all(|id| self.lost.contains(id));
            match reply {
                Reply::Done { first, versions, .. } => {
                    if lost && at.is_empty() {
                        continue;
                    }
                    let expected: Vec<usize> =
                        (0..asked.ids.len()).map(|n| first.get() as usize - 1 + n).collect();
                    assert_eq!(
                        at, expected,
                        "ticket {ticket} is not in the log exactly once, where it was told"
                    );
                    let mut end = first.get() as usize - 1;
                    for (part, version) in asked.parts.iter().zip(versions) {
                        end += part.count;
                        assert_eq!(log.events().nth(end - 1).map(|event| event.version), Some(*version));
                    }
                }
                Reply::Repeated(before) => {
                    assert!(at.is_empty(), "a repeated append went in twice");
                    assert_eq!(asked.key.map(|key| (key.id, key.digest)), Some((before.id, before.digest)));
                }
                Reply::Conflict { part, actual } => {
                    assert!(at.is_empty(), "a conflict left something behind");
                    let part = &asked.parts[*part];
                    match part.expected {
                        Expected::Any => panic!("`any` conflicts with nothing"),
                        Expected::None => assert_ne!(*actual, Version::ZERO),
                        Expected::Exact(version) => assert_ne!(*actual, version),
                    }
                    assert!(
                        was_at(log, &part.stream, *actual, asked.step, *told),
                        "ticket {ticket}: a conflict that never was"
                    );
                }
                Reply::Failed(error) if error.kind() == ErrorKind::Unknown => {
                    assert!(at.is_empty() || at.len() == asked.ids.len())
                }
                Reply::Failed(error) => {
                    assert!(at.is_empty(), "ticket {ticket} failed ({error}) and left something behind");
                    if error.kind() == ErrorKind::Rejected {
                        let poison = asked.parts.iter().any(|part| part.stream == stream_id(POISON));
                        assert!(
                            poison || asked.key.is_some(),
                            "ticket {ticket} was refused for another's sake: {error}"
                        );
                    }
                }
                Reply::Moved { .. } => panic!("nobody moved"),
            }
        }
        if !self.failed_over {
            self.check_order_of_callers();
            for (tenant, head) in &self.heads {
                assert!(*head <= self.logs[tenant].head());
            }
        }
    }

    /// What was asked for earlier has the smaller sequence.
    fn check_order_of_callers(&self) {
        for tenant in 0..3 {
            let firsts =
                self.asked.iter().enumerate().filter(|(_, asked)| asked.tenant == tenant).filter_map(
                    |(ticket, _)| match self.replies.get(&ticket) {
                        Some((_, Reply::Done { first, .. })) => Some(*first),
                        _ => None,
                    },
                );
            assert!(firsts.is_sorted_by(|a, b| a < b), "appends of tenant {tenant} overtook each other");
        }
    }
}

fn stream_id(stream: u8) -> StreamId {
    StreamId::new(format!("s{stream}")).unwrap()
}

/// Whether a stream was at a version at some moment of a span of steps.
fn was_at(log: &Log, stream: &StreamId, version: Version, from: u64, to: u64) -> bool {
    let none = Vec::new();
    let history = log.history.get(stream).unwrap_or(&none);
    let before =
        history.iter().rev().find(|(step, _)| *step < from).map_or(Version::ZERO, |(_, version)| *version);
    before == version || history.iter().any(|(step, at)| (from..=to).contains(step) && *at == version)
}

fn run(acts: Vec<Act>) -> World {
    let mut world = World::new();
    for act in acts {
        world.act(act);
    }
    world.settle();
    world.check();
    world
}

// X4. Found by the property below: once put back among the others, the lost append went in a second time.
#[test]
fn a_lost_append_that_could_not_be_done_again_is_still_lost() {
    let append = || Act::Append { tenant: 0, parts: vec![(0, Wish::Any, 1)], key: None, read_before: false };
    let orders = || Act::Orders { now: true };
    let step = |fate| Act::Step { which: 0, fate };
    let lost = [append(), append(), append(), orders(), step(Fate::Late)];
    let probed_and_locked = [orders(), step(Fate::Normal), orders(), step(Fate::Normal)];
    let late = [step(Fate::Unavailable), append(), Act::Ghost { which: 0, commits: true }, append()];
    let world = run(lost.into_iter().chain(probed_and_locked).chain(late).collect());
    assert_eq!(world.logs[&0].head(), Sequence::new(5));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    // X2, X4
    #[test]
    fn every_append_has_one_true_outcome_under_faults(acts in acts(true)) {
        run(acts);
    }

    #[test]
    fn without_faults_only_conflicts_refusals_and_held_heads_fail(acts in acts(false)) {
        let world = run(acts);
        for (ticket, (_, reply)) in &world.replies {
            if let Reply::Failed(error) = reply {
                let busy = error.to_string().contains("not free in time");
                prop_assert!(error.kind() == ErrorKind::Rejected || busy, "ticket {ticket}: {error}");
            }
        }
    }
}
