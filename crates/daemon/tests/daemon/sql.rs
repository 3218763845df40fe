//! Projections in the user's own SQL: in the page's transaction, or not at all.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bellwether_daemon::{AgentState, Page, SqlProjection, Tx};
use bellwether_storage::{BoxError, Database, SqlDialect, Statement};

use crate::bank::{Money, deposited};
use crate::ground::{Ground, SOON, all_grounds};

/// A row per deposit, and a running sum that would show an event applied twice.
#[derive(Default)]
struct Ledger;

impl SqlProjection for Ledger {
    const NAME: &'static str = "ledger";
    type Event = Money;

    fn setup(&self, _: SqlDialect) -> Vec<Statement> {
        vec![
            Statement::new(
                "CREATE TABLE IF NOT EXISTS ledger_entries (tenant TEXT NOT NULL, seq BIGINT NOT NULL, \
                 cents BIGINT NOT NULL CHECK (cents <> 13), PRIMARY KEY (tenant, seq))",
            ),
            Statement::new(
                "CREATE TABLE IF NOT EXISTS ledger_sums (tenant TEXT PRIMARY KEY, cents BIGINT NOT NULL)",
            ),
        ]
    }

    async fn project(&self, page: Page<'_, Money>, tx: &mut Tx<'_>) -> Result<(), BoxError> {
        assert!(!page.is_empty(), "a page holds at least one event");
        for event in page {
            let cents = match event.event {
                Money::Deposited { cents } => cents,
                Money::Withdrawn { cents } => -cents,
                Money::Cursed => panic!("cursed be this event"),
                Money::Odd => return Err("odd events are not booked".into()),
                _ => continue,
            };
            let insert =
                Statement::new("INSERT INTO ledger_entries (tenant, seq, cents) VALUES ($1, $2, $3)")
                    .bind(page.tenant().as_str())
                    .bind(event.sequence.as_i64())
                    .bind(cents);
            tx.execute(&insert).await?;
            let sum = Statement::new(
                "INSERT INTO ledger_sums (tenant, cents) VALUES ($1, $2) \
                 ON CONFLICT (tenant) DO UPDATE SET cents = ledger_sums.cents + excluded.cents",
            )
            .bind(page.tenant().as_str())
            .bind(cents);
            tx.execute(&sum).await?;
        }
        let read =
            Statement::new("SELECT cents FROM ledger_sums WHERE tenant = $1").bind(page.tenant().as_str());
        let rows = tx.query(&read).await?;
        assert!(rows.len() <= 1, "the page sees its own writes");
        Ok(())
    }
}

async fn sql_grounds() -> Vec<Ground> {
    all_grounds().await.into_iter().filter(|ground| ground.database().dialect().is_some()).collect()
}

async fn numbers(database: &Arc<dyn Database>, text: &'static str, tenant: &str) -> Vec<i64> {
    let rows = database.query(&Statement::new(text).bind(tenant)).await.unwrap();
    rows.iter().map(|row| row.int(0).unwrap()).collect()
}

async fn entries(database: &Arc<dyn Database>, tenant: &str) -> Vec<i64> {
    numbers(database, "SELECT seq FROM ledger_entries WHERE tenant = $1 ORDER BY seq", tenant).await
}

async fn sum(database: &Arc<dyn Database>, tenant: &str) -> Vec<i64> {
    numbers(database, "SELECT cents FROM ledger_sums WHERE tenant = $1", tenant).await
}

// T3 X4
#[tokio::test]
async fn users_tables_follow_exactly_once_over_restarts() {
    for ground in sql_grounds().await {
        for round in 1..=3 {
            ground.append("acme", "a-1", &vec![deposited(2); 40]).await;
            ground.append("globex", "a-1", &[deposited(1)]).await;
            let daemon = ground.daemon().sql(Ledger).start().await.unwrap();
            daemon.caught_up(SOON).await.unwrap();
            assert_eq!(sum(&ground.database(), "acme").await, [80 * round]);
            assert_eq!(sum(&ground.database(), "globex").await, [round]);
            assert_eq!(entries(&ground.database(), "acme").await.len(), 40 * round as usize);
            daemon.stop().await.unwrap();
        }
    }
}

