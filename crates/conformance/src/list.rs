//! The one list of cases. A case that is not here does not exist; what is here becomes a test of every adapter.

use std::future::Future;
use std::pin::Pin;

use crate::Subject;

/// What a case runs as.
pub type CaseFuture<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// One case: a claim about a store.
#[derive(Clone, Copy)]
pub struct Case {
    /// The claim; also the name of the test.
    pub name: &'static str,
    /// Module that holds it.
    pub noun: &'static str,
    /// Rows of `docs/requirements.md` it helps to prove.
    pub rows: &'static [&'static str],
    /// Panics when the claim does not hold.
    pub run: for<'a> fn(&'a dyn Subject) -> CaseFuture<'a>,
}

/// Every case, in reading order.
pub fn cases() -> &'static [Case] {
    crate::__with_cases! { __list_cases () }
}

/// Enrols an adapter: makes a module of this name with one test per case, and one that checks the list of what does not apply.
///
/// The second argument is a type that implements [`Enrolment`](crate::Enrolment).
#[macro_export]
macro_rules! exam {
    ($module:ident, $enrolment:ty) => {
        mod $module {
            #[allow(unused_imports)]
            use super::*;
            $crate::__with_cases! { __enrol_cases ($enrolment) }
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __list_cases {
    (() $($noun:ident { $($case:ident $rows:tt)* })*) => {
        &[$($($crate::Case {
            name: stringify!($case),
            noun: stringify!($noun),
            rows: &$rows,
            run: |subject| Box::pin($crate::$noun::$case(subject)),
        },)*)*]
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __enrol_cases {
    (($enrolment:ty) $($noun:ident { $($case:ident $rows:tt)* })*) => {
        $(mod $noun {
            #[allow(unused_imports)]
            use super::*;
            $(#[test]
            fn $case() {
                $crate::sit::<$enrolment>(stringify!($case));
            })*
        })*

        #[test]
        fn what_does_not_apply_is_listed_with_its_reason() {
            $crate::check_list::<$enrolment>();
        }
    };
}

/// The list: noun (= module) by noun, each case with the requirement rows it proves.
#[doc(hidden)]
#[macro_export]
macro_rules! __with_cases {
    ($then:ident $arguments:tt) => {
        $crate::$then! { $arguments
            tenants {
                a_tenant_is_ensured_once ["T1"]
                raced_ensures_make_one_tenant ["T1"]
                tenants_are_listed_by_number_in_pages ["T1"]
                an_unknown_tenant_is_refused_by_every_port ["T1"]
            }
            append {
                events_come_back_as_they_went_in ["T1"]
                a_batch_answers_each_tenant_in_order ["T1", "X2"]
                a_stale_head_is_refused_and_nothing_stays ["T1", "X2"]
                a_stale_place_is_refused_and_nothing_stays ["T1"]
                a_locked_head_is_busy ["T1"]
                the_others_of_a_batch_go_in_beside_a_busy_one ["T1"]
                a_closed_tenant_takes_no_events ["T1"]
                a_refused_row_undoes_the_whole_batch ["T1", "X4"]
                a_batch_sent_again_is_resolved_by_its_head ["X2", "X4"]
                raced_batches_on_one_head_have_one_winner ["T1"]
                the_largest_append_goes_in ["X2"]
                a_batch_decided_on_another_server_is_refused ["X4"]
                bodies_of_every_byte_empty_and_four_mebibytes_survive ["T1"]
            }
            writers {
                numbers_are_contiguous_under_sixteen_writers ["T1"]
                an_append_held_open_delays_no_other_tenant ["T1"]
            }
            lock {
                a_dropped_lock_leaves_nothing ["T1"]
                lockers_take_turns ["T1"]
                a_locker_waits_no_longer_than_asked ["T1"]
                versions_under_the_lock_are_the_last_committed ["X2"]
                a_locked_append_that_is_refused_leaves_nothing ["T1", "X4"]
                append_ids_are_found_under_the_lock ["X2", "X4"]
                append_ids_of_tenants_are_kept_apart ["X4"]
            }
            clock {
                times_never_run_backwards ["T1"]
                the_databases_clock_decides_when_no_moment_is_given ["T1"]
            }
            page {
                pages_go_on_where_the_last_one_ended ["T1", "T7"]
                a_page_stops_before_the_byte_that_is_too_much ["T5", "T7"]
                an_event_larger_than_the_page_is_named_with_its_size ["T5"]
                a_page_never_reads_past_its_bound ["T1"]
                a_page_never_reads_past_the_head ["T1"]
                only_the_types_asked_for_are_loaded ["T3"]
                head_and_events_are_of_one_snapshot ["T1"]
                a_hole_is_corrupt_and_never_skipped ["T1"]
                pages_of_tenants_are_kept_apart ["T1"]
            }
            stream {
                a_stream_agrees_with_its_tenant ["T1"]
                a_stream_page_stops_at_its_bounds ["T1"]
                the_first_event_of_a_stream_page_always_comes ["T1"]
                versions_come_in_the_order_asked_and_unknown_ones_are_zero ["X2"]
                a_hole_in_a_stream_is_corrupt ["T1"]
            }
            discovery {
                all_heads_come_without_a_cursor ["T3"]
                only_moved_heads_come_with_a_cursor ["T3"]
                an_append_that_commits_late_is_found ["T3"]
                a_new_tenant_is_found_at_head_zero ["T3"]
                a_cursor_of_another_server_starts_from_the_beginning ["T3"]
                no_commit_is_missed_under_load ["T3"]
            }
            fence {
                a_fence_creates_its_row_at_zero ["X4"]
                a_grant_wins_by_generation_then_owner ["X4"]
                a_take_over_compares_what_was_seen ["X4"]
                raced_take_overs_have_one_winner ["X4"]
                several_rows_are_fenced_at_once ["T3", "X4"]
                a_fence_keeps_the_sequence ["X4"]
                a_fence_and_an_open_page_agree ["X4"]
                raced_registrations_give_one_number ["T3"]
            }
            unit {
                a_page_commits_as_a_whole ["X4"]
                a_page_that_does_not_finish_leaves_nothing ["X4"]
                a_stale_page_is_refused_and_nothing_stays ["X4"]
                a_page_without_a_row_is_refused ["X4"]
                two_pages_of_one_row_take_turns ["X4"]
                pages_of_two_tenants_are_open_side_by_side ["T1"]
                a_page_sees_its_own_writes_and_nobody_else_does ["X4"]
                a_page_can_end_anywhere_from_its_start ["X4"]
            }
            views {
                a_later_chunk_overwrites_an_earlier_one ["T3"]
                deleting_what_is_not_there_is_fine ["T3"]
                documents_are_listed_in_byte_order_in_pages ["T3"]
                documents_of_tenants_builds_views_and_versions_are_kept_apart ["T1", "T3"]
                thousands_of_documents_go_through_one_page ["T3", "T9"]
                documents_of_every_byte_empty_and_four_mebibytes_survive ["T3"]
            }
            letters {
                a_dead_letter_comes_back_as_it_went_in ["X4"]
                a_dead_letter_written_again_is_not_doubled ["X4"]
                dead_letters_are_listed_in_order_and_of_one_tenant ["X4"]
            }
            hostile {
                tenant_ids_are_refused_or_kept_apart ["T1"]
                stream_names_are_refused_or_kept_apart ["T1"]
                event_types_are_refused_or_kept_apart ["T1"]
                document_keys_are_refused_or_kept_apart ["T3"]
                projection_names_are_refused_or_kept_apart ["T3"]
                view_names_are_refused_or_kept_apart ["T3"]
                texts_of_dead_letters_are_refused_or_kept ["X4"]
            }
            numbers {
                heads_near_their_bounds_survive ["T1"]
                versions_near_their_bounds_survive ["T1"]
                progress_near_its_bounds_survives ["T3"]
                a_head_at_its_end_takes_no_more ["T1"]
            }
            sql {
                sql_is_offered_or_clearly_unsupported ["T3"]
                user_sql_commits_with_the_page_or_not_at_all ["T3", "X4"]
                user_sql_cannot_end_the_transaction ["X4"]
                a_refused_statement_undoes_the_page ["X4"]
                set_up_is_whole_and_can_be_repeated ["T3"]
                values_come_back_as_they_went_in ["T3"]
                a_query_outside_a_page_changes_nothing ["X4"]
            }
            schema {
                a_fresh_schema_is_the_migrated_one ["X3"]
                every_sql_file_prepares ["X3"]
            }
            outcome {
                a_disturbed_append_is_answered_truly ["X2", "X4"]
                a_disturbed_locked_append_is_answered_truly ["X2", "X4"]
                a_disturbed_page_is_answered_truly ["X4"]
            }
            cancelled {
                an_append_dropped_midway_is_whole_or_nothing ["X4"]
                a_locked_append_dropped_midway_is_whole_or_nothing ["X4"]
                a_page_dropped_midway_is_whole_or_nothing ["X4"]
                a_read_dropped_midway_leaves_the_next_one_right ["X4"]
            }
            handle {
                a_closed_handle_refuses_calls_and_another_goes_on ["X4"]
                counters_rise_with_the_work ["T3"]
                every_answer_carries_the_servers_identity ["X4"]
            }
            agreement {
                random_operations_agree_with_memory ["X7"]
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_claims_with_rows() {
        for (index, case) in cases().iter().enumerate() {
            assert!(
                cases()[..index].iter().all(|earlier| earlier.name != case.name),
                "{} is there twice",
                case.name
            );
            assert!(case.name.contains('_') && !case.rows.is_empty(), "{} says too little", case.name);
        }
    }
}
