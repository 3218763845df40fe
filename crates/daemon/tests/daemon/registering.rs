//! What is refused when a daemon is put together, and what it says.

use bellwether_daemon::{
    Change, Composite, DaemonConfig, DaemonError, Keys, MultiView, Page, SqlProjection, Tx,
};
use bellwether_events::Recorded;
use bellwether_storage::{BoxError, SqlDialect, Statement};
use serde::{Deserialize, Serialize};

use crate::bank::{Account, Balance, Money, Sheet};
use crate::ground::{Ground, grounds};

fn ground() -> Ground {
    grounds().remove(0)
}

fn check(refused: Result<bellwether_daemon::Daemon, DaemonError>, parts: &[&str]) {
    let refused = refused.expect_err("refused").to_string();
    for part in parts {
        assert!(refused.contains(part), "{refused}");
    }
}

#[tokio::test]
async fn a_name_registered_twice_is_refused() {
    check(
        ground().daemon().view::<Balance>().view::<Balance>().start().await,
        &["balance", "registered twice"],
    );
}

#[tokio::test]
async fn documents_written_by_two_projections_are_refused() {
    let composite = Composite::new("bank", 1).stage(|s| s.view::<Account>());
    check(ground().daemon().view::<Account>().composite(composite).start().await, &["bank", "account"]);
}

#[tokio::test]
async fn a_stage_that_takes_from_a_later_one_is_refused() {
    let composite = Composite::new("bank", 1).stage(|s| s.view::<Account>().stage_view::<Sheet>());
    check(ground().daemon().composite(composite).start().await, &["sheet", "Account", "no earlier stage"]);
    check(ground().daemon().composite(Composite::new("empty", 1)).start().await, &["empty", "no members"]);
}

#[derive(Default, Serialize, Deserialize)]
struct Unnamed;

impl MultiView for Unnamed {
    const NAME: &'static str = "";
    type Event = Money;

    fn keys(_: &Recorded<Money>, _: &mut Keys) {}

    fn apply(&mut self, _: &str, _: &Recorded<Money>) -> Change {
        Change::Keep
    }
}

#[tokio::test]
async fn a_name_no_database_takes_is_refused() {
    check(ground().daemon().multi_view::<Unnamed>().start().await, &["empty"]);
}

#[tokio::test]
async fn a_wrong_number_is_named() {
    let config = DaemonConfig { standby_poll_ms: 0, ..DaemonConfig::default() };
    check(ground().daemon().config(config).view::<Balance>().start().await, &["standby_poll_ms"]);
}

struct Ledger;

impl SqlProjection for Ledger {
    const NAME: &'static str = "ledger";
    type Event = Money;

    fn setup(&self, _: SqlDialect) -> Vec<Statement> {
        Vec::new()
    }

    async fn project(&self, _: Page<'_, Money>, _: &mut Tx<'_>) -> Result<(), BoxError> {
        Ok(())
    }
}

#[tokio::test]
async fn a_projection_in_sql_is_refused_where_there_is_no_sql() {
    check(ground().daemon().sql(Ledger).start().await, &["ledger", "memory", "no SQL"]);
}