// T3
#[tokio::test]
async fn events_that_spoil_the_users_sql_are_found_and_leave_nothing_of_themselves() {
    for ground in sql_grounds().await {
        let mut events = vec![deposited(2); 120];
        events[10] = Money::Odd;
        events[50] = deposited(13);
        events[51] = Money::Cursed;
        events[119] = Money::Odd;
        ground.append("acme", "a-1", &events).await;
        let daemon = ground.daemon().sql(Ledger).start().await.unwrap();
        daemon.caught_up(SOON).await.unwrap();
        let spoilt = [11, 51, 52, 120];
        let expected: Vec<i64> = (1..=120).filter(|sequence| !spoilt.contains(sequence)).collect();
        assert_eq!(entries(&ground.database(), "acme").await, expected);
        assert_eq!(sum(&ground.database(), "acme").await, [2 * 116]);
        let letters = ground.dead_letters("acme").await;
        let found: Vec<_> =
            letters.iter().map(|letter| (letter.sequence.get() as i64, letter.member.as_str())).collect();
        assert_eq!(found, spoilt.map(|sequence| (sequence, "ledger")));
        for (letter, reason) in letters.iter().zip(["odd events", "", "cursed", "odd events"]) {
            assert!(letter.reason.contains(reason), "{letter:?}");
        }
        assert_eq!(daemon.status().agents[0].state, AgentState::Idle);
        daemon.stop().await.unwrap();
    }
}

/// Books what it can, and takes no notice of what the database refuses.
struct Careless;

impl SqlProjection for Careless {
    const NAME: &'static str = "careless";
    type Event = Money;

    fn setup(&self, dialect: SqlDialect) -> Vec<Statement> {
        Ledger.setup(dialect)
    }

    async fn project(&self, page: Page<'_, Money>, tx: &mut Tx<'_>) -> Result<(), BoxError> {
        for event in page {
            let Money::Deposited { cents } = event.event else { continue };
            let insert =
                Statement::new("INSERT INTO ledger_entries (tenant, seq, cents) VALUES ($1, $2, $3)")
                    .bind(page.tenant().as_str())
                    .bind(event.sequence.as_i64())
                    .bind(cents);
            let _unnoticed = tx.execute(&insert).await;
        }
        Ok(())
    }
}

// T3
#[tokio::test]
async fn a_refusal_that_the_users_code_passes_over_is_found_all_the_same() {
    for ground in sql_grounds().await {
        let mut events = vec![deposited(2); 20];
        events[6] = deposited(13);
        ground.append("acme", "a-1", &events).await;
        let daemon = ground.daemon().sql(Careless).start().await.unwrap();
        daemon.caught_up(Duration::from_secs(10)).await.unwrap();
        assert_eq!(entries(&ground.database(), "acme").await.len(), 19);
        let letters = ground.dead_letters("acme").await;
        let found: Vec<_> =
            letters.iter().map(|letter| (letter.sequence.get(), letter.class.as_str())).collect();
        assert_eq!(found, [(7, "rejected")]);
        daemon.stop().await.unwrap();
    }
}

/// Ends its own connection once, and speaks of it in words of its own.
#[derive(Default)]
struct CutOff(AtomicBool);

impl SqlProjection for CutOff {
    const NAME: &'static str = "cut-off";
    const DIALECTS: &'static [SqlDialect] = &[SqlDialect::Postgres];
    type Event = Money;

    fn setup(&self, dialect: SqlDialect) -> Vec<Statement> {
        Ledger.setup(dialect)
    }

    async fn project(&self, page: Page<'_, Money>, tx: &mut Tx<'_>) -> Result<(), BoxError> {
        if !self.0.swap(true, Ordering::SeqCst) {
            let end = Statement::new("SELECT pg_terminate_backend(pg_backend_pid())");
            tx.query(&end).await.map_err(|error| format!("cannot book: {error}"))?;
        }
        Ledger.project(page, tx).await
    }
}

// T3 X4
#[tokio::test]
async fn a_lost_connection_makes_no_dead_letter_however_the_users_code_names_it() {
    for ground in sql_grounds().await {
        if ground.database().dialect() != Some(SqlDialect::Postgres) {
            continue; // There is no connection to lose.
        }
        ground.append("acme", "a-1", &[deposited(2)]).await;
        let daemon = ground.daemon().sql(CutOff::default()).start().await.unwrap();
        daemon.caught_up(SOON).await.unwrap();
        assert_eq!(ground.dead_letters("acme").await, []);
        assert_eq!(entries(&ground.database(), "acme").await, [1]);
        daemon.stop().await.unwrap();
    }
}
