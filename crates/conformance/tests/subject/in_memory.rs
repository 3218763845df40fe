//! The store in memory as a subject: hooks are its faults.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bellwether_conformance::{Commit, Enrolment, Missing, NotApplicable, Subject};
use bellwether_memory::{Answer, Memory};
use bellwether_storage::{Database, Sequence, TenantNo};

/// A fresh database in memory.
pub(crate) struct InMemory {
    pub(crate) memory: Memory,
    first: Arc<dyn Database>,
    second: Arc<dyn Database>,
}

impl InMemory {
    /// A subject whose handles are dressed up by `dress`.
    pub(crate) fn dressed(dress: impl Fn(Memory) -> Arc<dyn Database>) -> Self {
        let memory = Memory::new();
        let (first, second) = (dress(memory.clone()), dress(memory.another_handle()));
        Self { memory, first, second }
    }
}

/// What a store without SQL cannot show.
pub(crate) const WITHOUT_SQL: &[NotApplicable] = &[
    NotApplicable { case: "user_sql_commits_with_the_page_or_not_at_all", reason: "it speaks no SQL" },
    NotApplicable { case: "user_sql_cannot_end_the_transaction", reason: "it speaks no SQL" },
    NotApplicable { case: "a_refused_statement_undoes_the_page", reason: "it speaks no SQL" },
    NotApplicable { case: "set_up_is_whole_and_can_be_repeated", reason: "it speaks no SQL" },
    NotApplicable { case: "values_come_back_as_they_went_in", reason: "it speaks no SQL" },
    NotApplicable { case: "a_query_outside_a_page_changes_nothing", reason: "it speaks no SQL" },
    NotApplicable { case: "a_fresh_schema_is_the_migrated_one", reason: "it has no schema" },
    NotApplicable { case: "every_sql_file_prepares", reason: "it has no SQL files" },
];

impl Enrolment for InMemory {
    type Subject = Self;

    fn not_applicable() -> &'static [NotApplicable] {
        WITHOUT_SQL
    }

    async fn fresh() -> Result<Self, Missing> {
        Ok(Self::dressed(|memory| Arc::new(memory)))
    }
}

#[async_trait]
impl Subject for InMemory {
    fn first(&self) -> &Arc<dyn Database> {
        &self.first
    }

    fn second(&self) -> &Arc<dyn Database> {
        &self.second
    }

    async fn raise_head(&self, tenant: TenantNo, head: Sequence) {
        assert!(
            self.memory.faults().raise_head(tenant, head),
            "the head of {tenant:?} cannot be raised to {head}"
        );
    }

    async fn remove_event(&self, tenant: TenantNo, sequence: Sequence) {
        assert!(self.memory.faults().remove_event(tenant, sequence), "no event {sequence} of {tenant:?}");
    }

    async fn set_open(&self, tenant: TenantNo, open: bool) {
        assert!(self.memory.faults().set_open(tenant, open), "no tenant {tenant:?}");
    }

    async fn disturb(&self, commit: Commit, step: u32) -> bool {
        let kind = match commit {
            Commit::Append => bellwether_memory::Commit::Append,
            Commit::LockedAppend => bellwether_memory::Commit::LockedAppend,
            Commit::Finish => bellwether_memory::Commit::Finish,
        };
        let faults = self.memory.faults();
        match step {
            0 => faults.lose_answer(kind, Answer::LostBefore),
            1 => faults.lose_answer(kind, Answer::LostAfter),
            2 => faults.fail_commits(1),
            3 => faults.unavailable(1),
            _ => return false,
        }
        true
    }

    /// No clock of a server and no connection is in play: the lock is held or it is not.
    fn held_open(&self) -> Duration {
        Duration::from_millis(300)
    }
}
