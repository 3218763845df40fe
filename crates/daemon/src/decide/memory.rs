//! How much memory this process may use and does use, read out of what Linux says about it. Text in, figures out.
//!
//! # Which limit
//!
//! A control group's limit counts everything below it, so every group from the process's own up to the root bounds it. Version 2
//! and version 1 of control groups are mounted in different places, sometimes both; whichever has a memory limit counts. Where
//! no group is limited below the physical memory, that is the limit.
//!
//! # What counts as used
//!
//! The group's usage without the page cache that the kernel would drop at once: file pages on its lists, active or not, that
//! are neither dirty nor being written. Active file pages are left out too, unlike in the "working set" some tools show: a
//! process that reads and writes files fills its limit with them in the best of health, and they give way. Anonymous memory,
//! shared memory and the kernel's own count. For physical memory the kernel's own estimate of what is available is taken.

use std::path::{Component, Path, PathBuf};

use super::gate::MemoryReading;

/// Whether a group speaks version 1 or 2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    V1,
    V2,
}

impl Version {
    /// The file that holds the limit.
    pub(crate) fn limit_file(self) -> &'static str {
        match self {
            Version::V1 => "memory.limit_in_bytes",
            Version::V2 => "memory.max",
        }
    }

    /// The file that holds the usage.
    pub(crate) fn usage_file(self) -> &'static str {
        match self {
            Version::V1 => "memory.usage_in_bytes",
            Version::V2 => "memory.current",
        }
    }
}

/// The file that says what the usage consists of, in both versions.
pub(crate) const STAT_FILE: &str = "memory.stat";

/// A directory whose files may bound this process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Group {
    pub(crate) version: Version,
    pub(crate) directory: PathBuf,
}

/// The groups that bound this process, its own first, up to the root of what is mounted here; from `/proc/self/cgroup` and
/// `/proc/self/mountinfo`. Groups without memory files may be among them.
pub(crate) fn groups(cgroup: &str, mountinfo: &str) -> Vec<Group> {
    let mut groups = Vec::new();
    for mount in mountinfo.lines().filter_map(Mount::parse) {
        let Some(own) = own_path(cgroup, mount.version) else { continue };
        // Inside a container the mount shows only a part of the tree. Where the process stands outside of that part, the
        // mount itself is the nearest thing that can be seen.
        let below = Path::new(own).strip_prefix(&mount.root).unwrap_or(Path::new(""));
        let climbs = below.components().any(|part| part == Component::ParentDir);
        let below = if climbs { Path::new("") } else { below };
        groups.extend(
            below
                .ancestors()
                .map(|part| Group { version: mount.version, directory: mount.point.join(part) })
                .map(|group| Group { directory: group.directory.components().collect(), ..group }),
        );
    }
    groups
}

/// A limit file; nothing where there is no limit.
pub(crate) fn limit(text: &str) -> Option<u64> {
    // "max" in version 2; in version 1 no limit reads as the largest multiple of the page size, above any real memory.
    text.trim().parse().ok()
}

/// A group's usage and `memory.stat`, as what counts as used.
pub(crate) fn used(version: Version, usage: &str, stat: &str) -> Option<u64> {
    let usage: u64 = usage.trim().parse().ok()?;
    let line = |name: &str| lookup(stat, name, ' ');
    let sum = |names: [&str; 2]| {
        names
            .iter()
            .map(|name| match version {
                // The totals include the groups below, as the usage does; without a hierarchy there are none.
                Version::V1 => line(&format!("total_{name}")).or_else(|| line(name)).unwrap_or(0),
                Version::V2 => line(name).unwrap_or(0),
            })
            .fold(0, u64::saturating_add)
    };
    let cached = sum(["inactive_file", "active_file"]);
    let unwritten = match version {
        Version::V1 => sum(["dirty", "writeback"]),
        Version::V2 => sum(["file_dirty", "file_writeback"]),
    };
    Some(usage.saturating_sub(cached.saturating_sub(unwritten)))
}

/// Physical memory, from `/proc/meminfo`.
pub(crate) fn physical(meminfo: &str) -> Option<MemoryReading> {
    let bytes = |name| lookup(meminfo, name, ':').map(|kibibytes| kibibytes.saturating_mul(1024));
    let total = bytes("MemTotal")?;
    let available = bytes("MemAvailable").or_else(|| bytes("MemFree"))?;
    Some(MemoryReading { used_bytes: total.saturating_sub(available), limit_bytes: total })
}

