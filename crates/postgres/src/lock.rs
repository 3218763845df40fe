//! A transaction that holds the head of one tenant.

use std::time::Duration;

use async_trait::async_trait;
use bellwether_storage::{
    AppendId, Error, HeadLock, HeadState, NewEvent, Place, Result, Sequence, StreamId, StreamVersions,
    TenantNo, Timestamp,
};
use uuid::Uuid;

use crate::error::{corrupt, nothing_happened};
use crate::handle::Postgres;
use crate::log::{no_tenant, read_versions};
use crate::perform::link::Link;
use crate::rows::EventArrays;
use crate::sql;
use crate::values::{Values, column, unsigned};

/// One statement of a large append: beyond it a larger one gains nothing and holds a copy of everything.
const STATEMENT_BYTES_MAX: usize = 512 * 1024;

/// Events of one statement: sixteen-byte events must not make arrays of ten thousand.
const STATEMENT_EVENTS_MAX: usize = 1_000;

pub(crate) struct PostgresHeadLock {
    link: Link,
    database: Postgres,
    tenant: TenantNo,
    state: HeadState,
}

impl PostgresHeadLock {
    /// Begins a transaction and locks the head: two round trips.
    pub(crate) async fn take(
        mut link: Link,
        database: Postgres,
        tenant: TenantNo,
        wait: Duration,
    ) -> Result<Self> {
        // Zero would wait without end; and waiting must end before the statement is ended.
        let lock_ms =
            wait.as_millis().min(u128::from(database.shared.config.statement_timeout_ms) - 1).max(1);
        let limits = format!("SET LOCAL lock_timeout = {lock_ms};");
        link.begin(&limits).await.map_err(nothing_happened)?;
        let locked = match lock(&mut link, tenant).await {
            Ok(locked) => locked,
            Err(error) => {
                link.roll_back().await;
                return Err(error);
            }
        };
        database.shared.saw_place(tenant, locked.place);
        Ok(Self { link, database, tenant, state: locked })
    }

    /// Everything but the commit.
    async fn write(
        &mut self,
        events: &[NewEvent],
        ids: &[AppendId],
        now: Option<Timestamp>,
    ) -> Result<Timestamp> {
        let values = Values::default()
            .add(self.tenant.0)?
            .add(events.len() as i64)?
            .add(now.map(Timestamp::as_micros))?
            .done();
        let rows = self.link.rows(sql::HEADS_ADVANCE, values).await.map_err(nothing_happened)?;
        let at: i64 = column(rows.first().ok_or_else(|| no_tenant(self.tenant))?, 0)?;
        let mut after = self.state.head;
        let mut rest = events;
        while !rest.is_empty() {
            let (part, others) = rest.split_at(statement_of(rest));
            let mut arrays = EventArrays::default();
            arrays.extend(after, part)?;
            let values =
                Values::with_room(arrays.bytes()).add(self.state.place.0)?.add(self.tenant.0)?.add(at)?;
            let values = arrays.bind(values)?.done();
            self.link.execute(sql::EVENTS_INSERT, values).await.map_err(nothing_happened)?;
            self.link.shrink(arrays.bytes());
            after = after.plus(part.len() as u64);
            rest = others;
        }
        if !ids.is_empty() {
            let values = Values::default()
                .add(self.tenant.0)?
                .add(ids.iter().map(|id| id.id).collect::<Vec<_>>())?
                .add(ids.iter().map(|id| id.digest.as_slice()).collect::<Vec<_>>())?
                .add(ids.iter().map(|id| id.first.as_i64()).collect::<Vec<_>>())?
                .add(ids.iter().map(|id| i64::from(id.count)).collect::<Vec<_>>())?
                .done();
            self.link.execute(sql::APPEND_IDS_INSERT, values).await.map_err(nothing_happened)?;
        }
        Ok(Timestamp::from_micros(at))
    }
}

async fn lock(link: &mut Link, tenant: TenantNo) -> Result<HeadState> {
    let values = Values::default().add(tenant.0)?.done();
    let rows = link.rows(sql::HEADS_LOCK, values).await.map_err(nothing_happened)?;
    let row = rows.first().ok_or_else(|| no_tenant(tenant))?;
    Ok(HeadState {
        head: Sequence::from_i64(column(row, 0)?)?,
        open: column(row, 1)?,
        place: Place(column(row, 2)?),
        identity: link.identity().clone(),
    })
}

/// How many of these events go into one statement; at least one.
fn statement_of(events: &[NewEvent]) -> usize {
    let mut bytes = 0;
    let fit = events.iter().take(STATEMENT_EVENTS_MAX).take_while(|event| {
        bytes += event.size();
        bytes <= STATEMENT_BYTES_MAX
    });
    fit.count().max(1)
}

#[async_trait]
impl HeadLock for PostgresHeadLock {
    fn state(&self) -> &HeadState {
        &self.state
    }

    async fn versions(&mut self, streams: &[StreamId]) -> Result<StreamVersions> {
        read_versions(&self.database, &mut self.link, self.tenant, streams).await
    }

    async fn append_ids(&mut self, ids: &[Uuid]) -> Result<Vec<AppendId>> {
        let values = Values::default().add(self.tenant.0)?.add(ids)?.done();
        let rows = self.link.rows(sql::APPEND_IDS_FIND, values).await.map_err(nothing_happened)?;
        let read = rows.iter().map(|row| {
            let digest: Vec<u8> = column(row, 1)?;
            Ok(AppendId {
                id: column(row, 0)?,
                digest: digest.try_into().map_err(|_| corrupt("digest", "it has another length"))?,
                first: Sequence::from_i64(column(row, 2)?)?,
                count: u32::try_from(unsigned(row, 3)?)
                    .map_err(|error| corrupt("number of events", error))?,
            })
        });
        read.collect()
    }

    async fn append(
        mut self: Box<Self>,
        events: &[NewEvent],
        ids: &[AppendId],
        now: Option<Timestamp>,
    ) -> Result<Timestamp> {
        if !self.state.open {
            self.link.roll_back().await;
            return Err(Error::rejected(format!("tenant {} is closed here", self.tenant.0))
                .fix("ask the directory again"));
        }
        match self.write(events, ids, now).await {
            Ok(at) => {
                self.link.commit().await?;
                Ok(at)
            }
            Err(error) => {
                self.link.roll_back().await;
                Err(error)
            }
        }
    }
}
