//! Outcomes of shared batches and of large appends.

use std::sync::Arc;

use bellwether_storage::{
    AppendBatch, AppendOutcome, AppendReceipt, Error, ErrorKind, EventId, Result, Sequence, TenantNo,
};

use super::fold::Fold;
use super::writer::Flight;
use super::{Append, FlightNo, Writer};

/// A batch under way.
#[derive(Debug)]
pub(super) struct BatchFlight<T> {
    /// In the order of the batch; their events are in the batch.
    pub(super) folds: Vec<(TenantNo, Fold<T>)>,
    pub(super) batch: Arc<AppendBatch>,
    /// The life its heads and versions were known in.
    pub(super) life: u64,
    pub(super) large: bool,
}

impl<T> Writer<T> {
    /// Takes in what became of a batch.
    pub(crate) fn appended(&mut self, flight: FlightNo, result: Result<AppendReceipt>) {
        let Some(Flight::Batch(flight)) = self.flights.remove(&flight) else { return };
        match flight.large {
            true => self.flying.larges -= 1,
            false => {
                self.flying.batches -= 1;
                self.flying.batch_tenants -= flight.folds.len();
            }
        }
        let result = match result {
            Ok(receipt) if receipt.outcomes.len() != flight.folds.len() => Err(Error::unknown(format!(
                "{} outcomes for a batch of {} tenants",
                receipt.outcomes.len(),
                flight.folds.len()
            ))),
            other => other,
        };
        match result {
            Ok(receipt) => self.settle_batch(flight, receipt),
            Err(error) => match error.kind() {
                ErrorKind::Unknown => {
                    self.distrust();
                    let batch = flight.batch;
                    for ((tenant, fold), entry) in flight.folds.into_iter().zip(&batch.tenants) {
                        let first: Option<EventId> = entry.events.first().map(|event| event.id);
                        self.unresolved(tenant, fold, first, &error);
                    }
                }
                ErrorKind::Unavailable | ErrorKind::Conflict => {
                    self.distrust();
                    for (tenant, fold) in flight.folds {
                        self.strike(tenant, appends(fold), &error);
                    }
                }
                _ => self.bisect(flight),
            },
        }
    }

    fn settle_batch(&mut self, flight: BatchFlight<T>, receipt: AppendReceipt) {
        self.observe(&receipt.identity);
        let same_life = flight.life == self.life;
        let batch = flight.batch;
        for (((tenant, fold), entry), outcome) in
            flight.folds.into_iter().zip(&batch.tenants).zip(receipt.outcomes)
        {
            match outcome {
                AppendOutcome::Done { at } => {
                    let head = fold.expected_head.plus(entry.events.len() as u64);
                    self.went_in(tenant, fold, head, at, same_life);
                }
                AppendOutcome::Busy => {
                    let skips = self.bounds.skips;
                    if let Some(lane) = self.back(tenant, fold) {
                        lane.skips += 1;
                        lane.slow = lane.skips >= skips;
                    }
                    self.enlist(tenant);
                }
                AppendOutcome::Stale { head, place } => {
                    let guess = fold.expected_head == Sequence::ZERO;
                    if let Some(lane) = self.back(tenant, fold) {
                        lane.stales += u32::from(!guess);
                    }
                    self.learn(tenant, head, place);
                    self.enlist(tenant);
                }
                // Closed, not here, or something newer that only says "not here".
                _ => self.moved(tenant, appends(fold)),
            }
        }
    }

    fn back(&mut self, tenant: TenantNo, fold: Fold<T>) -> Option<&mut super::lane::Lane<T>> {
        let lane = self.lanes.get_mut(&tenant)?;
        lane.put_back(appends(fold).into_iter());
        lane.standing = super::lane::Standing::Idle;
        Some(lane)
    }

    /// A row was refused and nothing went in: halves, until the culprit is alone.
    fn bisect(&mut self, flight: BatchFlight<T>) {
        let mut tenants: Vec<_> = flight.folds.iter().map(|(tenant, _)| *tenant).collect();
        let alone = tenants.len() == 1;
        for (tenant, fold) in flight.folds {
            let folded = fold.folded.len();
            let Some(lane) = self.back(tenant, fold) else { continue };
            lane.fold_max = Some(match alone {
                true => (folded / 2).max(1),
                false => folded,
            });
            if alone && folded == 1 {
                // The culprit, or the victim of wrong versions: once more, under the lock.
                if let Some(front) = lane.queue.front_mut() {
                    front.doubted = true;
                }
                self.forget(tenant);
                return self.enlist(tenant);
            }
        }
        if alone {
            return match flight.large {
                true => self.enlist(tenants[0]),
                false => self.redo(tenants),
            };
        }
        let second = tenants.split_off(tenants.len() / 2);
        self.redo(tenants);
        self.redo(second);
    }
}

/// The appends of a flight, undecided again.
pub(super) fn appends<T>(fold: Fold<T>) -> Vec<Append<T>> {
    fold.folded.into_iter().map(|one| one.append).collect()
}
