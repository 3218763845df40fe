//! The exam has teeth: a store that is broken in one way turns the case red that guards against it.

mod subject {
    pub(crate) mod in_memory;
}

mod mutant {
    pub(crate) mod fault;

    pub(crate) mod database;
    pub(crate) mod lock;
    pub(crate) mod log;
    pub(crate) mod projections;
    pub(crate) mod unit;
}

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use bellwether_conformance::{Case, cases};

use mutant::database::Mutant;
use mutant::fault::Fault;
use subject::in_memory::{InMemory, WITHOUT_SQL};

/// Runs one case on a store with this fault; what it said when it went red.
fn run(case: &Case, fault: Fault) -> Result<(), String> {
    let subject = InMemory::dressed(|memory| Arc::new(Mutant::new(memory, fault)));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        runtime.block_on(async {
            let done = tokio::time::timeout(Duration::from_secs(100), (case.run)(&subject)).await;
            done.expect("a case must go red by itself, not by hanging");
        });
    }));
    outcome.map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default()
    })
}

fn case(name: &str) -> &'static Case {
    cases().iter().find(|case| case.name == name).unwrap_or_else(|| panic!("there is no case {name:?}"))
}

/// The guard goes red with the fault, and is green without it: it is the fault that it saw.
fn check(fault: Fault, guard: &str) {
    let guard = case(guard);
    assert_eq!(run(guard, Fault::None), Ok(()), "{} is red without any fault", guard.name);
    let red = run(guard, fault).expect_err("the fault went unnoticed");
    assert!(!red.contains("not by hanging"), "{red}");
    println!("{fault:?} turned {} red: {red}", guard.name);
}

macro_rules! mutations {
    ($($test:ident: $fault:ident is seen by $guard:literal;)*) => {
        $(#[test]
        fn $test() {
            check(Fault::$fault, $guard);
        })*

        #[test]
        fn every_fault_is_tried() {
            let tried = [$(Fault::$fault),*];
            assert!(Fault::ALL.iter().all(|fault| tried.contains(fault)), "a fault has no guard: {tried:?}");
        }
    };
}

mutations! {
    a_stale_generation_accepted: AcceptsAStaleGeneration is seen by "a_stale_page_is_refused_and_nothing_stays";
    another_owner_accepted: AcceptsAnotherOwner is seen by "a_stale_page_is_refused_and_nothing_stays";
    any_position_accepted: AcceptsAnyPosition is seen by "a_stale_page_is_refused_and_nothing_stays";
    progress_without_documents: CommitsProgressWithoutDocuments is seen by "a_page_commits_as_a_whole";
    documents_before_their_progress: CommitsInTwoSteps is seen by "a_page_dropped_midway_is_whole_or_nothing";
    documents_of_a_page_rolled_back: CommitsOnRollBack is seen by "a_page_that_does_not_finish_leaves_nothing";
    a_dead_letter_dropped: DropsADeadLetter is seen by "a_page_commits_as_a_whole";
    a_number_reused: ReusesANumber is seen by "numbers_are_contiguous_under_sixteen_writers";
    a_hole_left_by_a_roll_back: LeavesAHole is seen by "a_dropped_lock_leaves_nothing";
    a_hole_left_among_writers: LeavesAHole is seen by "numbers_are_contiguous_under_sixteen_writers";
    events_of_two_tenants_mixed: MixesEventsOfTenants is seen by "pages_of_tenants_are_kept_apart";
    documents_of_two_tenants_mixed: MixesDocumentsOfTenants is seen by
        "documents_of_tenants_builds_views_and_versions_are_kept_apart";
    documents_of_two_builds_mixed: MixesDocumentsOfBuilds is seen by
        "documents_of_tenants_builds_views_and_versions_are_kept_apart";
    an_unknown_append_swallowed: TakesUnknownForDone is seen by "a_disturbed_append_is_answered_truly";
    an_unknown_append_called_failed: TakesUnknownForUnavailable is seen by "a_disturbed_append_is_answered_truly";
    an_unknown_locked_append_called_failed: TakesUnknownForUnavailable is seen by
        "a_disturbed_locked_append_is_answered_truly";
    an_unknown_page_swallowed: TakesUnknownForDone is seen by "a_disturbed_page_is_answered_truly";
    an_unknown_page_called_failed: TakesUnknownForUnavailable is seen by "a_disturbed_page_is_answered_truly";
    reading_past_the_head: ReadsPastTheHead is seen by "a_page_never_reads_past_the_head";
    reading_past_a_bound: ReadsPastItsBound is seen by "a_page_never_reads_past_its_bound";
    a_hole_skipped: SkipsAHole is seen by "a_hole_is_corrupt_and_never_skipped";
    a_large_event_skipped: SkipsALargeEvent is seen by "an_event_larger_than_the_page_is_named_with_its_size";
    a_head_older_than_the_events: ReadsTheHeadEarlier is seen by "head_and_events_are_of_one_snapshot";
    an_append_under_a_stale_head: AppendsUnderAStaleHead is seen by "a_stale_head_is_refused_and_nothing_stays";
    a_batch_of_another_server_believed: BelievesAnyServer is seen by "a_batch_decided_on_another_server_is_refused";
    half_a_batch_committed: CommitsHalfABatch is seen by "a_refused_row_undoes_the_whole_batch";
    case_folded_in_stream_names: FoldsCase is seen by "stream_names_are_refused_or_kept_apart";
    normal_forms_folded_in_document_keys: FoldsNormalForms is seen by "document_keys_are_refused_or_kept_apart";
    a_commit_missed_by_discovery: MissesACommit is seen by "only_moved_heads_come_with_a_cursor";
    a_late_commit_missed_by_discovery: MissesACommit is seen by "an_append_that_commits_late_is_found";
    a_cursor_of_another_server_believed: BelievesAnyCursor is seen by
        "a_cursor_of_another_server_starts_from_the_beginning";
    a_row_taken_over_unseen: TakesOverUnseen is seen by "raced_take_overs_have_one_winner";
    append_ids_forgotten: ForgetsAppendIds is seen by "append_ids_are_found_under_the_lock";
    numbers_kept_in_32_bits: KeepsNumbersIn32Bits is seen by "heads_near_their_bounds_survive";
    random_operations_see_a_lost_delete: ForgetsToDelete is seen by "random_operations_agree_with_memory";
}

#[test]
fn a_wrapper_without_a_fault_passes_every_case() {
    for case in cases().iter().filter(|case| WITHOUT_SQL.iter().all(|listed| listed.case != case.name)) {
        assert_eq!(run(case, Fault::None), Ok(()), "{}", case.name);
    }
}
