//! Statements of the user's own, and what messages may show.

#[allow(dead_code, reason = "each test file takes what it needs")]
#[path = "server/scene.rs"]
mod scene;

use bellwether_postgres::{Postgres, PostgresConfig};
use bellwether_storage::{ErrorKind, Projections, Sequence, Statement, Value};

use crate::scene::{fresh, handle, owner, row, take_over, tenant};

const TABLE: &str = "CREATE TABLE IF NOT EXISTS mine
    (small int2, plain int4, large int8, ratio float8, exact numeric, name text, raw bytea, id uuid, doc jsonb, yes bool)";

async fn page(db: &Postgres, statements: &[Statement]) {
    let acme = tenant(db, "acme").await;
    let key = row(db, &acme).await;
    let start = take_over(db, owner(), key).await.unwrap();
    let mut unit = db.begin(&start).await.unwrap();
    for statement in statements {
        assert_eq!(unit.execute(statement).await.unwrap(), 1, "{statement:?}");
    }
    unit.finish(Sequence::ZERO, &[]).await.unwrap();
}

// T3
#[tokio::test]
async fn null_and_numbers_fit_columns_of_every_type() {
    let Some(url) = fresh("null_and_numbers_fit_columns_of_every_type").await else { return };
    let db = handle(&url).await;
    db.set_up(&[Statement::new(TABLE)]).await.unwrap();
    let mut statements = Vec::new();
    for text in [
        "INSERT INTO mine (small) VALUES ($1)",
        "INSERT INTO mine (plain) VALUES ($1)",
        "INSERT INTO mine (large) VALUES ($1)",
        "INSERT INTO mine (ratio) VALUES ($1)",
        "INSERT INTO mine (exact) VALUES ($1)",
    ] {
        // The same text with a number and with NULL, in both orders.
        statements.push(Statement::new(text).bind(Value::Null));
        statements.push(Statement::new(text).bind(7i64));
        statements.push(Statement::new(text).bind(Value::Null));
    }
    for text in [
        "INSERT INTO mine (name) VALUES ($1)",
        "INSERT INTO mine (raw) VALUES ($1)",
        "INSERT INTO mine (id) VALUES ($1)",
        "INSERT INTO mine (doc) VALUES ($1)",
        "INSERT INTO mine (yes) VALUES ($1)",
    ] {
        statements.push(Statement::new(text).bind(Value::Null));
    }
    statements.push(Statement::new("INSERT INTO mine (doc) VALUES ($1::jsonb)").bind("{\"a\": 1}"));
    page(&db, &statements).await;
    let sums = "SELECT sum(small)::int8, sum(plain)::int8, sum(large)::int8, sum(ratio), sum(exact)::int8, count(*) FROM mine";
    let rows = db.query(&Statement::new(sums)).await.unwrap();
    let expected =
        [Value::Int(7), Value::Int(7), Value::Int(7), Value::Float(7.0), Value::Int(7), Value::Int(21)];
    assert_eq!(rows[0].0, expected);
}

// T3
#[tokio::test]
async fn a_column_without_a_neutral_form_is_refused_with_the_fix() {
    let Some(url) = fresh("a_column_without_a_neutral_form_is_refused_with_the_fix").await else { return };
    let db = handle(&url).await;
    let refused = db.query(&Statement::new("SELECT 1.5::numeric AS price")).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Rejected);
    assert!(refused.to_string().contains("\"price\"") && refused.to_string().contains("cast"), "{refused}");
    let allowed = db.query(&Statement::new("SELECT 1.5::numeric::text, NULL::numeric")).await.unwrap();
    assert_eq!(allowed[0].0, [Value::Text("1.5".into()), Value::Null]);
}

// T3
#[tokio::test]
async fn more_rows_than_an_answer_may_have_are_refused() {
    let Some(url) = fresh("more_rows_than_an_answer_may_have_are_refused").await else { return };
    let db = handle(&url).await;
    let rows = |n: i64| Statement::new("SELECT generate_series(1, $1)").bind(n);
    assert_eq!(db.query(&rows(10_000)).await.unwrap().len(), 10_000);
    assert_eq!(db.query(&rows(10_001)).await.unwrap_err().kind(), ErrorKind::Rejected);
    assert_eq!(db.query(&rows(3)).await.unwrap().len(), 3, "the next call finds a sound connection");
}

#[tokio::test]
async fn messages_never_show_credentials() {
    let unreachable = "postgres://joe:s3cret@127.0.0.1:1/shop";
    let unreadable = "postgres://joe:s3cret@127.0.0.1:notaport/shop";
    let mut config = PostgresConfig::new(unreachable);
    config.connect_timeout_ms = 2_000;
    let unavailable = Postgres::connect_with(config).await.unwrap_err();
    assert_eq!(unavailable.kind(), ErrorKind::Unavailable);
    let rejected = Postgres::connect(unreadable).await.unwrap_err();
    assert_eq!(rejected.kind(), ErrorKind::Rejected);
    for error in [unavailable, rejected] {
        let shown = format!("{error} {error:?}");
        assert!(!shown.contains("s3cret") && !shown.contains("joe"), "{shown}");
    }
}

#[tokio::test]
async fn a_database_that_is_not_there_is_rejected() {
    let Some(url) = fresh("a_database_that_is_not_there_is_rejected").await else { return };
    let refused = Postgres::connect(&format!("{url}_nowhere")).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Rejected);
    assert!(refused.to_string().contains("create the database"), "{refused}");
}
