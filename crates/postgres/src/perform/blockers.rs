//! Ending the backend that keeps a runner from its progress row.
//!
//! A process that was stopped, or cut off in the middle of a message, may hold the row of its open page although nobody works
//! on it any more; between the messages of a pipeline no timeout of the server ends it. Whoever holds the grant ends it.

use std::sync::Arc;
use std::time::Duration;

use sqlx::{Connection, Row};

use crate::perform::pool::Pool;

/// First part of the name under which each of our connections is known to the server; what follows is the incarnation.
pub(crate) const NAME_PREFIX: &str = "bellwether/";

/// How often the waiting backend's blockers are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A blocker that itself waits for a lock is another one in line, not the one who holds the row.
const END: &str = "SELECT a.pid, a.application_name, pg_terminate_backend(a.pid)
  FROM unnest(pg_blocking_pids($1)) AS b (pid)
  JOIN pg_stat_activity a ON a.pid = b.pid
 WHERE starts_with(a.application_name, $2)
   AND a.application_name <> current_setting('application_name')
   AND a.wait_event_type IS DISTINCT FROM 'Lock'";

/// While `backend` waits for a lock, ends whoever holds it, if that is a connection of another incarnation of ours. Uses a
/// connection outside the pools: when it is needed, they may be full of waiters. Goes on until it is dropped.
pub(crate) async fn end_blockers_of(backend: i32, pool: Arc<Pool>) {
    let mut idle = match pool.connect().await {
        Ok(idle) => idle,
        Err(error) => {
            tracing::warn!(%error, "cannot look for who blocks the fence");
            return;
        }
    };
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        pool.counted().statement();
        let ended = sqlx::query(END).bind(backend).bind(NAME_PREFIX).fetch_all(&mut idle.connection).await;
        match ended {
            Ok(rows) => {
                for row in rows {
                    let pid: i32 = row.try_get(0).unwrap_or_default();
                    let name: String = row.try_get(1).unwrap_or_default();
                    tracing::warn!(
                        pid,
                        name,
                        "ended the backend of another incarnation that held a progress row"
                    );
                }
            }
            Err(error) => {
                tracing::warn!(%error, "cannot end who blocks the fence");
                let _gone = idle.connection.close().await;
                return;
            }
        }
    }
}
