//! SQL of the user's own: in the page's transaction, and never out of it.

use bellwether_storage::{ErrorKind, PageStart, SqlDialect, Statement, Value, ViewNo};
use bytes::Bytes;

use crate::Subject;
use crate::given::{
    Db, Patience, documents, kind, owner, position, progress, row, seq, set, tenant, view, write,
};

const TABLE: &str =
    "CREATE TABLE IF NOT EXISTS exam_counts (name TEXT NOT NULL PRIMARY KEY, n BIGINT NOT NULL)";
const INSERT: &str = "INSERT INTO exam_counts (name, n) VALUES ($1, $2)";
const COUNT: &str = "SELECT count(*) FROM exam_counts";

/// Runs where the store speaks SQL; the case that it says so clearly where it does not is one of its own.
fn speaks_sql(db: &Db) -> SqlDialect {
    db.dialect().expect("a store without SQL lists this case as not applicable")
}

async fn scene(db: &Db) -> (ViewNo, PageStart) {
    speaks_sql(db);
    db.set_up(&[Statement::new(TABLE)]).await.expect("the user's table");
    let acme = tenant(db, "acme").await;
    (view(db, "v", 1).await, position(db, owner(), row(db, &acme, "p").await).await)
}

async fn count(db: &Db) -> i64 {
    db.query(&Statement::new(COUNT)).await.expect("the user's rows")[0].int(0).expect("a number")
}

pub async fn sql_is_offered_or_clearly_unsupported(subject: &dyn Subject) {
    let db = subject.first();
    let one = Statement::new("SELECT 1");
    let acme = tenant(db, "acme").await;
    let page = position(db, owner(), row(db, &acme, "p").await).await;
    if db.dialect().is_some() {
        assert_eq!(db.query(&one).await.unwrap()[0].int(0).unwrap(), 1);
        let mut unit = db.begin(&page).await.unwrap();
        assert_eq!(unit.query(&one).await.unwrap()[0].int(0).unwrap(), 1);
        return;
    }
    let mut unit = db.begin(&page).await.unwrap();
    for refused in [
        db.query(&one).await.map(drop),
        db.set_up(std::slice::from_ref(&one)).await,
        unit.query(&one).await.map(drop),
        unit.execute(&one).await.map(drop),
    ] {
        let error = refused.expect_err("there is no SQL");
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().len() > error.message().len(), "it says what to do instead: {error}");
    }
}

pub async fn user_sql_commits_with_the_page_or_not_at_all(subject: &dyn Subject) {
    let db = subject.first();
    let (view, mut page) = scene(db).await;
    for (round, finished) in [true, false, true, false].into_iter().enumerate() {
        let before = count(subject.second()).await;
        let patience = Patience::new();
        let mut unit = loop {
            match db.begin(&page).await {
                Ok(unit) => break unit,
                Err(error) if error.kind() == ErrorKind::Unavailable => patience.pause("the row").await,
                Err(error) => panic!("{error:?}"),
            }
        };
        let insert = Statement::new(INSERT).bind(format!("row-{round}")).bind(round as i64);
        assert_eq!(unit.execute(&insert).await.unwrap(), 1, "one row changed");
        unit.write(view, vec![write(&format!("d{round}"), "x")]).await.unwrap();
        let inside = unit.query(&Statement::new(COUNT)).await.unwrap()[0].int(0).unwrap();
        assert_eq!(inside, before + 1, "the page sees its own rows");
        let update = Statement::new("UPDATE exam_counts SET n = n + 100 WHERE n >= $1").bind(0i64);
        assert_eq!(unit.execute(&update).await.unwrap(), inside as u64);
        assert_eq!(count(subject.second()).await, before, "nobody else sees an open page");
        if finished {
            unit.finish(page.from.next(), &[]).await.unwrap();
            page.from = page.from.next();
        } else {
            drop(unit);
        }
        assert_eq!(count(subject.second()).await, before + i64::from(finished));
        assert_eq!(
            documents(subject.second(), set(view, page.key)).await.len() as i64,
            before + i64::from(finished)
        );
        assert_eq!(progress(subject.second(), page.key).await.unwrap().sequence, page.from);
    }
}

