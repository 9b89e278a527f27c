//! Checks that a filter fits into the available memory, before the filter takes its memory. Linux
//! promises more memory than it has, and later kills processes.
//!
//! Two limits are read. The first one is the machine's available memory. The second one is the
//! limit of this process's control group (a container, a systemd unit), and of each group above it.
//! Both versions of control groups are supported:
//! [v2](https://docs.kernel.org/admin-guide/cgroup-v2.html#memory) and
//! [v1](https://docs.kernel.org/admin-guide/cgroup-v1/memory.html). On systems other than Linux,
//! no limit is known.

use std::fmt;
use std::path::{Path, PathBuf};

use super::number::whole;

/// Number of bytes that a growing filter leaves to the rest of the process.
pub const SPARE: u64 = 64 << 20;

/// Memory that this process can still take, and the limit that determines it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Available {
    /// Number of bytes that the process can still take.
    pub bytes: u64,
    /// Limit that determines the number of bytes.
    pub limit: Limit,
}

/// Origin of a limit of this process's memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Limit {
    /// Memory of the machine that is available without swapping: `MemAvailable`.
    Machine,
    /// Control group with this folder.
    Group(PathBuf),
    /// Limit of the process itself, by the option of `ulimit` that sets it.
    Process(&'static str),
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Machine => f.write_str("on this machine"),
            Self::Group(folder) => write!(f, "in the control group {}", folder.display()),
            Self::Process(option) => write!(f, "by ulimit {option}"),
        }
    }
}

/// Error of a filter that does not fit into memory when it is empty.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the filter does not fit: it begins with {need:.2} GiB for {capacity} fingerprints, and \
     {have:.2} GiB are available {limit}; give the process more memory, or lower filter.capacity \
     to {fits}",
    need = gib(*bytes),
    have = gib(available.bytes),
    limit = available.limit,
    fits = self.capacity_that_fits(),
)]
pub struct TooLarge {
    /// Number of fingerprints that the filter is made for.
    capacity: u64,
    /// Number of bytes that the empty filter takes.
    bytes: u64,
    /// Memory that is available for the filter.
    available: Available,
}

impl TooLarge {
    /// Returns the approximate capacity that would fit, rounded down to two digits.
    fn capacity_that_fits(&self) -> u64 {
        let share = self.available.bytes as f64 / self.bytes as f64;
        let keys = whole(self.capacity as f64 * share);
        let digits = 10u64.pow(keys.checked_ilog10().unwrap_or(0).saturating_sub(1));
        keys / digits * digits
    }
}

/// Converts a number of bytes to GiB.
pub fn gib(bytes: u64) -> f64 {
    bytes as f64 / (1u64 << 30) as f64
}

/// Checks that an empty filter for this number of fingerprints fits into the available memory. If
/// that amount is unknown, the filter counts as fitting.
///
/// # Errors
/// The filter does not fit.
pub(super) fn check(
    capacity: u64,
    bytes: u64,
    available: Option<Available>,
) -> Result<(), TooLarge> {
    match available {
        Some(available) if available.bytes < bytes => Err(TooLarge { capacity, bytes, available }),
        _ => Ok(()),
    }
}

/// Returns the memory available to this process; `None` if it is unknown.
pub fn available() -> Option<Available> {
    cfg!(target_os = "linux").then(|| read(|path| std::fs::read_to_string(path).ok()))?
}

/// Returns the memory that this process can still allocate, also by its own limits; `None` if it is
/// unknown. A process that goes over its own limits gets no memory at all.
pub(super) fn allocatable() -> Option<Available> {
    let file = |path: &Path| std::fs::read_to_string(path).ok();
    available().into_iter().chain(by_process(file)).min_by_key(|available| available.bytes)
}

/// Returns the number of bytes of addresses that the limits of this process leave; `None` if it has
/// no limits.
pub(super) fn addressable() -> Option<u64> {
    let file = |path: &Path| std::fs::read_to_string(path).ok();
    by_process(file).into_iter().map(|available| available.bytes).min()
}

/// Returns what the limits of this process leave. `file` returns the content of a system file.
fn by_process(file: impl Fn(&Path) -> Option<String>) -> Vec<Available> {
    let [limits, status] =
        ["limits", "status"].map(|name| file(&Path::new("/proc/self").join(name)));
    let (limits, status) = (limits.unwrap_or_default(), status.unwrap_or_default());
    let left = |(limit, used, option)| {
        let limit: u64 = field(&limits, limit)?.split(' ').next()?.parse().ok()?;
        let used: u64 = field(&status, used)?.trim_end_matches("kB").trim().parse().ok()?;
        let bytes = limit.saturating_sub(used.saturating_mul(1024));
        Some(Available { bytes, limit: Limit::Process(option) })
    };
    let limits = [("Max data size", "VmData:", "-d"), ("Max address space", "VmSize:", "-v")];
    limits.into_iter().filter_map(left).collect()
}

