//! A node: projections of a store, started and stopped in order.

use std::time::Duration;

use bellwether_daemon::{
    Composite, Daemon, DaemonBuilder, DaemonConfig, DaemonError, MultiView, NotCaughtUp, SqlProjection, View,
};
use bellwether_events::Store;

/// A node could not start or stop.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NodeError {
    /// The daemon could not start or stop.
    #[error(transparent)]
    Daemon(#[from] DaemonError),
}

/// Collects what a node runs.
#[must_use]
pub struct NodeBuilder {
    store: Store,
    daemon: DaemonBuilder,
    config: DaemonConfig,
}

impl NodeBuilder {
    /// Adds a view: one document per stream.
    pub fn view<V: View>(mut self) -> Self {
        self.daemon = self.daemon.view::<V>();
        self
    }

    /// Adds a multi-stream view: documents by keys of its choice.
    pub fn multi_view<M: MultiView>(mut self) -> Self {
        self.daemon = self.daemon.multi_view::<M>();
        self
    }

    /// Adds a projection of several views in stages.
    pub fn composite(mut self, composite: Composite) -> Self {
        self.daemon = self.daemon.composite(composite);
        self
    }

    /// Adds a projection in the user's own SQL.
    pub fn sql<P: SqlProjection>(mut self, projection: P) -> Self {
        self.daemon = self.daemon.sql(projection);
        self
    }

    /// Sets all numbers of the daemon.
    pub fn config(mut self, config: DaemonConfig) -> Self {
        self.config = config;
        self
    }

    /// Events loaded and not yet committed over all tenants; zero is unbounded.
    pub fn budget_events(mut self, events: u64) -> Self {
        self.config.budget.events_max = events;
        self
    }

    /// Bytes loaded, worked on and not yet committed over all tenants; zero is unbounded. Without this call: one eighth of
    /// the memory limit, at most 256 MiB.
    pub fn budget_bytes(mut self, bytes: u64) -> Self {
        self.config.budget.bytes_max = Some(bytes);
        self
    }

    /// Starts the projections for every tenant of the store.
    ///
    /// # Errors
    ///
    /// [`NodeError::Daemon`] when a registration or a number does not fit (it names the fix), or a database refuses.
    ///
    /// # Cancel safety
    ///
    /// Safe: nothing runs on when the future is dropped.
    pub async fn start(self) -> Result<Node, NodeError> {
        let daemon = self.daemon.config(self.config).start().await?;
        Ok(Node { store: self.store, daemon })
    }
}

/// Projections of a store, running in this process. Call [`Node::stop`] to end them in good order.
#[must_use]
pub struct Node {
    store: Store,
    daemon: Daemon,
}

impl Node {
    /// A builder for a node over this store.
    pub fn builder(store: Store) -> NodeBuilder {
        NodeBuilder {
            daemon: Daemon::over(store.databases().to_vec()),
            store,
            config: DaemonConfig::default(),
        }
    }

    /// The store it works on.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Its daemon: status, budget, counters.
    pub fn daemon(&self) -> &Daemon {
        &self.daemon
    }

    /// Waits until every projection of every tenant has reached the head the tenant had at this call.
    ///
    /// # Errors
    ///
    /// [`NotCaughtUp`] names who is behind when the time is over; the node runs on.
    ///
    /// # Cancel safety
    ///
    /// Safe: nothing is changed by waiting.
    pub async fn caught_up(&self, timeout: Duration) -> Result<(), NotCaughtUp> {
        self.daemon.caught_up(timeout).await
    }

    /// Stops the projections and leaves the store open, for reading what they made.
    ///
    /// # Errors
    ///
    /// [`NodeError::Daemon`] when pages in flight did not end in time; they roll back and nothing is lost.
    ///
    /// # Cancel safety
    ///
    /// Not cancel safe: run it to its end.
    pub async fn stop_projections(self) -> Result<(), NodeError> {
        Ok(self.daemon.stop().await?)
    }

    /// Stops the projections, then drains the store and closes its connections.
    ///
    /// # Errors
    ///
    /// [`NodeError::Daemon`] when pages in flight did not end in time; they roll back and nothing is lost.
    ///
    /// # Cancel safety
    ///
    /// Not cancel safe: run it to its end.
    pub async fn stop(self) -> Result<(), NodeError> {
        let stopped = self.daemon.stop().await;
        self.store.close().await;
        stopped?;
        Ok(())
    }
}
