//! Values on their way to the server, and rows on their way back.

use bellwether_storage::{Error, Result};
use sqlx::postgres::{PgArguments, PgRow};
use sqlx::{Arguments, Decode, Encode, Postgres, Row, Type};

use crate::error::{corrupt, nothing_happened};

/// The values of a statement, in order.
#[derive(Default)]
pub(crate) struct Values(PgArguments);

impl Values {
    /// Room for content of so many bytes, so that a large statement is copied once and not grown.
    pub(crate) fn with_room(bytes: usize) -> Self {
        let mut values = PgArguments::default();
        values.reserve(16, bytes);
        Self(values)
    }

    /// Adds the next value.
    ///
    /// # Errors
    ///
    /// `Rejected` when it is larger than a message may be.
    pub(crate) fn add<'q, T: Encode<'q, Postgres> + Type<Postgres>>(mut self, value: T) -> Result<Self> {
        self.0.add(value).map_err(|error| nothing_happened(sqlx::Error::Encode(error)))?;
        Ok(self)
    }

    pub(crate) fn done(self) -> PgArguments {
        self.0
    }
}

/// One column of a row of ours.
pub(crate) fn column<'r, T: Decode<'r, Postgres> + Type<Postgres>>(
    row: &'r PgRow,
    index: usize,
) -> Result<T> {
    row.try_get(index).map_err(nothing_happened)
}

/// A count or number that is never negative.
pub(crate) fn unsigned(row: &PgRow, index: usize) -> Result<u64> {
    let number: i64 = column(row, index)?;
    u64::try_from(number).map_err(|error| corrupt("number", error))
}

/// A number as this database stores it.
pub(crate) fn signed(number: u64, what: &str) -> Result<i64> {
    i64::try_from(number).map_err(|_| {
        Error::rejected(format!("{what} {number} is out of range"))
            .fix(format!("keep it at or below {}", i64::MAX))
    })
}
