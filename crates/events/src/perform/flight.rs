//! One flight: does against the database what an order says, and reports.

use std::sync::Arc;
use std::time::Duration;

use bellwether_storage::{Error, PageQuery, Result, Sequence, TenantNo};

use super::writer::Shared;
use crate::decide::{FlightNo, Found, Order, Task};

/// Carries an order out. Whatever happens to this task, the outcome is reported.
pub(super) async fn carry_out(shared: Arc<Shared>, order: Order) {
    let flight = Airborne { shared: &shared, number: order.flight };
    if !order.delay.is_zero() {
        tokio::time::sleep(order.delay).await;
    }
    let (database, number) = (&shared.database, order.flight);
    match order.task {
        Task::Append(batch) => {
            let result = database.append(&batch).await;
            noted("append", &result);
            shared.report(|writer| writer.appended(number, result));
        }
        Task::Lock { tenant, wait } => lock(&shared, number, tenant, wait).await,
        Task::Read { tenant, streams } => {
            let result = database.stream_versions(tenant, &streams).await;
            noted("read versions", &result);
            shared.report(|writer| writer.read(number, result));
        }
        Task::Find { tenant, after } => {
            let result = find(&shared, tenant, after).await;
            noted("resolve an append", &result);
            shared.report(|writer| writer.found(number, result));
        }
        Task::Probe => {
            let result = database.identity().await;
            noted("ask for the server's identity", &result);
            shared.report(|writer| writer.probed(number, result));
        }
    }
    flight.landed();
}

async fn lock(shared: &Shared, flight: FlightNo, tenant: TenantNo, wait: Duration) {
    let locked = shared.database.lock_head(tenant, wait).await;
    let (mut head, state) = match locked {
        Ok(head) => {
            let state = head.state().clone();
            (Some(head), Ok(state))
        }
        Err(error) => (None, Err(error)),
    };
    let look = shared.report(|writer| writer.locked(flight, state));
    let (Some(look), Some(mut head)) = (look, head.take()) else { return };
    let looked = async {
        let versions = match look.streams.is_empty() {
            true => None,
            false => Some(head.versions(&look.streams).await?),
        };
        let ids = match look.ids.is_empty() {
            true => Vec::new(),
            false => head.append_ids(&look.ids).await?,
        };
        Ok((versions, ids))
    }
    .await;
    noted("look under a head", &looked);
    let Some(write) = shared.report(|writer| writer.looked(flight, looked)) else { return };
    let written = head.append(&write.events, &write.ids, None).await;
    noted("append under a head", &written);
    shared.report(|writer| writer.written(flight, written));
}

/// The one event after a sequence.
async fn find(shared: &Shared, tenant: TenantNo, after: Sequence) -> Result<Found> {
    let query = PageQuery {
        tenant,
        after,
        up_to: Some(after.next()),
        types: None,
        events_max: 1,
        bytes_max: u64::from(u32::MAX),
    };
    let page = shared.database.read_page(&query).await?;
    let event = page.events.into_iter().next().filter(|event| event.sequence == after.next());
    Ok(Found { event: event.map(|event| (event.id, event.at)), identity: page.identity })
}

/// Failures are decided upon and told to callers; here they only leave a trace.
fn noted<T>(what: &str, result: &Result<T, Error>) {
    if let Err(error) = result {
        tracing::debug!(what, kind = ?error.kind(), %error, "a flight of the writer failed");
    }
}

/// Reports a flight as lost when its task ends without a report.
struct Airborne<'a> {
    shared: &'a Shared,
    number: FlightNo,
}

impl Airborne<'_> {
    fn landed(self) {
        std::mem::forget(self);
    }
}

impl Drop for Airborne<'_> {
    fn drop(&mut self) {
        self.shared.report(|writer| writer.abandoned(self.number));
    }
}