pub async fn user_sql_cannot_end_the_transaction(subject: &dyn Subject) {
    let db = subject.first();
    let (view, page) = scene(db).await;
    let mut endings = vec![
        "COMMIT",
        "commit",
        "END",
        "ROLLBACK",
        "BEGIN",
        "  COMMIT  ",
        "COMMIT;",
        "/* a comment */ COMMIT",
        "-- a comment\nROLLBACK",
        "/* a */ /* b */ END",
        "COMMIT TRANSACTION",
        "END TRANSACTION",
        "ROLLBACK TRANSACTION",
        ";COMMIT",
        "; ; COMMIT",
        "SELECT 1; COMMIT",
        "INSERT INTO exam_counts (name, n) VALUES ('smuggled', 1); COMMIT",
        "COMMIT; BEGIN",
    ];
    if speaks_sql(db) == SqlDialect::Postgres {
        endings.extend([
            "ABORT",
            "START TRANSACTION",
            "COMMIT AND CHAIN",
            "ROLLBACK AND CHAIN",
            "PREPARE TRANSACTION 'exam'",
            "/* a /* nested */ comment */ COMMIT",
            "DO $$ BEGIN COMMIT; END $$",
            "DO $$ BEGIN ROLLBACK; END $$",
        ]);
    }
    for text in endings {
        for queried in [false, true] {
            let patience = Patience::new();
            let mut unit = loop {
                match db.begin(&page).await {
                    Ok(unit) => break unit,
                    Err(error) if error.kind() == ErrorKind::Unavailable => patience.pause("the row").await,
                    Err(error) => panic!("{error:?}"),
                }
            };
            unit.write(view, vec![write("intruder", "x")]).await.unwrap();
            unit.execute(&Statement::new(INSERT).bind("intruder").bind(1i64)).await.unwrap();
            let statement = Statement::new(text);
            let refused = if queried {
                unit.query(&statement).await.map(drop)
            } else {
                unit.execute(&statement).await.map(drop)
            };
            assert_eq!(kind(&refused), Some(ErrorKind::Rejected), "{text:?} was answered {refused:?}");
            // The unit is gone: it cannot be finished either.
            let finished = unit.finish(page.from.next(), &[]).await;
            assert!(finished.is_err(), "a page went on after {text:?}");
            assert_eq!(count(subject.second()).await, 0, "rows stay after {text:?}");
            assert_eq!(
                documents(subject.second(), set(view, page.key)).await,
                [],
                "documents stay after {text:?}"
            );
            assert_eq!(progress(subject.second(), page.key).await.unwrap().sequence, page.from);
        }
    }
    let mut unit = db.begin(&page).await.expect("the store is whole afterwards");
    unit.execute(&Statement::new(INSERT).bind("COMMIT; -- is only text").bind(1i64)).await.unwrap();
    unit.finish(page.from.next(), &[]).await.unwrap();
    assert_eq!(count(subject.second()).await, 1);
}

pub async fn a_refused_statement_undoes_the_page(subject: &dyn Subject) {
    let db = subject.first();
    let (view, page) = scene(db).await;
    let twice = Statement::new(INSERT).bind("twice").bind(1i64);
    let bad = [
        Statement::new("INSERT INTO no_such_table VALUES (1)"),
        Statement::new("this is no sql"),
        Statement::new(INSERT).bind("no number").bind(Value::Null),
        twice.clone(),
    ];
    for statement in bad {
        let mut unit = db.begin(&page).await.unwrap();
        unit.write(view, vec![write("d", "x")]).await.unwrap();
        unit.execute(&twice).await.unwrap();
        let refused = unit.execute(&statement).await;
        assert_eq!(kind(&refused), Some(ErrorKind::Rejected), "{statement:?}: {refused:?}");
        // A database answers COMMIT of a failed transaction with a roll-back: that is no success.
        let finished = unit.finish(seq(9), &[]).await;
        assert!(finished.is_err(), "a page went in although {statement:?} was refused");
        assert_eq!(count(subject.second()).await, 0);
        assert_eq!(documents(subject.second(), set(view, page.key)).await, []);
        assert_eq!(progress(subject.second(), page.key).await.unwrap().sequence, page.from);
    }
}

pub async fn set_up_is_whole_and_can_be_repeated(subject: &dyn Subject) {
    let db = subject.first();
    speaks_sql(db);
    let other = "CREATE TABLE IF NOT EXISTS exam_other (n BIGINT NOT NULL)";
    for handle in [db, subject.second(), db] {
        handle.set_up(&[Statement::new(TABLE), Statement::new(other)]).await.unwrap();
    }
    assert_eq!(count(db).await, 0);
    let third = "CREATE TABLE exam_third (n BIGINT NOT NULL)";
    let refused = db.set_up(&[Statement::new(third), Statement::new("this is no sql")]).await;
    assert_eq!(kind(&refused), Some(ErrorKind::Rejected), "{refused:?}");
    let found = db.query(&Statement::new("SELECT count(*) FROM exam_third")).await;
    assert_eq!(kind(&found), Some(ErrorKind::Rejected), "nothing of a refused set-up stays: {found:?}");
    db.set_up(&[]).await.unwrap();
}

