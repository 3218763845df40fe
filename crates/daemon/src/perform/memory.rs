//! How much memory this process uses, read from the system.

use std::fs;
use std::path::Path;

use crate::decide::gate::MemoryReading;
use crate::decide::memory::{self, Group, STAT_FILE};

/// Where the memory gate takes its readings from. A closure that returns a reading is one.
pub trait MemorySource: Send + Sync {
    /// Memory in use and its limit, of whatever is fullest; `None` where nothing is known, which closes no gate. Called from
    /// async code: it must not block for longer than reading a few small files takes.
    fn read(&self) -> Option<MemoryReading>;

    /// The smallest limit on this process in bytes, for the size of the budget.
    fn limit_bytes(&self) -> Option<u64> {
        self.read().map(|reading| reading.limit_bytes)
    }
}

impl<F: Fn() -> Option<MemoryReading> + Send + Sync> MemorySource for F {
    fn read(&self) -> Option<MemoryReading> {
        self()
    }
}

/// The memory of this process as Linux bounds it: by its control groups, version 2 or 1, else by the physical memory.
///
/// ```
/// use bellwether_daemon::{MemorySource, SystemMemory};
///
/// if let Some(reading) = SystemMemory::find().read() {
///     println!("{} of {} bytes in use", reading.used_bytes, reading.limit_bytes);
/// }
/// ```
#[derive(Debug, Clone)]
pub struct SystemMemory {
    // Found once: limits may be changed while running and are read every time, but a running process is rarely moved.
    groups: Vec<Group>,
}

impl SystemMemory {
    /// Finds the groups of this process. Where there are none, or this is not Linux, there are no readings of groups.
    pub fn find() -> SystemMemory {
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        SystemMemory { groups: memory::groups(&read("/proc/self/cgroup"), &read("/proc/self/mountinfo")) }
    }

    /// A reading of every group with a limit below the physical memory, own group first; else of the physical memory.
    fn readings(&self) -> Vec<MemoryReading> {
        let physical = read(Path::new("/proc/meminfo")).and_then(|meminfo| memory::physical(&meminfo));
        let above = physical.map_or(u64::MAX, |physical| physical.limit_bytes);
        let groups: Vec<_> =
            self.groups.iter().filter_map(reading).filter(|reading| reading.limit_bytes < above).collect();
        if groups.is_empty() { physical.into_iter().collect() } else { groups }
    }
}

impl MemorySource for SystemMemory {
    fn read(&self) -> Option<MemoryReading> {
        self.readings().into_iter().max_by(|one, other| one.fullness().total_cmp(&other.fullness()))
    }

    fn limit_bytes(&self) -> Option<u64> {
        self.readings().iter().map(|reading| reading.limit_bytes).min()
    }
}

fn reading(group: &Group) -> Option<MemoryReading> {
    let file = |name| read(&group.directory.join(name));
    let limit_bytes = memory::limit(&file(group.version.limit_file())?)?;
    let used_bytes = memory::used(group.version, &file(group.version.usage_file())?, &file(STAT_FILE)?)?;
    Some(MemoryReading { used_bytes, limit_bytes })
}

fn read(path: &Path) -> Option<String> {
    fs::read_to_string(path).ok()
}
