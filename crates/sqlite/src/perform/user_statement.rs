//! Statements of the user's own.

use std::sync::Arc;

use bellwether_storage::{Error, Result, Row, Statement, Value};
use bytes::Bytes;
use sqlx::sqlite::SqliteRow;
use sqlx::{Row as _, TypeInfo, ValueRef};

use super::file::File;
use super::gate::Gate;
use super::link::{Link, Query};
use crate::decide::guard;
use crate::decide::turns::Turn;
use crate::error;

/// Rows of one answer, at most: an answer is in memory as a whole.
const ROWS_MAX: usize = 10_000;

/// Runs a statement; the number of rows it changed.
pub(crate) async fn execute(link: &mut Link, statement: &Statement) -> Result<u64> {
    guard::check(statement.text, statement.values.len())?;
    link.execute(bound(statement)).await.map_err(error::of_user_statement)
}

/// Runs a query.
pub(crate) async fn query(link: &mut Link, statement: &Statement) -> Result<Vec<Row>> {
    guard::check(statement.text, statement.values.len())?;
    let rows = link.up_to(bound(statement), ROWS_MAX).await.map_err(error::of_user_statement)?;
    if rows.len() > ROWS_MAX {
        return Err(Error::rejected(format!("the query has more than {ROWS_MAX} rows"))
            .fix("add a LIMIT and page through it"));
    }
    rows.iter().map(row).collect()
}

/// See [`Projections::set_up`](bellwether_storage::Projections::set_up).
pub(crate) async fn set_up(file: &File, gate: &Arc<Gate>, statements: &[Statement]) -> Result<()> {
    let mut transaction = gate.begin(Turn::Short, file.config().busy_timeout).await?;
    let mut outcome = Ok(());
    for statement in statements {
        outcome = execute(transaction.link(), statement).await.map(drop);
        if outcome.is_err() {
            break;
        }
    }
    transaction.end(outcome).await
}

fn bound(statement: &Statement) -> Query<'_> {
    let mut query = sqlx::query(statement.text);
    for value in &statement.values {
        query = match value {
            Value::Bool(value) => query.bind(*value),
            Value::Int(value) => query.bind(*value),
            Value::Float(value) => query.bind(*value),
            Value::Text(value) => query.bind(value.as_str()),
            Value::Bytes(value) => query.bind(value.as_ref()),
            // A kind of value that this crate does not know yet would be a bug of this crate; `Null` is the only other one.
            _ => query.bind(None::<i64>),
        };
    }
    query
}

fn row(row: &SqliteRow) -> Result<Row> {
    (0..row.len()).map(|index| value(row, index).map_err(error::of)).collect::<Result<_>>().map(Row)
}

fn value(row: &SqliteRow, index: usize) -> sqlx::Result<Value> {
    let raw = row.try_get_raw(index)?;
    if raw.is_null() {
        return Ok(Value::Null);
    }
    // By what the value is, not by what its column was declared as.
    let kind = raw.type_info().name().to_owned();
    Ok(match kind.as_str() {
        "REAL" => Value::Float(row.try_get_unchecked(index)?),
        "TEXT" => Value::Text(row.try_get_unchecked(index)?),
        "BLOB" => Value::Bytes(Bytes::from(row.try_get_unchecked::<Vec<u8>, _>(index)?)),
        _ => Value::Int(row.try_get_unchecked(index)?),
    })
}