pub async fn values_come_back_as_they_went_in(subject: &dyn Subject) {
    let db = subject.first();
    let (_, page) = scene(db).await;
    let sqlite = speaks_sql(db) == SqlDialect::Sqlite;
    let table = if sqlite {
        "CREATE TABLE exam_values (no BIGINT, b BOOLEAN, i BIGINT, f DOUBLE PRECISION, t TEXT, x BLOB)"
    } else {
        "CREATE TABLE exam_values (no BIGINT, b BOOLEAN, i BIGINT, f DOUBLE PRECISION, t TEXT, x BYTEA)"
    };
    db.set_up(&[Statement::new(table)]).await.unwrap();
    let every_byte = Bytes::from((0..=255u8).collect::<Vec<_>>());
    let rows = [
        [
            Value::Bool(true),
            Value::Int(i64::MAX),
            Value::Float(0.1),
            Value::Text("it's 😀 $1".into()),
            Value::Bytes(every_byte),
        ],
        [
            Value::Bool(false),
            Value::Int(i64::MIN),
            Value::Float(-1e300),
            Value::Text(String::new()),
            Value::Bytes(Bytes::new()),
        ],
        [Value::Null, Value::Null, Value::Null, Value::Null, Value::Null],
        [
            Value::Bool(true),
            Value::Int(1 << 53),
            Value::Float(2.0),
            Value::Text("'; --".into()),
            Value::Bytes(b"\0".to_vec().into()),
        ],
    ];
    let mut unit = db.begin(&page).await.unwrap();
    let select = Statement::new("SELECT b, i, f, t, x FROM exam_values ORDER BY no");
    for (no, row) in rows.iter().enumerate() {
        let mut insert =
            Statement::new("INSERT INTO exam_values (no, b, i, f, t, x) VALUES ($1, $2, $3, $4, $5, $6)")
                .bind(no as i64);
        insert.values.extend(row.iter().cloned());
        unit.execute(&insert).await.unwrap();
    }
    let inside = unit.query(&select).await.unwrap();
    unit.finish(page.from, &[]).await.unwrap();
    let found = subject.second().query(&select).await.unwrap();
    assert_eq!(inside, found);
    for (found, sent) in found.iter().zip(&rows) {
        for (found, sent) in found.0.iter().zip(sent) {
            match (found, sent) {
                (Value::Int(found), Value::Bool(sent)) if sqlite => assert_eq!(*found, i64::from(*sent)),
                _ => assert_eq!(found, sent),
            }
        }
    }
    // A value may be used twice, in any order.
    let twice = Statement::new("SELECT count(*) FROM exam_values WHERE no < $2 AND no >= $1 AND no < $2")
        .bind(1i64)
        .bind(3i64);
    assert_eq!(db.query(&twice).await.unwrap()[0].int(0).unwrap(), 2);
    let many =
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10001) SELECT i FROM n";
    assert_eq!(
        kind(&db.query(&Statement::new(many)).await),
        Some(ErrorKind::Rejected),
        "more than 10,000 rows"
    );
    let most =
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000) SELECT i FROM n";
    assert_eq!(db.query(&Statement::new(most)).await.unwrap().len(), 10_000);
}

pub async fn a_query_outside_a_page_changes_nothing(subject: &dyn Subject) {
    let db = subject.first();
    let (_, page) = scene(db).await;
    let mut unit = db.begin(&page).await.unwrap();
    unit.execute(&Statement::new(INSERT).bind("a").bind(1i64)).await.unwrap();
    unit.finish(page.from, &[]).await.unwrap();
    for text in [
        "INSERT INTO exam_counts (name, n) VALUES ('b', 1) RETURNING n",
        "DELETE FROM exam_counts RETURNING n",
        "UPDATE exam_counts SET n = 2 RETURNING n",
        "DROP TABLE exam_counts",
        "SELECT 1; DELETE FROM exam_counts",
    ] {
        let refused = db.query(&Statement::new(text)).await;
        assert_eq!(kind(&refused), Some(ErrorKind::Rejected), "{text:?} was answered {refused:?}");
        let rows = subject.second().query(&Statement::new("SELECT name, n FROM exam_counts")).await.unwrap();
        assert_eq!(
            (rows.len(), rows[0].text(0).unwrap(), rows[0].int(1).unwrap()),
            (1, "a", 1),
            "after {text:?}"
        );
    }
}
