//! One tenant in the writer: what is queued, what is known, where it stands.

use std::collections::VecDeque;

use bellwether_storage::{EventId, Place, Sequence, TenantId};

use super::Append;
use super::facts::Known;
use super::fold::Folded;

/// One tenant.
#[derive(Debug)]
pub(super) struct Lane<T> {
    pub(super) id: TenantId,
    /// Appends that are not decided, in the order they came.
    pub(super) queue: VecDeque<Append<T>>,
    /// Where the tenant's events lie, as last seen.
    pub(super) place: Place,
    pub(super) known: Option<Known>,
    pub(super) standing: Standing,
    /// In the slow lane: its head was locked by somebody else.
    pub(super) slow: bool,
    /// Batches in a row that found the head locked.
    pub(super) skips: u32,
    /// Batches in a row that found another head.
    pub(super) stales: u32,
    /// Waits in a row for the head that were in vain.
    pub(super) waits: u32,
    /// Appends of the next flight, while a bad row among them is searched for.
    pub(super) fold_max: Option<usize>,
    /// Reads begun so far.
    pub(super) reads: u32,
    /// Reads in a row after which nothing could be decided.
    pub(super) reads_in_vain: u32,
    /// What is known was read, and nothing has flown since.
    pub(super) fresh: bool,
    /// The next decision needs a fresh read.
    pub(super) verify: bool,
    /// A flight whose outcome is not known.
    pub(super) unresolved: Option<Unresolved<T>>,
}

/// Where a tenant stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// In no line and in no flight.
    Idle,
    /// In a line.
    Waiting,
    /// In a flight.
    Flying,
}

/// A flight of one tenant whose answer was lost.
#[derive(Debug)]
pub(super) struct Unresolved<T> {
    /// The head it was decided against.
    pub(super) expected: Sequence,
    /// Its first event: if it went in, it is the one after `expected`.
    pub(super) first: EventId,
    pub(super) folded: Vec<Folded<T>>,
    /// The head has moved: look for the first event.
    pub(super) find: bool,
    /// Looks in vain.
    pub(super) tries: u32,
}

impl<T> Lane<T> {
    pub(super) fn new(id: TenantId, place: Place) -> Self {
        Self {
            id,
            queue: VecDeque::new(),
            place,
            known: None,
            standing: Standing::Idle,
            slow: false,
            skips: 0,
            stales: 0,
            waits: 0,
            fold_max: None,
            reads: 0,
            reads_in_vain: 0,
            fresh: false,
            verify: false,
            unresolved: None,
        }
    }

    /// Puts appends of a flight back where they came from, in their order.
    pub(super) fn put_back(&mut self, appends: impl DoubleEndedIterator<Item = Append<T>>) {
        for append in appends.rev() {
            self.queue.push_front(append);
        }
    }

    /// A flight went in.
    pub(super) fn went_in(&mut self) {
        self.slow = false;
        self.skips = 0;
        self.stales = 0;
        self.waits = 0;
        self.reads_in_vain = 0;
        // The bad row is further back, or gone: be bolder step by step.
        self.fold_max = self.fold_max.map(|most| most * 2).filter(|most| *most < 1_024);
    }
}
