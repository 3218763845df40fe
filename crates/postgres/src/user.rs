//! Statements of the user's own: binding neutral values, reading neutral rows.

use std::error::Error as StdError;
use std::fmt::Write;

use bellwether_storage::{Error, Result, Row as NeutralRow, Statement, Value};
use bytes::Bytes;
use sqlx::encode::IsNull;
use sqlx::postgres::types::Oid;
use sqlx::postgres::{PgArgumentBuffer, PgArguments, PgRow, PgTypeInfo};
use sqlx::{AssertSqlSafe, Column, Encode, Postgres, Row, Type, TypeInfo, ValueRef};

use crate::decide::user_sql;
use crate::error::nothing_happened;
use crate::values::Values;

/// Rows of one answer, as the port allows.
pub(crate) const ROWS_MAX: usize = 10_000;

/// NULL of no declared type: the server takes that of its place.
struct Untyped;

impl Type<Postgres> for Untyped {
    fn type_info() -> PgTypeInfo {
        PgTypeInfo::with_oid(Oid(0))
    }
}

impl Encode<'_, Postgres> for Untyped {
    fn encode_by_ref(
        &self,
        _buffer: &mut PgArgumentBuffer,
    ) -> Result<IsNull, Box<dyn StdError + Send + Sync>> {
        Ok(IsNull::Yes)
    }
}

/// Text and values as the driver wants them.
///
/// A whole number is sent as `int8`, a floating point number as `float8`, text as `text`, bytes as `bytea`: PostgreSQL casts
/// them when it stores them in a narrower number; elsewhere write `$1::uuid`, `$1::jsonb`, …. NULL fits everywhere.
///
/// # Errors
///
/// `Rejected` when the statement would end the transaction or change the session.
pub(crate) fn prepare(statement: &Statement) -> Result<(AssertSqlSafe<String>, PgArguments)> {
    user_sql::check(statement.text)?;
    let mut values = Values::default();
    // The driver keeps prepared statements by their text alone, but the same text with NULL and with a number are two
    // different ones; so the kinds become part of the text.
    let mut text = format!("{}\n/*", statement.text);
    for value in &statement.values {
        let kind;
        (values, kind) = match value {
            Value::Null => (values.add(Untyped)?, '0'),
            Value::Bool(value) => (values.add(*value)?, 'b'),
            Value::Int(value) => (values.add(*value)?, 'i'),
            Value::Float(value) => (values.add(*value)?, 'f'),
            Value::Text(value) => (values.add(value.as_str())?, 't'),
            Value::Bytes(value) => (values.add(value.as_ref())?, 'x'),
            other => {
                return Err(Error::unsupported(format!("a value of a newer kind: {other:?}"))
                    .fix("upgrade this adapter"));
            }
        };
        // Writing to a String does not fail.
        let _ = write!(text, " {kind}");
    }
    text.push_str(" */");
    Ok((AssertSqlSafe(text), values.done()))
}

/// A row of an answer as neutral values.
///
/// # Errors
///
/// `Rejected` when a column is of a type without a neutral form: cast it in the query.
pub(crate) fn neutral(row: &PgRow) -> Result<NeutralRow> {
    (0..row.len()).map(|index| value(row, index)).collect::<Result<_>>().map(NeutralRow)
}

fn value(row: &PgRow, index: usize) -> Result<Value> {
    let raw = row.try_get_raw(index).map_err(nothing_happened)?;
    if raw.is_null() {
        return Ok(Value::Null);
    }
    let kind = raw.type_info().name().to_owned();
    let value = match kind.as_str() {
        "BOOL" => row.try_get(index).map(Value::Bool),
        "INT2" => row.try_get::<i16, _>(index).map(|number| Value::Int(number.into())),
        "INT4" => row.try_get::<i32, _>(index).map(|number| Value::Int(number.into())),
        "INT8" => row.try_get(index).map(Value::Int),
        "FLOAT4" => row.try_get::<f32, _>(index).map(|number| Value::Float(number.into())),
        "FLOAT8" => row.try_get(index).map(Value::Float),
        "TEXT" | "VARCHAR" | "CHAR" | "NAME" | "UNKNOWN" => row.try_get(index).map(Value::Text),
        "BYTEA" => row.try_get::<&[u8], _>(index).map(|bytes| Value::Bytes(Bytes::copy_from_slice(bytes))),
        "UUID" => row.try_get::<uuid::Uuid, _>(index).map(|id| Value::Text(id.to_string())),
        _ => {
            let name = row.columns().get(index).map_or("", |column| column.name());
            return Err(Error::rejected(format!("column {index} ({name:?}) is of type {kind}"))
                .fix("cast it in the query, for example to text or int8"));
        }
    };
    value.map_err(nothing_happened)
}

/// An error of the user's own statement: a write where only reading is allowed is refused, not a fault of the server.
pub(crate) fn refused(error: sqlx::Error) -> Error {
    let read_only =
        matches!(&error, sqlx::Error::Database(answer) if answer.code().as_deref() == Some("25006"));
    if read_only {
        return Error::rejected("only reading is allowed here")
            .fix("write in a page or in the set-up")
            .source(error);
    }
    nothing_happened(error)
}
