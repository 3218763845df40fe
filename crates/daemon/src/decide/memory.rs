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

use std::path::{Path, PathBuf};

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
        let climbs = below.components().any(|part| part == std::path::Component::ParentDir);
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
