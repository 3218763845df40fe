//! A page's transaction.

use std::sync::Arc;

use async_trait::async_trait;
use bellwether_storage::{
    DeadLetter, Document, DocumentKey, DocumentWrite, Error, PageStart, Progress, Result, Row, Sequence,
    Statement, Timestamp, UnitOfWork, ViewNo,
};
use sqlx::AssertSqlSafe;

use super::append::json;
use super::file::{File, clock};
use super::gate::{Gate, Transaction};
use super::link::Link;
use super::{progress, user_statement, views};
use crate::decide::turns::Turn;
use crate::{error, sql};

/// See [`Projections::begin`](bellwether_storage::Projections::begin).
pub(crate) async fn begin(file: &File, gate: &Arc<Gate>, start: &PageStart) -> Result<Box<dyn UnitOfWork>> {
    let mut transaction = gate.begin(Turn::Page, file.config().busy_timeout).await?;
    match verify(transaction.link(), start).await {
        Ok(()) => Ok(Box::new(Unit { transaction: Some(transaction), start: *start })),
        Err(error) => transaction.end(Err(error)).await,
    }
}

async fn verify(link: &mut Link, start: &PageStart) -> Result<()> {
    let key = start.key;
    let query = sqlx::query(sql::PROGRESS_LOCK)
        .bind(key.tenant.0)
        .bind(key.projection.0)
        .bind(key.version)
        .bind(key.build.0);
    let row = link.optional(query).await?;
    let found = row.as_ref().map_or(Ok(None), progress::stored)?;
    let expected = Progress { sequence: start.from, generation: start.generation, owner: Some(start.owner) };
    match found == Some(expected) {
        true => Ok(()),
        false => Err(fenced(start, found)),
    }
}

fn fenced(start: &PageStart, found: Option<Progress>) -> Error {
    let found = match found {
        Some(found) => format!("it is at sequence {} with generation {}", found.sequence, found.generation.0),
        None => "there is no such row".to_owned(),
    };
    Error::fenced(format!(
        "the progress row is not at sequence {} with generation {} and this owner: {found}",
        start.from, start.generation.0
    ))
    .fix("stop, and position anew through the fence")
}

struct Unit {
    /// `None` after an error: nothing stays.
    transaction: Option<Transaction>,
    start: PageStart,
}

impl Unit {
    fn link(&mut self) -> Result<&mut Link> {
        match &mut self.transaction {
            Some(transaction) => Ok(transaction.link()),
            None => Err(gone()),
        }
    }

    /// Passes an answer on; an error ends the transaction.
    async fn keep<T>(&mut self, outcome: Result<T>) -> Result<T> {
        if outcome.is_err()
            && let Some(transaction) = self.transaction.take()
        {
            transaction.roll_back().await;
        }
        outcome
    }
}

fn gone() -> Error {
    Error::unavailable("the page's transaction is gone after an earlier error").fix("do the page again")
}

#[async_trait]
impl UnitOfWork for Unit {
    async fn load(&mut self, view: ViewNo, keys: &[DocumentKey]) -> Result<Vec<Document>> {
        let key = self.start.key;
        let documents = views::load(self.link()?, view, key.tenant, key.build, keys).await;
        self.keep(documents).await
    }

    async fn write(&mut self, view: ViewNo, writes: Vec<DocumentWrite>) -> Result<()> {
        let start = self.start;
        let written = write(self.link()?, &start, view, &writes).await;
        self.keep(written).await
    }

    async fn execute(&mut self, statement: &Statement) -> Result<u64> {
        let changed = user_statement::execute(self.link()?, statement).await;
        self.keep(changed).await
    }

    async fn query(&mut self, statement: &Statement) -> Result<Vec<Row>> {
        let rows = user_statement::query(self.link()?, statement).await;
        self.keep(rows).await
    }

    async fn finish(mut self: Box<Self>, to: Sequence, dead_letters: &[DeadLetter]) -> Result<()> {
        let mut transaction = self.transaction.take().ok_or_else(gone)?;
        let finished = finish(transaction.link(), &self.start, to, dead_letters).await;
        transaction.end(finished).await
    }

    async fn roll_back(mut self: Box<Self>) {
        if let Some(transaction) = self.transaction.take() {
            transaction.roll_back().await;
        }
    }
}

async fn write(link: &mut Link, start: &PageStart, view: ViewNo, writes: &[DocumentWrite]) -> Result<()> {
    let (tenant, build) = (start.key.tenant.0, start.key.build.0);
    let deleted: Vec<&str> =
        writes.iter().filter(|write| write.body.is_none()).map(|write| write.key.as_str()).collect();
    if !deleted.is_empty() {
        let text = AssertSqlSafe(sql::for_view(sql::DOCUMENTS_DELETE, view));
        link.execute(sqlx::query(text).bind(tenant).bind(build).bind(json(&deleted)))
            .await
            .map_err(error::of)?;
    }
    let stored: Vec<_> = writes.iter().filter_map(|write| Some((write, write.body.as_ref()?))).collect();
    let mut rest = stored.as_slice();
    while !rest.is_empty() {
        let (rows, later) = rest.split_at(sql::rows_at_once(rest.iter().map(|(write, _)| write.size())));
        let text = sql::with_rows(&sql::for_view(sql::DOCUMENTS_UPSERT, view), rows.len());
        let mut query = sqlx::query(AssertSqlSafe(text));
        for (write, body) in rows {
            query = query.bind(tenant).bind(build).bind(write.key.as_str()).bind(body.as_ref());
        }
        link.execute(query).await.map_err(error::of)?;
        rest = later;
    }
    Ok(())
}

async fn finish(link: &mut Link, start: &PageStart, to: Sequence, dead_letters: &[DeadLetter]) -> Result<()> {
    if to < start.from {
        return Err(Error::rejected(format!("a page from sequence {} cannot end at {to}", start.from))
            .fix("pass the sequence of the last event worked on"));
    }
    let now = clock();
    for letter in dead_letters {
        let at = if letter.at == Timestamp::default() { now } else { letter.at };
        let query = sqlx::query(sql::DEAD_LETTERS_UPSERT)
            .bind(letter.key.tenant.0)
            .bind(letter.key.projection.0)
            .bind(letter.key.version)
            .bind(letter.key.build.0)
            .bind(letter.sequence.as_i64())
            .bind(letter.member.as_str())
            .bind(letter.event_id.as_bytes().as_slice())
            .bind(letter.event_type.as_str())
            .bind(letter.class.as_str())
            .bind(letter.reason.as_str())
            .bind(at.as_micros());
        link.execute(query).await.map_err(error::of)?;
    }
    let key = start.key;
    let query = sqlx::query(sql::PROGRESS_FINISH)
        .bind(key.tenant.0)
        .bind(key.projection.0)
        .bind(key.version)
        .bind(key.build.0)
        .bind(start.from.as_i64())
        .bind(start.generation.0)
        .bind(start.owner.0.as_bytes().as_slice())
        .bind(to.as_i64());
    match link.execute(query).await.map_err(error::of)? {
        1 => Ok(()),
        _ => Err(fenced(start, None)),
    }
}
