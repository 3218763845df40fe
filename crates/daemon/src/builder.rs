//! Putting a daemon together.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use bellwether_events::Store;
use bellwether_storage::{Database, DatabaseNo, Error, Owner};
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use crate::member::{Multi, Single};
use crate::perform::fleet::Fleet;
use crate::perform::positions::{Positioner, positions};
use crate::perform::site::{Post, Site};
use crate::perform::tally::Tally;
use crate::perform::{discovery, sentinel};
use crate::projection::{Body, Projection};
use crate::{
    Budget, Composite, Daemon, DaemonConfig, DaemonError, Line, MultiView, Permits, SqlProjection, View,
};

/// Registers projections and starts a [`Daemon`]. Mistakes in registering are reported by [`start`](DaemonBuilder::start).
#[must_use = "a builder does nothing until it is started"]
pub struct DaemonBuilder {
    databases: Vec<Arc<dyn Database>>,
    /// Whose appends wake agents at once.
    store: Option<Store>,
    projections: Vec<Result<Projection, DaemonError>>,
    config: DaemonConfig,
    budget: Option<Arc<Budget>>,
}

impl DaemonBuilder {
    pub(crate) fn new(databases: Vec<Arc<dyn Database>>, store: Option<Store>) -> Self {
        Self { databases, store, projections: Vec::new(), config: DaemonConfig::default(), budget: None }
    }

    /// Registers a view: a document per stream.
    pub fn view<V: View>(mut self) -> Self {
        self.projections.push(Projection::single(V::NAME, V::VERSION, Arc::new(Single::<V>::new())));
        self
    }

    /// Registers a multi-stream view: documents under keys of your choice.
    pub fn multi_view<M: MultiView>(mut self) -> Self {
        self.projections.push(Projection::single(M::NAME, M::VERSION, Arc::new(Multi::<M>::new())));
        self
    }

    /// Registers a composite: views in stages that share pages and transactions.
    pub fn composite(mut self, composite: Composite) -> Self {
        self.projections.push(Projection::composite(composite));
        self
    }

    /// Registers a projection in the user's own SQL.
    pub fn sql<P: SqlProjection>(mut self, projection: P) -> Self {
        self.projections.push(Projection::sql(projection));
        self
    }

    /// Takes these numbers instead of the defaults.
    pub fn config(mut self, config: DaemonConfig) -> Self {
        self.config = config;
        self
    }

    /// Takes this load budget instead of one made of the configuration: for a budget that watches other memory, or that is
    /// shared with something else on the node.
    pub fn budget(mut self, budget: Arc<Budget>) -> Self {
        self.budget = Some(budget);
        self
    }

    /// Registers everything in the databases and starts the tasks. Must be called inside a tokio runtime.
    ///
    /// # Errors
    ///
    /// [`DaemonError::Config`] and [`DaemonError::Projection`] name what is wrong in the program, [`DaemonError::NoSql`] a
    /// database that does not speak a projection's SQL, [`DaemonError::Storage`] a database that refused or could not be
    /// reached: start again.
    ///
    /// # Cancel safety
    ///
    /// Safe: nothing runs before it returns, and what was registered is found there the next time.
    pub async fn start(self) -> Result<Daemon, DaemonError> {
        self.config.validate()?;
        let projections = self.projections.into_iter().collect::<Result<Vec<_>, _>>()?;
        check_names(&projections)?;
        if self.databases.is_empty() {
            return Err(DaemonError::config("databases", "is empty", "give the store at least one database"));
        }
        let owner = Owner(Uuid::now_v7());
        let mut sites = Vec::with_capacity(self.databases.len());
        let mut positioners = Vec::with_capacity(self.databases.len());
        let mut systems: Vec<(String, Vec<Arc<Site>>)> = Vec::new();
        let permits = Permits::new(self.config.pages_per_database.into());
        for (number, database) in (0..).zip(&self.databases) {
            let no = DatabaseNo(number);
            check_sql(&projections, database.as_ref())?;
            let (posts, system) = register(&projections, database.as_ref())
                .await
                .map_err(|source| DaemonError::Storage { database: database.name().to_owned(), source })?;
            if let Some(pages_max) = database.pages_max() {
                let configured = self.config.pages_per_database;
                let pages = if configured == 0 { pages_max } else { pages_max.min(configured) };
                permits.resize(no, pages.into());
            }
            let (desk, positioner) = positions(database.clone(), owner);
            let site = Arc::new(Site::new(no, database.clone(), posts, desk));
            match systems.iter_mut().find(|(known, _)| *known == system) {
                Some((_, sites)) => sites.push(site.clone()),
                None => systems.push((system, vec![site.clone()])),
            }
            sites.push(site);
            positioners.push(positioner);
        }
        let line = || if self.config.single_file { Line::single_file() } else { Line::unbounded() };
        let fleet = Arc::new(Fleet {
            owner,
            lines: projections.iter().map(|_| line()).collect(),
            projections,
            cursors: sites.iter().map(|_| Default::default()).collect(),
            sites,
            budget: self.budget.unwrap_or_else(|| Budget::new(self.config.budget.clone())),
            permits,
            config: self.config,
            tally: Tally::default(),
            moved: Notify::new(),
            stop: CancellationToken::new(),
            abort: CancellationToken::new(),
            tasks: TaskTracker::new(),
            runtime: Handle::current(),
            start: Instant::now(),
            agents: AtomicU64::new(0),
        });
        spawn(&fleet, positioners, systems);
        let daemon = Daemon::new(fleet);
        if let Some(store) = self.store {
            store.on_head_moved(daemon.head_listener());
        }
        Ok(daemon)
    }
}

