//! SQL of the user's own, neutral of any driver.

use bytes::Bytes;

use crate::{Error, Result};

/// The SQL a database speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SqlDialect {
    /// SQLite.
    Sqlite,
    /// PostgreSQL.
    Postgres,
    /// MySQL and MariaDB.
    MySql,
}

/// A statement: text with `$1`, `$2` … and its values. Values never become text.
#[derive(Debug, Clone, PartialEq)]
pub struct Statement {
    /// The text; a constant of the program.
    pub text: &'static str,
    /// Values of `$1`, `$2` …
    pub values: Vec<Value>,
}

impl Statement {
    /// A statement without values.
    pub fn new(text: &'static str) -> Self {
        Self { text, values: Vec::new() }
    }

    /// Adds the next value.
    #[must_use]
    pub fn bind(mut self, value: impl Into<Value>) -> Self {
        self.values.push(value.into());
        self
    }
}

/// A value in a statement or a row.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// No value; takes the type of its column.
    Null,
    /// True or false; SQLite returns it as `Int`.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A floating point number.
    Float(f64),
    /// Text.
    Text(String),
    /// Bytes.
    Bytes(Bytes),
}

/// A row of a query's answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Row(pub Vec<Value>);

impl Row {
    /// Column `index` as a whole number.
    ///
    /// # Errors
    ///
    /// `Rejected` when there is no such column or it is of another type.
    pub fn int(&self, index: usize) -> Result<i64> {
        match self.0.get(index) {
            Some(Value::Int(number)) => Ok(*number),
            other => Err(wrong(index, "a whole number", other)),
        }
    }

    /// Column `index` as text.
    ///
    /// # Errors
    ///
    /// `Rejected` when there is no such column or it is of another type.
    pub fn text(&self, index: usize) -> Result<&str> {
        match self.0.get(index) {
            Some(Value::Text(text)) => Ok(text),
            other => Err(wrong(index, "text", other)),
        }
    }
}

fn wrong(index: usize, expected: &str, found: Option<&Value>) -> Error {
    let found = match found {
        None => "missing",
        Some(Value::Null) => "NULL",
        Some(Value::Bool(_)) => "a boolean",
        Some(Value::Int(_)) => "a whole number",
        Some(Value::Float(_)) => "a floating point number",
        Some(Value::Text(_)) => "text",
        Some(Value::Bytes(_)) => "bytes",
    };
    Error::rejected(format!("column {index} is {found}, not {expected}")).fix("cast it in the query")
}

macro_rules! into_value {
    ($($from:ty => $variant:ident),* $(,)?) => {
        $(impl From<$from> for Value {
            fn from(value: $from) -> Self {
                Self::$variant(value.into())
            }
        })*
    };
}

into_value! { bool => Bool, i64 => Int, i32 => Int, u32 => Int, f64 => Float, String => Text, &str => Text, Bytes => Bytes, Vec<u8> => Bytes }

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}
