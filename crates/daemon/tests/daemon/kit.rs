//! The test kit of views.

use bellwether_daemon::project;

use crate::bank::{Account, Balance, Fan, Money, Sheet, Totals, deposited};

// T3
#[test]
fn each_kind_of_view_is_tested_without_a_store() {
    project::<Totals>()
        .given("acme", [deposited(5), Money::Odd, deposited(2)])
        .then("all", Totals { events: 2, cents: 7, last: 3 });
    project::<Balance>()
        .given_on("acme", "a-1", [deposited(5), Money::Odd])
        .then("a-1", Balance { cents: 5, events: 1 })
        .then_refused(2, "odd");
    project::<Account>().given("acme", [deposited(5), Money::Withdrawn { cents: 5 }]).then_none("stream");
    project::<Fan>()
        .given("acme", [Money::Spread { first: 3, documents: 2, bytes: 1 }])
        .then("document-000004", Fan { touched: 1, body: "x".into() });
    project::<Sheet>()
        .given("acme", [("a-1", None, Some(5)), ("a-2", None, Some(1)), ("a-1", Some(5), None)])
        .then("all", Sheet { accounts: 1, cents: 1, changes: 3 });
}

#[test]
#[should_panic(expected = "no document \"none\"; there are [\"all\"]")]
fn a_missing_document_is_named() {
    project::<Totals>().given("acme", [deposited(5)]).then("none", Totals::default());
}