/// Starts the tasks of each database and each server; agents start as tenants are found.
fn spawn(fleet: &Arc<Fleet>, positioners: Vec<Positioner>, systems: Vec<(String, Vec<Arc<Site>>)>) {
    for positioner in positioners {
        let stop = fleet.stop.clone();
        fleet.tasks.spawn(async move {
            stop.run_until_cancelled(positioner.run()).await;
        });
    }
    for site in &fleet.sites {
        fleet.tasks.spawn(discovery::discover(fleet.clone(), site.clone()));
        fleet.tasks.spawn(sentinel::watch(fleet.clone(), site.clone()));
    }
    for (_, sites) in systems {
        fleet.tasks.spawn(discovery::sieve(fleet.clone(), sites));
    }
}

/// No two projections of the same name and version, and no two that write the same view.
fn check_names(projections: &[Projection]) -> Result<(), DaemonError> {
    let (mut names, mut views) = (BTreeSet::new(), BTreeSet::new());
    for projection in projections {
        let name = projection.name.as_str();
        if !names.insert((name, projection.version)) {
            let problem = format!("version {} is registered twice", projection.version);
            return Err(DaemonError::projection(name, problem, "give one another name or version"));
        }
        for (view, version) in projection.views() {
            if !views.insert((view.clone(), version)) {
                let problem =
                    format!("its documents {view} version {version} are written by another projection too");
                return Err(DaemonError::projection(
                    name,
                    problem,
                    "give one another NAME, or raise its VERSION",
                ));
            }
        }
    }
    Ok(())
}

/// Every SQL projection finds a dialect of its.
fn check_sql(projections: &[Projection], database: &dyn Database) -> Result<(), DaemonError> {
    for projection in projections {
        let Body::Sql(sql) = &projection.body else { continue };
        let problem = match database.dialect() {
            Some(dialect) if sql.dialects().contains(&dialect) => continue,
            Some(dialect) => format!("speaks {dialect:?}"),
            None => "speaks no SQL".to_owned(),
        };
        return Err(DaemonError::NoSql {
            projection: projection.name.as_str().to_owned(),
            dialects: format!("{:?}", sql.dialects()),
            database: database.name().to_owned(),
            problem,
        });
    }
    Ok(())
}

/// Registers all projections in one database; returns their numbers, and which server it is on.
async fn register(projections: &[Projection], database: &dyn Database) -> Result<(Vec<Post>, String), Error> {
    let system = database.identity().await?.system;
    let mut posts = Vec::with_capacity(projections.len());
    for projection in projections {
        let number = database.ensure_projection(&projection.name).await?;
        let mut views = Vec::new();
        match &projection.body {
            Body::Members(seats) => {
                for seat in seats {
                    views.push(database.ensure_view(&seat.view, seat.member.version()).await?);
                }
            }
            Body::Sql(sql) => {
                let dialect =
                    database.dialect().ok_or_else(|| Error::unsupported("this database has no SQL"))?;
                let statements = sql.setup(dialect);
                if !statements.is_empty() {
                    database.set_up(&statements).await?;
                }
            }
        }
        posts.push(Post { number, views });
    }
    Ok((posts, system))
}