/// The readings that bound the process: those of groups with a limit below the physical memory, else the physical memory.
pub(crate) fn bounding(groups: Vec<MemoryReading>, physical: Option<MemoryReading>) -> Vec<MemoryReading> {
    let above = physical.map_or(u64::MAX, |physical| physical.limit_bytes);
    let groups: Vec<_> = groups.into_iter().filter(|group| group.limit_bytes < above).collect();
    if groups.is_empty() { physical.into_iter().collect() } else { groups }
}

/// The first number in the line that opens with the name.
fn lookup(text: &str, name: &str, separator: char) -> Option<u64> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(separator)?;
        (key == name).then(|| value.split_whitespace().next()?.parse().ok())?
    })
}

/// The process's own path in the tree of that version.
fn own_path(cgroup: &str, version: Version) -> Option<&str> {
    cgroup.lines().find_map(|line| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        let matches = match version {
            Version::V1 => controllers.split(',').any(|controller| controller == "memory"),
            Version::V2 => controllers.is_empty(),
        };
        matches.then_some(path)
    })
}

/// A mounted tree of control groups.
struct Mount {
    version: Version,
    root: PathBuf,
    point: PathBuf,
}

impl Mount {
    // 35 31 0:32 /root /mount/point options [optional]... - type source super-options
    fn parse(line: &str) -> Option<Mount> {
        let (mount, file_system) = line.split_once(" - ")?;
        let mut file_system = file_system.split(' ');
        let version = match file_system.next()? {
            "cgroup2" => Version::V2,
            "cgroup" if file_system.nth(1)?.split(',').any(|option| option == "memory") => Version::V1,
            _ => return None,
        };
        let mut fields = mount.split(' ').skip(3).map(unescape);
        Some(Mount { version, root: fields.next()?.into(), point: fields.next()?.into() })
    }
}

