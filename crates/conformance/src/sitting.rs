//! Running one case on a fresh subject.

use std::io::Write;
use std::time::Duration;

use bellwether_storage::PageStyle;

use crate::{Case, CaseFuture, Enrolment, Subject, cases};

/// Longer than any case takes on a slow machine; whoever is not done by then hangs.
const CASE_MAX: Duration = Duration::from_secs(240);

/// Runs the case of this name on a fresh subject, on a runtime of its own.
///
/// A case that does not apply, or whose server is missing, is reported on standard error, past the capture of the test harness.
///
/// # Panics
///
/// When the case fails, when it does not end within four minutes, when there is no such case, and when the server is missing
/// although `CI` or `BELLWETHER_REQUIRE_SERVERS` is set.
pub fn sit<E: Enrolment>(name: &str) {
    let case = find(name);
    if let Some(listed) = E::not_applicable().iter().find(|listed| listed.case == name) {
        return announce(&format!("not applicable: {name}: {}", listed.reason));
    }
    on_a_fresh_subject::<E>(name, case.run);
}

/// Checks the list of what does not apply: every name exists, once, with a reason, and the store does not claim the very thing
/// it excuses itself from. Prints the list.
///
/// # Panics
///
/// When it is not so.
pub fn check_list<E: Enrolment>() {
    let listed = E::not_applicable();
    for (index, entry) in listed.iter().enumerate() {
        find(entry.case);
        assert!(entry.reason.len() >= 10, "{} is listed without a reason", entry.case);
        assert!(
            listed[..index].iter().all(|earlier| earlier.case != entry.case),
            "{} is listed twice",
            entry.case
        );
        announce(&format!("not applicable: {}: {}", entry.case, entry.reason));
    }
    announce(&format!("{} of {} cases apply", cases().len() - listed.len(), cases().len()));
    on_a_fresh_subject::<E>("the list of what does not apply", |subject| {
        Box::pin(async move {
            let claims = |case: &Case| match case.noun {
                "sql" => subject.first().dialect().is_some(),
                _ => {
                    SIDE_BY_SIDE.contains(&case.name) && subject.first().page_style() == PageStyle::Streaming
                }
            };
            for entry in listed {
                assert!(
                    !claims(find(entry.case)),
                    "{} applies: the store says that it can do this",
                    entry.case
                );
            }
        })
    });
}

/// What a store stands whose pages and appends run side by side.
const SIDE_BY_SIDE: [&str; 3] = [
    "the_others_of_a_batch_go_in_beside_a_busy_one",
    "an_append_held_open_delays_no_other_tenant",
    "pages_of_two_tenants_are_open_side_by_side",
];

/// Runs on a runtime of its own, and closes both handles, so that connections end with the case.
fn on_a_fresh_subject<E: Enrolment>(name: &str, run: impl for<'a> Fn(&'a dyn Subject) -> CaseFuture<'a>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build();
    runtime.expect("a runtime for the case").block_on(async {
        match E::fresh().await {
            Ok(subject) => {
                let done = tokio::time::timeout(CASE_MAX, run(&subject)).await;
                assert!(done.is_ok(), "{name} did not end within {CASE_MAX:?}");
                subject.first().close().await;
                subject.second().close().await;
            }
            Err(missing) if servers_required() => panic!("{name} cannot run: {missing}"),
            Err(missing) => announce(&format!("SKIPPED: {name}: {missing}")),
        }
    });
}

fn find(name: &str) -> &'static Case {
    let found = cases().iter().find(|case| case.name == name);
    found.unwrap_or_else(|| panic!("there is no case {name:?}; the list is in the conformance crate"))
}

fn servers_required() -> bool {
    ["CI", "BELLWETHER_REQUIRE_SERVERS"].iter().any(|name| std::env::var_os(name).is_some())
}

/// Writes past the capture of the test harness: what was not examined must be seen.
fn announce(line: &str) {
    let _ = writeln!(std::io::stderr(), "exam: {line}");
}
