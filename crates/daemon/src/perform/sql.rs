//! Working on a page with the user's own SQL.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Poll;

use bellwether_storage::{BoxError, Error, ErrorKind, PageStart};

use crate::Tx;
use crate::member::panic_text;
use crate::projection::ErasedSql;

use super::work::{Trouble, Work};

impl Work<'_> {
    /// Runs the user's statements over the events that are not skipped; returns the index of the first event left.
    pub(super) async fn project(
        &mut self,
        sql: &dyn ErasedSql,
        start: &PageStart,
        range: Range<usize>,
    ) -> Result<usize, Trouble> {
        self.begin(start).await?;
        let site = &self.agent.site;
        let dialect = site.database.dialect().ok_or_else(|| {
            Error::unsupported(format!("database {} has no SQL", site.database.name()))
                .fix("use another store")
        })?;
        let unit = self.unit.as_mut().expect("begun above");
        let mut tx = Tx::new(unit.as_mut(), dialect);
        let decoded = self.loaded.sets[0].as_ref();
        let skipped = |index: &usize| self.skips.contains_key(&(*index, 0));
        let mut at = range.start;
        while at < range.end {
            let stop = (at..range.end).find(skipped).unwrap_or(range.end);
            if at < stop {
                let projecting = sql.project(&self.agent.facts.id, decoded, at..stop, &mut tx);
                let projected = guarded(projecting).await;
                // What ended the transaction counts, not what the user's code made of it: a lost connection is no event's fault.
                match tx.ended() {
                    Some(error) => return Err(trouble(error.into())),
                    None => projected.map_err(trouble)?,
                }
            }
            at = stop + 1;
        }
        Ok(range.end)
    }
}

/// What an error of the user's code means: the daemon knows those of the transaction; any other is of the events' making.
fn trouble(error: BoxError) -> Trouble {
    match error.downcast::<Error>() {
        Ok(error) if error.kind() != ErrorKind::Rejected => Trouble::Storage(*error),
        Ok(error) => Trouble::Rejected { seat: 0, error: *error },
        Err(error) => Trouble::Rejected { seat: 0, error: Error::rejected(error.to_string()) },
    }
}

/// Runs the user's code; a panic in it is an error like any other.
async fn guarded(mut projecting: crate::projection::Projecting<'_>) -> Result<(), BoxError> {
    std::future::poll_fn(move |cx| match catch_unwind(AssertUnwindSafe(|| projecting.as_mut().poll(cx))) {
        Ok(poll) => poll,
        Err(panic) => Poll::Ready(Err(format!("panicked: {}", panic_text(panic)).into())),
    })
    .await
}