/// Returns the lowest limit. `file` returns the content of a system file.
fn read(file: impl Fn(&Path) -> Option<String>) -> Option<Available> {
    let machine = file(Path::new("/proc/meminfo")).and_then(|meminfo| {
        let kib: u64 =
            field(&meminfo, "MemAvailable:")?.trim_end_matches("kB").trim().parse().ok()?;
        Some(Available { bytes: kib.checked_mul(1024)?, limit: Limit::Machine })
    });
    let groups = file(Path::new("/proc/self/cgroup")).unwrap_or_default();
    let mounts = file(Path::new("/proc/self/mountinfo")).unwrap_or_default();
    let groups = groups.lines().filter_map(|line| ControlGroup::of(line, &mounts));
    let allowed = groups.flat_map(|group| group.allowed(&file));
    machine.into_iter().chain(allowed).min_by_key(|available| available.bytes)
}

/// Returns the text after `name` in the first line that begins with `name`.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim)
}

/// Names of the files in a version of control groups.
#[derive(Debug)]
struct CgroupVersion {
    limits: &'static [&'static str],
    usage: &'static str,
    /// Field of `memory.stat` with the memory of rarely used file pages. The kernel drops these
    /// pages before it refuses memory.
    reclaimable: &'static str,
}

const V1: CgroupVersion = CgroupVersion {
    limits: &["memory.limit_in_bytes"],
    usage: "memory.usage_in_bytes",
    reclaimable: "total_inactive_file ",
};

const V2: CgroupVersion = CgroupVersion {
    limits: &["memory.max", "memory.high"],
    usage: "memory.current",
    reclaimable: "inactive_file ",
};

/// Control group that counts memory. The tree of all groups is mounted at `mount`. The folder of
/// the group is `folder`: either `mount` itself, or a folder below `mount`.
#[derive(Debug)]
struct ControlGroup {
    version: &'static CgroupVersion,
    mount: PathBuf,
    folder: PathBuf,
}

impl ControlGroup {
    /// Reads a line of `/proc/self/cgroup`, `id:controllers:path`. Returns `None` if the group does
    /// not count memory, or if its tree is not mounted.
    fn of(line: &str, mounts: &str) -> Option<Self> {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?);
        let (version, kind) = match controllers {
            "" => (&V2, "cgroup2"),
            v1 if v1.split(',').any(|controller| controller == "memory") => (&V1, "cgroup"),
            _ => return None,
        };
        let (root, mount) = mounts.lines().find_map(|line| mount_of(line, kind))?;
        // Inside a container the mount may show only the group's own part of the tree.
        let below = Path::new(path).strip_prefix(root).unwrap_or(Path::new(""));
        Some(Self { version, mount: mount.into(), folder: Path::new(mount).join(below) })
    }

    /// Returns the memory that this group and each group above it still allow.
    fn allowed(self, file: impl Fn(&Path) -> Option<String>) -> Vec<Available> {
        let Self { version, mount, folder } = self;
        let number = |folder: &Path, name: &str| -> Option<u64> {
            file(&folder.join(name))?.trim().parse().ok() // "max" means that there is no limit.
        };
        folder
            .ancestors()
            .take_while(|above| above.starts_with(&mount))
            .filter_map(|above| {
                let limits = version.limits.iter().filter_map(|name| number(above, name));
                let limit = limits.min()?;
                let stat = file(&above.join("memory.stat")).unwrap_or_default();
                let reclaimable = field(&stat, version.reclaimable).and_then(|n| n.parse().ok());
                let usage = number(above, version.usage)?.saturating_sub(reclaimable.unwrap_or(0));
                let bytes = limit.saturating_sub(usage);
                Some(Available { bytes, limit: Limit::Group(above.into()) })
            })
            .collect()
    }
}

