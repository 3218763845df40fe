//! How much memory this process uses, read from the system.

use std::fs;
use std::path::{Path, PathBuf};

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
    root: PathBuf,
}

impl SystemMemory {
    /// Finds the groups of this process. Where there are none, or this is not Linux, there are no readings of groups.
    pub fn find() -> SystemMemory {
        SystemMemory::find_under(Path::new("/"))
    }

    /// The same in a system that is rooted here.
    fn find_under(root: &Path) -> SystemMemory {
        let text = |path| read(&root.join(path)).unwrap_or_default();
        let groups = memory::groups(&text("proc/self/cgroup"), &text("proc/self/mountinfo"));
        let below = |directory: &Path| root.join(directory.strip_prefix("/").unwrap_or(directory));
        SystemMemory {
            root: root.to_owned(),
            groups: groups
                .into_iter()
                .map(|group| Group { directory: below(&group.directory), ..group })
                .collect(),
        }
    }

    fn readings(&self) -> Vec<MemoryReading> {
        let physical = read(&self.root.join("proc/meminfo")).and_then(|meminfo| memory::physical(&meminfo));
        memory::bounding(self.groups.iter().filter_map(reading).collect(), physical)
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

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{MemoryReading, MemorySource, SystemMemory};

    const CGROUP2: &str = "24 18 0:22 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
    const CGROUP1: &str = "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";
    const MEMINFO: &str = "MemTotal: 1000 kB\nMemAvailable: 600 kB\n";

    /// What is read in a system of these files.
    fn check(files: &[(&str, &str)], expected: Option<(u64, u64)>, limit_bytes: Option<u64>) {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let memory = SystemMemory::find_under(root.path());
        let expected = expected.map(|(used_bytes, limit_bytes)| MemoryReading { used_bytes, limit_bytes });
        assert_eq!((memory.read(), memory.limit_bytes()), (expected, limit_bytes), "{files:?}");
    }

    // T6: the parent is shared with others and fills first; the own limit is the smaller one.
    #[test]
    fn the_fullest_group_counts_for_the_gate_and_the_smallest_limit_for_the_size() {
        check(
            &[
                ("proc/self/cgroup", "0::/slice/own\n"),
                ("proc/self/mountinfo", CGROUP2),
                ("proc/meminfo", MEMINFO),
                ("sys/fs/cgroup/memory.stat", "anon 1\n"),
                ("sys/fs/cgroup/slice/memory.max", "2000\n"),
                ("sys/fs/cgroup/slice/memory.current", "1900\n"),
                ("sys/fs/cgroup/slice/memory.stat", "inactive_file 100\n"),
                ("sys/fs/cgroup/slice/own/memory.max", "1000\n"),
                ("sys/fs/cgroup/slice/own/memory.current", "700\n"),
                ("sys/fs/cgroup/slice/own/memory.stat", "active_file 100\n"),
            ],
            Some((1_800, 2_000)),
            Some(1_000),
        );
    }

    // T6
    #[test]
    fn a_limit_of_version_1_is_found_where_version_2_has_no_memory() {
        check(
            &[
                ("proc/self/cgroup", "4:memory:/jobs\n0::/\n"),
                (
                    "proc/self/mountinfo",
                    &format!("{CGROUP1}41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"),
                ),
                ("proc/meminfo", MEMINFO),
                ("sys/fs/cgroup/memory/jobs/memory.limit_in_bytes", "5000\n"),
                ("sys/fs/cgroup/memory/jobs/memory.usage_in_bytes", "4000\n"),
                ("sys/fs/cgroup/memory/jobs/memory.stat", "total_inactive_file 1500\n"),
                ("sys/fs/cgroup/unified/cgroup.procs", "\n"),
            ],
            Some((2_500, 5_000)),
            Some(5_000),
        );
    }

    // T6
    #[test]
    fn without_a_limit_it_is_the_physical_memory() {
        let unlimited = [
            ("proc/self/cgroup", "0::/own\n"),
            ("proc/self/mountinfo", CGROUP2),
            ("proc/meminfo", MEMINFO),
            ("sys/fs/cgroup/own/memory.max", "max\n"),
            ("sys/fs/cgroup/own/memory.current", "700\n"),
            ("sys/fs/cgroup/own/memory.stat", "anon 1\n"),
        ];
        check(&unlimited, Some((400 << 10, 1_000 << 10)), Some(1_000 << 10));
        check(&unlimited[2..3], Some((400 << 10, 1_000 << 10)), Some(1_000 << 10));
    }

    #[test]
    fn where_nothing_can_be_read_nothing_is_known() {
        check(&[], None, None);
    }

    // T6
    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_is_bounded_by_something() {
        let reading = SystemMemory::find().read().expect("Linux says how much memory there is");
        assert!(reading.used_bytes > 0 && reading.limit_bytes > 0, "{reading:?}");
    }
}