/// Blanks, tabs, line ends and backslashes are written in octal there.
fn unescape(field: &str) -> String {
    [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")]
        .iter()
        .fold(field.to_owned(), |text, (from, to)| text.replace(from, to))
}

#[cfg(test)]
mod tests {
    use super::{Version, bounding, groups, limit, physical, used};
    use crate::decide::gate::MemoryReading;

    const V2_MOUNT: &str = "24 18 0:22 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";
    const V1_MOUNTS: &str = "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n\
        35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n\
        41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";

    fn check_groups(cgroup: &str, mountinfo: &str, expected: &[(Version, &str)]) {
        let found = groups(cgroup, mountinfo);
        let found: Vec<_> =
            found.iter().map(|group| (group.version, group.directory.to_str().unwrap())).collect();
        assert_eq!(found, expected, "{cgroup} in {mountinfo}");
    }

    // T6
    #[test]
    fn every_group_from_the_own_one_to_the_root_is_looked_at() {
        check_groups(
            "0::/system.slice/bellwether.service\n",
            V2_MOUNT,
            &[
                (Version::V2, "/sys/fs/cgroup/system.slice/bellwether.service"),
                (Version::V2, "/sys/fs/cgroup/system.slice"),
                (Version::V2, "/sys/fs/cgroup"),
            ],
        );
    }

    // T6
    #[test]
    fn the_memory_groups_of_version_1_are_found_beside_those_of_version_2() {
        check_groups(
            "9:name=systemd:/\n4:memory:/jobs/one\n1:cpu:/elsewhere\n0::/\n",
            V1_MOUNTS,
            &[
                (Version::V1, "/sys/fs/cgroup/memory/jobs/one"),
                (Version::V1, "/sys/fs/cgroup/memory/jobs"),
                (Version::V1, "/sys/fs/cgroup/memory"),
                (Version::V2, "/sys/fs/cgroup/unified"),
            ],
        );
    }

    #[test]
    fn controllers_that_share_a_tree_are_told_apart() {
        check_groups(
            "5:cpu,memory:/a\n",
            "35 31 0:32 / /cg rw - cgroup cgroup rw,cpu,memory\n",
            &[(Version::V1, "/cg/a"), (Version::V1, "/cg")],
        );
        check_groups(
            "5:memory_recursive:/a\n",
            "35 31 0:32 / /cg rw - cgroup cgroup rw,memory_recursive\n",
            &[],
        );
    }

    // T6: a container sees only its own part of the tree, under a path that may be spelled from the outside.
    #[test]
    fn inside_a_container_the_mount_is_the_root() {
        let mount = "35 31 0:32 /docker/4f2a /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n";
        check_groups(
            "4:memory:/docker/4f2a/inner\n",
            mount,
            &[(Version::V1, "/sys/fs/cgroup/memory/inner"), (Version::V1, "/sys/fs/cgroup/memory")],
        );
        check_groups("4:memory:/\n", mount, &[(Version::V1, "/sys/fs/cgroup/memory")]);
        check_groups("0::/../other\n", V2_MOUNT, &[(Version::V2, "/sys/fs/cgroup")]);
    }

    #[test]
    fn blanks_in_a_mount_point_are_unescaped() {
        check_groups(
            "0::/a\n",
            "1 0 0:1 / /my\\040groups rw - cgroup2 none rw\n",
            &[(Version::V2, "/my groups/a"), (Version::V2, "/my groups")],
        );
    }

    #[test]
    fn nonsense_yields_no_groups() {
        check_groups("", "", &[]);
        check_groups("x\n0:\n\n", "a - b\n - \n1 2 3 4 5 - cgroup2 x\n", &[]);
    }

    #[test]
    fn limits_are_read_and_max_is_none() {
        assert_eq!(limit("536870912\n"), Some(512 << 20));
        assert_eq!(limit("max\n"), None);
        assert_eq!(limit(""), None);
    }

    // T6: what the kernel drops at once does not count; what it would have to write first does.
    #[test]
    fn page_cache_is_not_used_memory_unless_it_is_unwritten() {
        let v2 = "anon 1000\nfile 900\nshmem 100\nfile_dirty 30\nfile_writeback 20\ninactive_file 500\nactive_file 300\n";
        assert_eq!(used(Version::V2, "2000\n", v2), Some(2_000 - 800 + 50));
        let v1 = "cache 5\ninactive_file 1\nactive_file 1\ndirty 0\ntotal_inactive_file 500\ntotal_active_file 300\n\
            total_dirty 30\ntotal_writeback 20\n";
        assert_eq!(used(Version::V1, "2000\n", v1), Some(2_000 - 800 + 50));
        let without_hierarchy = "inactive_file 400\nactive_file 100\n";
        assert_eq!(used(Version::V1, "2000\n", without_hierarchy), Some(1_500));
    }

    #[test]
    fn figures_that_do_not_fit_together_stop_at_zero() {
        assert_eq!(used(Version::V2, "100\n", "inactive_file 500\n"), Some(0));
        assert_eq!(used(Version::V2, "100\n", "inactive_file 50\nfile_dirty 70\n"), Some(100));
        assert_eq!(used(Version::V2, "", "inactive_file 50\n"), None);
    }

    #[test]
    fn physical_memory_is_what_the_kernel_says_is_available() {
        let meminfo =
            "MemTotal:       24683652 kB\nMemFree:        21468620 kB\nMemAvailable:   23459204 kB\n";
        let expected =
            MemoryReading { used_bytes: (24683652 - 23459204) * 1024, limit_bytes: 24683652 * 1024 };
        assert_eq!(physical(meminfo), Some(expected));
        assert_eq!(physical("MemFree: 1 kB\n"), None);
    }

    // T6
    #[test]
    fn a_limit_above_the_physical_memory_bounds_nothing() {
        let reading = |limit_bytes| MemoryReading { used_bytes: 1, limit_bytes };
        let unlimited = reading(9_223_372_036_854_771_712);
        let physical = reading(1_000);
        assert_eq!(bounding(vec![unlimited], Some(physical)), [physical]);
        assert_eq!(
            bounding(vec![reading(500), unlimited, reading(800)], Some(physical)),
            [reading(500), reading(800)]
        );
        assert_eq!(bounding(vec![], None), []);
        assert_eq!(bounding(vec![reading(500)], None), [reading(500)]);
    }
}
