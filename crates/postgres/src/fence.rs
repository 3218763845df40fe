//! Positioning a runner on its progress rows.

use std::collections::HashMap;
use std::sync::Arc;

use bellwether_storage::{
    Build, Error, ErrorKind, FenceClaim, FenceOutcome, FenceRequest, Generation, Owner, Progress,
    ProgressKey, ProjectionNo, Result, Sequence, TenantNo,
};
use sqlx::postgres::PgRow;
use uuid::Uuid;

use crate::error::{corrupt, maybe_happened};
use crate::handle::Postgres;
use crate::perform::blockers::end_blockers_of;
use crate::perform::link::Link;
use crate::sql;
use crate::values::{Values, column};

/// How often the rows are waited for with patience; after that whoever holds them is ended while it is waited once more.
const PATIENT_ATTEMPTS: u32 = 2;

/// How often a fence is sent again because somebody made one of its rows at the same moment.
const MADE_AT_ONCE_MAX: u32 = 4;

/// Positions `owner` on the rows. In key order, so that two fences never wait for each other in a ring.
pub(crate) async fn fence(
    database: &Postgres,
    owner: Owner,
    requests: &[FenceRequest],
) -> Result<Vec<FenceOutcome>> {
    let mut sorted: Vec<&FenceRequest> = requests.iter().collect();
    sorted.sort_unstable_by_key(|request| request.key);
    if sorted.windows(2).any(|pair| pair[0].key == pair[1].key) {
        return Err(Error::rejected("a fence that names a progress row twice").fix("name each row once"));
    }
    if sorted.iter().any(|request| matches!(request.claim, FenceClaim::Granted(Generation(i64::MIN..0)))) {
        return Err(Error::rejected("a grant of a negative generation").fix("grants count from zero"));
    }
    if requests.is_empty() {
        return Ok(Vec::new());
    }
    let mut link = database.shared.pools.control.acquire().await?;
    let mut outcomes = HashMap::with_capacity(requests.len());
    for _ in 0..MADE_AT_ONCE_MAX {
        let open: Vec<&FenceRequest> =
            sorted.iter().copied().filter(|request| !outcomes.contains_key(&request.key)).collect();
        if open.is_empty() {
            break;
        }
        for row in until_locked(database, &mut link, owner, &open).await? {
            let (key, outcome) = read(&row)?;
            outcomes.insert(key, outcome);
        }
    }
    let in_order = requests.iter().map(|request| outcomes.get(&request.key).copied());
    in_order.collect::<Option<_>>().ok_or_else(|| {
        Error::unavailable("progress rows are made and removed while they are fenced").fix("try again")
    })
}

/// Sends the fence until its rows could be locked; the last time with an end to whoever holds them.
async fn until_locked(
    database: &Postgres,
    link: &mut Link,
    owner: Owner,
    requests: &[&FenceRequest],
) -> Result<Vec<PgRow>> {
    for attempt in 0..=PATIENT_ATTEMPTS {
        let values = bind(owner, requests)?.done();
        let backend = link.backend();
        let sent = link.rows(sql::PROGRESS_FENCE, values);
        let answer = if attempt < PATIENT_ATTEMPTS {
            sent.await
        } else {
            tokio::select! {
                biased;
                answer = sent => answer,
                never = async {
                    end_blockers_of(backend, Arc::clone(&database.shared.pools.control)).await;
                    std::future::pending().await
                } => never,
            }
        };
        match answer.map_err(maybe_happened) {
            Ok(rows) => return Ok(rows),
            // Not free in time: the only way in which this statement is unavailable over a connection that lives on.
            Err(error) if error.kind() == ErrorKind::Unavailable && attempt < PATIENT_ATTEMPTS => {
                tracing::debug!(%error, "progress rows are held by somebody");
            }
            Err(error) => return Err(error),
        }
    }
    Err(Error::unavailable("the progress rows were not free in time").fix("try again"))
}

fn bind(owner: Owner, requests: &[&FenceRequest]) -> Result<Values> {
    let granted = |request: &FenceRequest| match request.claim {
        FenceClaim::Granted(generation) => Some(generation.0),
        _ => None,
    };
    let seen = |request: &FenceRequest| match request.claim {
        FenceClaim::TakeOver { seen } => seen,
        _ => None,
    };
    let keys: Vec<ProgressKey> = requests.iter().map(|request| request.key).collect();
    let seen: Vec<Option<Progress>> = requests.iter().map(|request| seen(request)).collect();
    bind_keys(Values::default().add(owner.0)?, &keys)?
        .add(requests.iter().map(|request| granted(request)).collect::<Vec<_>>())?
        .add(seen.iter().map(|seen| seen.map(|seen| seen.sequence.as_i64())).collect::<Vec<_>>())?
        .add(seen.iter().map(|seen| seen.map(|seen| seen.generation.0)).collect::<Vec<_>>())?
        .add(
            seen.iter().map(|seen| seen.and_then(|seen| seen.owner).map(|owner| owner.0)).collect::<Vec<_>>(),
        )
}

/// Adds the four arrays of progress keys.
pub(crate) fn bind_keys(values: Values, keys: &[ProgressKey]) -> Result<Values> {
    values
        .add(keys.iter().map(|key| key.tenant.0).collect::<Vec<_>>())?
        .add(keys.iter().map(|key| key.projection.0).collect::<Vec<_>>())?
        .add(keys.iter().map(|key| i64::from(key.version)).collect::<Vec<_>>())?
        .add(keys.iter().map(|key| key.build.0).collect::<Vec<_>>())
}

fn read(row: &PgRow) -> Result<(ProgressKey, FenceOutcome)> {
    let version: i64 = column(row, 2)?;
    let key = ProgressKey {
        tenant: TenantNo(column(row, 0)?),
        projection: ProjectionNo(column(row, 1)?),
        version: u32::try_from(version).map_err(|error| corrupt("version", error))?,
        build: Build(column(row, 3)?),
    };
    let owner: Option<Uuid> = column(row, 6)?;
    let progress = Progress {
        sequence: Sequence::from_i64(column(row, 4)?)?,
        generation: Generation(column(row, 5)?),
        owner: owner.map(Owner),
    };
    let won: bool = column(row, 7)?;
    Ok((key, if won { FenceOutcome::Positioned(progress) } else { FenceOutcome::Refused(progress) }))
}