/// Reads a line of `/proc/self/mountinfo` (proc(5)). Returns the root and the mount point of a file
/// system of type `kind`. Version 1 has many trees, of which only the one for memory is accepted.
fn mount_of<'a>(line: &'a str, kind: &str) -> Option<(&'a str, &'a str)> {
    let (left, right) = line.split_once(" - ")?;
    let mut right = right.split(' ');
    let (found, _source, options) = (right.next()?, right.next()?, right.next().unwrap_or(""));
    if found != kind || (kind == "cgroup" && !options.split(',').any(|o| o == "memory")) {
        return None;
    }
    let mut left = left.split(' ').skip(3);
    Some((left.next()?, left.next()?))
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    const GIB: u64 = 1 << 30;
    const MEMINFO: &str = "MemTotal: 16777216 kB\nMemFree: 12 kB\nMemAvailable:  8388608 kB\n";
    const V2_MOUNT: &str = "29 22 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n";
    const V1_MOUNTS: &str = "31 30 0:27 / /cg/cpu rw - cgroup cgroup rw,cpu\n\
        32 30 0:28 /docker/abc /cg/memory rw - cgroup cgroup rw,memory\n";

    /// Reads the limits from these files: path, contents.
    fn read_from(files: &[(&str, &str)]) -> Option<Available> {
        let files: HashMap<_, _> = files.iter().map(|&(p, text)| (Path::new(p), text)).collect();
        read(|path| files.get(path).map(ToString::to_string))
    }

    fn group(folder: &str, bytes: u64) -> Available {
        Available { bytes, limit: Limit::Group(folder.into()) }
    }

    #[test]
    fn without_control_groups_the_machine_is_the_limit() {
        let machine = Some(Available { bytes: 8 * GIB, limit: Limit::Machine });
        assert_eq!(read_from(&[("/proc/meminfo", MEMINFO)]), machine);
        let unlimited = [
            ("/proc/meminfo", MEMINFO),
            ("/proc/self/cgroup", "0::/a\n"),
            ("/proc/self/mountinfo", V2_MOUNT),
            ("/sys/fs/cgroup/a/memory.max", "max\n"),
            ("/sys/fs/cgroup/a/memory.current", "1\n"),
        ];
        assert_eq!(read_from(&unlimited), machine);
        assert_eq!(read_from(&[]), None);
    }

    #[test]
    fn the_lowest_limit_of_all_groups_above_counts() {
        let files = [
            ("/proc/meminfo", MEMINFO),
            ("/proc/self/cgroup", "0::/system.slice/urlseen.service\n"),
            ("/proc/self/mountinfo", V2_MOUNT),
            ("/sys/fs/cgroup/system.slice/urlseen.service/memory.max", "6442450944\n"),
            ("/sys/fs/cgroup/system.slice/urlseen.service/memory.current", "1073741824\n"),
            ("/sys/fs/cgroup/system.slice/memory.max", "max\n"),
            ("/sys/fs/cgroup/system.slice/memory.high", "4294967296\n"),
            ("/sys/fs/cgroup/system.slice/memory.current", "3221225472\n"),
            ("/sys/fs/cgroup/system.slice/memory.stat", "anon 1\ninactive_file 1073741824\n"),
        ];
        assert_eq!(read_from(&files).unwrap(), group("/sys/fs/cgroup/system.slice", 2 * GIB));
    }

    #[test]
    fn version_1_in_a_container_is_read_at_its_mount() {
        let files = [
            ("/proc/meminfo", MEMINFO),
            ("/proc/self/cgroup", "5:cpu:/docker/abc\n4:memory:/docker/abc/job\n0::/\n"),
            ("/proc/self/mountinfo", V1_MOUNTS),
            ("/cg/memory/job/memory.limit_in_bytes", "1073741824\n"),
            ("/cg/memory/job/memory.usage_in_bytes", "536870912\n"),
            ("/cg/memory/memory.limit_in_bytes", "2147483648\n"),
            ("/cg/memory/memory.usage_in_bytes", "1610612736\n"),
            ("/cg/memory/memory.stat", "inactive_file 1\ntotal_inactive_file 536870912\n"),
        ];
        assert_eq!(read_from(&files).unwrap(), group("/cg/memory/job", GIB / 2));
    }

    #[test]
    fn the_limits_of_the_process_count_if_it_has_any() {
        let limits = "Limit                     Soft Limit           Hard Limit           Units\n\
            Max data size             209715200            unlimited            bytes\n\
            Max address space         unlimited            unlimited            bytes\n";
        let status = "VmSize:\t 8000000 kB\nVmData:\t   4800 kB\n";
        let file = |path: &Path| {
            let files = [("/proc/self/limits", limits), ("/proc/self/status", status)];
            files.iter().find(|(name, _)| path == Path::new(name)).map(|(_, it)| (*it).to_owned())
        };
        let left = Available { bytes: 204_800_000, limit: Limit::Process("-d") };
        assert_eq!(by_process(file), [left]);
        assert_eq!(by_process(|_| None), []);
    }

    #[test]
    fn a_full_group_leaves_no_available_memory() {
        let files = [
            ("/proc/self/cgroup", "0::/\n"),
            ("/proc/self/mountinfo", V2_MOUNT),
            ("/sys/fs/cgroup/memory.max", "100\n"),
            ("/sys/fs/cgroup/memory.current", "200\n"),
        ];
        assert_eq!(read_from(&files).unwrap(), group("/sys/fs/cgroup", 0));
    }

    #[test]
    fn a_filter_that_does_not_fit_is_refused_with_its_size_and_a_remedy() {
        let check = |bytes| {
            let limit = Limit::Machine;
            check(1_000_000_000, 5 * GIB, Some(Available { bytes, limit }))
        };
        assert_eq!(super::check(1, GIB, None), Ok(()));
        assert_eq!(check(5 * GIB), Ok(()));
        assert_eq!(
            check(GIB).unwrap_err().to_string(),
            "the filter does not fit: it begins with 5.00 GiB for 1000000000 fingerprints, and \
             1.00 GiB are available on this machine; give the process more memory, or lower \
             filter.capacity to 200000000"
        );
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_available_memory_of_this_machine_is_known() {
        assert!(available().is_some_and(|available| available.bytes > 0));
    }
}
