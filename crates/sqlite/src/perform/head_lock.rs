//! The transaction that holds a head, for appends that must read before they decide.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bellwether_storage::{
    AppendId, Error, HeadLock, HeadState, NewEvent, Result, Sequence, StreamId, StreamVersions, TenantNo,
    Timestamp,
};
use uuid::Uuid;

use super::append::{Head, advance, insert_events, json};
use super::file::{File, clock};
use super::gate::{Gate, Transaction};
use super::link::column;
use super::page::read_versions;
use crate::decide::turns::Turn;
use crate::{error, sql};

/// See [`EventLog::lock_head`](bellwether_storage::EventLog::lock_head).
pub(crate) async fn lock_head(
    file: &File,
    gate: &Arc<Gate>,
    tenant: TenantNo,
    wait: Duration,
) -> Result<Box<dyn HeadLock>> {
    let mut transaction = gate.begin(Turn::Short, wait).await?;
    let row = transaction.link().optional(sqlx::query(sql::HEADS_LOCK).bind(tenant.0)).await;
    match row.and_then(|row| row.map_or(Ok(None), |row| Head::from_row(&row))) {
        Ok(Some(head)) => {
            let state =
                HeadState { head: head.head, place: head.place, open: head.open, identity: file.identity() };
            Ok(Box::new(LockedHead { transaction: Some(transaction), tenant, head, state }))
        }
        Ok(None) => transaction.end(Err(no_tenant(tenant))).await,
        Err(error) => transaction.end(Err(error)).await,
    }
}

pub(crate) fn no_tenant(tenant: TenantNo) -> Error {
    Error::rejected(format!("there is no tenant number {} in this file", tenant.0))
        .fix("ask the directory again")
}

struct LockedHead {
    /// `None` after an error: the lock is gone.
    transaction: Option<Transaction>,
    tenant: TenantNo,
    head: Head,
    state: HeadState,
}

impl LockedHead {
    fn transaction(&mut self) -> Result<&mut Transaction> {
        self.transaction
            .as_mut()
            .ok_or_else(|| Error::unavailable("the lock is gone").fix("lock the head again"))
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

#[async_trait]
impl HeadLock for LockedHead {
    fn state(&self) -> &HeadState {
        &self.state
    }

    async fn versions(&mut self, streams: &[StreamId]) -> Result<StreamVersions> {
        let (tenant, identity) = (self.tenant, self.state.identity.clone());
        let versions = read_versions(self.transaction()?.link(), tenant, streams, identity).await;
        self.keep(versions).await
    }

    async fn append_ids(&mut self, ids: &[Uuid]) -> Result<Vec<AppendId>> {
        let asked: Vec<String> = ids.iter().map(|id| id.simple().to_string()).collect();
        let query = sqlx::query(sql::APPEND_IDS_FIND).bind(self.tenant.0).bind(json(&asked));
        let mut found = Vec::new();
        let outcome = self
            .transaction()?
            .link()
            .each(query, |row| {
                let wrong =
                    |what: &str| Error::corrupt(format!("an append id's {what} has the wrong length"));
                found.push(AppendId {
                    id: Uuid::from_slice(column(row, 0)?).map_err(|_| wrong("id"))?,
                    digest: <[u8; 16]>::try_from(column::<&[u8]>(row, 1)?).map_err(|_| wrong("digest"))?,
                    first: Sequence::from_i64(column(row, 2)?)?,
                    count: column(row, 3)?,
                });
                Ok(())
            })
            .await;
        self.keep(outcome.map(|()| found)).await
    }

    async fn append(
        mut self: Box<Self>,
        events: &[NewEvent],
        ids: &[AppendId],
        now: Option<Timestamp>,
    ) -> Result<Timestamp> {
        let (tenant, head) = (self.tenant, self.head);
        self.transaction()?;
        let Some(mut transaction) = self.transaction.take() else { unreachable!("asked one line above") };
        let written = write(&mut transaction, tenant, head, events, ids, now.unwrap_or_else(clock)).await;
        transaction.end(written).await
    }
}

async fn write(
    transaction: &mut Transaction,
    tenant: TenantNo,
    head: Head,
    events: &[NewEvent],
    ids: &[AppendId],
    now: Timestamp,
) -> Result<Timestamp> {
    if !head.open {
        return Err(Error::rejected(format!("tenant number {} is closed in this file", tenant.0))
            .fix("ask the directory again"));
    }
    let link = transaction.link();
    let at = head.at.max(now);
    insert_events(link, tenant, head, events, at).await?;
    for id in ids {
        let query = sqlx::query(sql::APPEND_IDS_INSERT)
            .bind(tenant.0)
            .bind(id.id.as_bytes().as_slice())
            .bind(id.digest.as_slice())
            .bind(id.first.as_i64())
            .bind(id.count);
        link.execute(query).await.map_err(error::of)?;
    }
    advance(link, &[(tenant.0, events.len())], now, head.next_moved).await?;
    Ok(at)
}
