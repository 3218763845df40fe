//! One connection to the file; it counts its statements, and dropping it rolls back.

use std::sync::Arc;

use bellwether_storage::Result;
use futures_util::TryStreamExt;
use sqlx::sqlite::{Sqlite, SqliteArguments, SqliteConnection, SqliteRow};
use sqlx::{Connection, Decode, Row, Type};

use super::file::{File, Use};
use crate::error;

/// A statement with its values.
pub(crate) type Query<'q> = sqlx::query::Query<'q, Sqlite, SqliteArguments>;

/// A connection that counts its statements.
///
/// Dropping it closes it, which rolls back whatever it had begun: that is how everything here answers to a dropped future or
/// an error it does not understand.
pub(crate) struct Link {
    connection: SqliteConnection,
    file: Arc<File>,
}

impl Link {
    pub(crate) async fn connect(file: &Arc<File>, purpose: Use) -> sqlx::Result<Self> {
        let connection = SqliteConnection::connect_with(&file.options(purpose)).await?;
        Ok(Self { connection, file: Arc::clone(file) })
    }

    /// Runs a statement; the number of rows it changed.
    pub(crate) async fn execute(&mut self, query: Query<'_>) -> sqlx::Result<u64> {
        self.file.count_statement();
        Ok(query.execute(&mut self.connection).await?.rows_affected())
    }

    /// Runs a text of several statements without values.
    pub(crate) async fn execute_all(&mut self, text: &'static str) -> sqlx::Result<()> {
        self.file.count_statement();
        sqlx::raw_sql(text).execute(&mut self.connection).await?;
        Ok(())
    }

    /// Runs a query and takes row by row, so that an answer is in memory once.
    pub(crate) async fn each(
        &mut self,
        query: Query<'_>,
        mut take: impl FnMut(&SqliteRow) -> Result<()>,
    ) -> Result<()> {
        self.file.count_statement();
        let mut rows = query.fetch(&mut self.connection);
        while let Some(row) = rows.try_next().await.map_err(error::of)? {
            take(&row)?;
        }
        Ok(())
    }

    /// Runs a query of which at most `rows_max` rows are wanted; one more tells that there are more.
    pub(crate) async fn up_to(&mut self, query: Query<'_>, rows_max: usize) -> sqlx::Result<Vec<SqliteRow>> {
        self.file.count_statement();
        let mut found = Vec::new();
        let mut rows = query.fetch(&mut self.connection);
        while let Some(row) = rows.try_next().await? {
            found.push(row);
            if found.len() > rows_max {
                break;
            }
        }
        Ok(found)
    }

    /// Runs a query of at most one row.
    pub(crate) async fn optional(&mut self, query: Query<'_>) -> Result<Option<SqliteRow>> {
        self.file.count_statement();
        query.fetch_optional(&mut self.connection).await.map_err(error::of)
    }

    /// Runs a query of one value.
    pub(crate) async fn one<T>(&mut self, query: Query<'_>) -> Result<T>
    where
        T: for<'r> Decode<'r, Sqlite> + Type<Sqlite>,
    {
        self.file.count_statement();
        let row = query.fetch_one(&mut self.connection).await.map_err(error::of)?;
        column(&row, 0)
    }

    /// Prepares every statement of a text without running it.
    pub(crate) async fn prepare(&mut self, text: String) -> Result<()> {
        use sqlx::{AssertSqlSafe, Executor, SqlSafeStr};
        let text = AssertSqlSafe(text).into_sql_str();
        self.connection.prepare(text).await.map(drop).map_err(error::of)
    }

    /// Closes in good order.
    pub(crate) async fn close(self) {
        if let Err(error) = self.connection.close().await {
            tracing::warn!(%error, "a connection did not close in good order");
        }
    }
}

/// Column `index` of a row.
///
/// # Errors
///
/// `Corrupt` when it is of another type.
pub(crate) fn column<'r, T>(row: &'r SqliteRow, index: usize) -> Result<T>
where
    T: Decode<'r, Sqlite> + Type<Sqlite>,
{
    row.try_get(index).map_err(error::of)
}
