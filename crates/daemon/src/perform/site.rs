//! One database of the fleet, as the daemon sees it: numbers registered there, tenants found there.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bellwether_storage::{
    Build, Database, DatabaseNo, PageStyle, ProgressKey, ProjectionNo, Sequence, ServerIdentity, TenantId,
    TenantNo, ViewNo,
};
use dashmap::DashMap;
use tokio::sync::Notify;

use crate::AgentNo;

use super::agent::Agent;
use super::positions::Positions;
use super::sentinel::Watched;

/// A projection's numbers in one database.
pub(crate) struct Post {
    pub(crate) number: ProjectionNo,
    /// Tables of its members, in seat order.
    pub(crate) views: Vec<ViewNo>,
}

/// What all agents of a tenant share.
pub(crate) struct TenantFacts {
    pub(crate) id: TenantId,
    pub(crate) number: TenantNo,
    head: AtomicU64,
}

impl TenantFacts {
    pub(crate) fn new(id: TenantId, number: TenantNo) -> Self {
        Self { id, number, head: AtomicU64::new(0) }
    }

    /// The head as last heard of.
    pub(crate) fn head(&self) -> Sequence {
        Sequence::new(self.head.load(Ordering::Acquire))
    }

    /// Raises the head; says whether that was news.
    pub(crate) fn raise(&self, head: Sequence) -> bool {
        self.head.fetch_max(head.get(), Ordering::AcqRel) < head.get()
    }

    /// What another life of the server says: it may have lost the last commits.
    pub(crate) fn reset(&self, head: Sequence) {
        self.head.store(head.get(), Ordering::Release);
    }
}

/// A tenant and its agents, one per projection, in order of registration.
#[derive(Clone)]
pub(crate) struct Resident {
    pub(crate) facts: Arc<TenantFacts>,
    pub(crate) agents: Arc<[Arc<Agent>]>,
}

/// One database.
pub(crate) struct Site {
    pub(crate) no: DatabaseNo,
    pub(crate) database: Arc<dyn Database>,
    pub(crate) style: PageStyle,
    pub(crate) posts: Vec<Post>,
    pub(crate) residents: DashMap<TenantNo, Resident>,
    pub(crate) positions: Positions,
    /// Wakes discovery: read now.
    pub(crate) stirred: Notify,
    /// Counts lives of the server seen so far; what was learnt in an earlier one is void.
    life: AtomicU64,
    identity: Mutex<Option<ServerIdentity>>,
    /// Agents that stand by here.
    pub(crate) watched: Mutex<BTreeMap<AgentNo, Watched>>,
    /// Wakes the sentinel: there is somebody to watch.
    pub(crate) watch: Notify,
    /// What the server's activity said last.
    pub(crate) activity: Mutex<Activity>,
}

/// What the sieve knows of a database.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Activity {
    changes: Option<u64>,
    /// The verdict for the next tick; `None` when nobody can say.
    pub(crate) stirred: Option<bool>,
}

impl Activity {
    /// A reading of the server; `None` when it cannot say.
    pub(crate) fn read(&mut self, changes: Option<u64>) {
        self.stirred = match (self.changes, changes) {
            (_, None) => None,
            // A first reading compares with nothing.
            (None, Some(_)) => Some(true),
            (Some(before), Some(now)) => Some(before != now),
        };
        self.changes = changes;
    }
}

impl Site {
    pub(crate) fn new(
        no: DatabaseNo,
        database: Arc<dyn Database>,
        posts: Vec<Post>,
        positions: Positions,
    ) -> Self {
        let style = database.page_style();
        Self {
            no,
            database,
            style,
            posts,
            residents: DashMap::new(),
            positions,
            stirred: Notify::new(),
            life: AtomicU64::new(0),
            identity: Mutex::new(None),
            watched: Mutex::new(BTreeMap::new()),
            watch: Notify::new(),
            activity: Mutex::new(Activity::default()),
        }
    }

    /// Key of the progress row of a projection's version and a tenant.
    pub(crate) fn key(&self, projection: usize, version: u32, tenant: TenantNo) -> ProgressKey {
        ProgressKey { tenant, projection: self.posts[projection].number, version, build: Build::FIRST }
    }

    /// Which life of the server facts belong to.
    pub(crate) fn life(&self) -> u64 {
        self.life.load(Ordering::Acquire)
    }

    /// Notes who answered; says whether that is another life of the server than before.
    pub(crate) fn answered(&self, identity: &ServerIdentity) -> bool {
        let mut known = self.identity.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = known.as_ref().is_some_and(|known| known != identity);
        if changed || known.is_none() {
            *known = Some(identity.clone());
        }
        if changed {
            self.life.fetch_add(1, Ordering::AcqRel);
        }
        changed
    }
}
