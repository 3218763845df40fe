//! See the crate description.

mod decide;
mod perform;

pub use decide::budget::{AgentNo, Ask, Capacity, Reason};
pub use decide::gate::{HYSTERESIS_PERCENT, MemoryReading};
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
