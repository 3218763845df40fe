//! Projections whose tenants take turns under one memory budget.

mod change;
mod keys;

mod composite;
mod multi_view;
mod readable;
mod sql_projection;
mod stage_view;
mod view;

mod project;
mod reading;

mod config;
mod error;
mod status;

mod builder;
mod daemon;

mod member;
mod projection;

mod decide;
mod perform;

pub use builder::DaemonBuilder;
pub use change::Change;
pub use composite::{Composite, Stage};
pub use config::DaemonConfig;
pub use daemon::Daemon;
pub use error::{DaemonError, NotCaughtUp};
pub use keys::Keys;
pub use multi_view::MultiView;
pub use project::{Foldable, Project, Projected, project};
pub use readable::{AsMultiView, AsStageView, AsView, Readable};
pub use reading::ReadViews;
pub use sql_projection::{Page, SqlProjection, Tx};
pub use stage_view::{Changed, StageView};
pub use status::{AgentState, AgentStatus, DaemonCounters, DaemonStatus};
pub use view::View;

pub use decide::budget::{AgentNo, Ask, Capacity, Reason};
pub use decide::gate::MemoryReading;
pub use decide::hopper::{Hopper, HopperConfig, Pace};
pub use perform::budget::{Budget, Lease, PageOverdue};
pub use perform::budget_config::{
    BYTES_DEFAULT_FRACTION, BYTES_DEFAULT_MAX, BudgetConfig, CHUNK_BYTES_DEFAULT, CHUNK_CAPACITY_FRACTION,
    InvalidBudget,
};
pub use perform::budget_status::{BudgetStatus, Gauge, Holding, InLine};
pub use perform::line::{Line, Turn};
pub use perform::memory::{MemorySource, SystemMemory};
pub use perform::permits::{PERMITS_PER_DATABASE_DEFAULT, Permit, PermitStatus, Permits};
pub use perform::wait_order;
