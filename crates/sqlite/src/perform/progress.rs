//! Progress rows: reading them as a hint, and fencing.

use std::sync::Arc;

use bellwether_storage::{
    Error, FenceOutcome, FenceRequest, Generation, Owner, Progress, ProgressKey, Result, Sequence,
};
use sqlx::sqlite::SqliteRow;
use uuid::Uuid;

use super::append::json;
use super::file::File;
use super::gate::Gate;
use super::link::{Link, column};
use crate::decide::claim::{self, UNTOUCHED};
use crate::decide::turns::Turn;
use crate::{error, sql};

/// See [`Projections::progress`](bellwether_storage::Projections::progress).
pub(crate) async fn read(link: &mut Link, keys: &[ProgressKey]) -> Result<Vec<Option<Progress>>> {
    let asked: Vec<_> =
        keys.iter().map(|key| (key.tenant.0, key.projection.0, key.version, key.build.0)).collect();
    let mut rows = Vec::with_capacity(keys.len());
    link.each(sqlx::query(sql::PROGRESS_READ).bind(json(&asked)), |row| {
        rows.push(stored(row)?);
        Ok(())
    })
    .await?;
    Ok(rows)
}

/// See [`Projections::fence`](bellwether_storage::Projections::fence).
///
/// An open page of this process gives the writer back when it ends; one of another process is waited for. One that belongs to a
/// process that died is gone with it: its lock is the operating system's.
pub(crate) async fn fence(
    file: &File,
    gate: &Arc<Gate>,
    owner: Owner,
    requests: &[FenceRequest],
) -> Result<Vec<FenceOutcome>> {
    if requests.is_empty() {
        return Ok(Vec::new());
    }
    let mut keys: Vec<_> = requests.iter().map(|request| request.key).collect();
    keys.sort_unstable();
    if keys.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(Error::rejected("a fence that names a progress row twice").fix("name each row once"));
    }
    let mut transaction = gate.begin(Turn::Short, file.config().busy_timeout).await?;
    let outcomes = write_fence(transaction.link(), owner, requests).await;
    transaction.end(outcomes).await
}

async fn write_fence(link: &mut Link, owner: Owner, requests: &[FenceRequest]) -> Result<Vec<FenceOutcome>> {
    let keys: Vec<_> = requests.iter().map(|request| request.key).collect();
    let rows = read(link, &keys).await?;
    let mut outcomes = Vec::with_capacity(requests.len());
    let mut written = Vec::with_capacity(requests.len());
    for (request, row) in requests.iter().zip(rows) {
        let outcome = claim::decide(row.unwrap_or(UNTOUCHED), owner, request.claim);
        let (generation, held) = match outcome {
            FenceOutcome::Positioned(progress) => (progress.generation, true),
            _ => (UNTOUCHED.generation, false),
        };
        // A row that was refused stays as it is; one that is not there yet is made either way.
        if held || row.is_none() {
            let key = request.key;
            written.push((key.tenant.0, key.projection.0, key.version, key.build.0, generation.0, held));
        }
        outcomes.push(outcome);
    }
    let query = sqlx::query(sql::PROGRESS_FENCE).bind(json(&written)).bind(owner.0.as_bytes().as_slice());
    link.execute(query).await.map_err(error::of)?;
    Ok(outcomes)
}

/// A progress row from its first three columns; `None` where there is none.
pub(crate) fn stored(row: &SqliteRow) -> Result<Option<Progress>> {
    let Some(sequence) = column::<Option<i64>>(row, 0)? else { return Ok(None) };
    let owner = match column::<Option<&[u8]>>(row, 2)? {
        None => None,
        Some(bytes) => Some(Owner(
            Uuid::from_slice(bytes)
                .map_err(|_| Error::corrupt("a progress row's owner has the wrong length"))?,
        )),
    };
    Ok(Some(Progress {
        sequence: Sequence::from_i64(sequence)?,
        generation: Generation(column(row, 1)?),
        owner,
    }))
}
