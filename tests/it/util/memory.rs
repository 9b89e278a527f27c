//! Control groups that limit the memory of a program.

use std::fs;
use std::path::{Path, PathBuf};

use super::binary::Run;

/// Tree of the groups of version 1 that limit memory, on systems that still have it.
const V1: &str = "/sys/fs/cgroup/memory";

/// Tree of the groups of version 2.
const V2: &str = "/sys/fs/cgroup";

/// Group with a limit on its memory. It is removed when dropped, after its last process.
pub(crate) struct MemoryGroup {
    folder: PathBuf,
    /// Names of the files with the limit and the use, and of the part of the use that the kernel
    /// takes back at any time.
    names: [&'static str; 3],
}

impl MemoryGroup {
    /// Makes a group without a limit.
    ///
    /// # Errors
    /// This process may make no group that limits memory, as usual without root. The text says why.
    pub(crate) fn make() -> Result<Self, String> {
        let name = format!("urlseen-test-{}", std::process::id());
        let (tree, names) = if Path::new(V1).join("memory.limit_in_bytes").exists() {
            let names = ["memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file "];
            (V1, names)
        } else {
            (V2, ["memory.max", "memory.current", "inactive_file "])
        };
        let folder = Path::new(tree).join(name);
        let shown = folder.display();
        fs::create_dir(&folder).map_err(|error| format!("cannot make {shown}: {error}"))?;
        let group = Self { folder, names };
        let limit = group.folder.join(names[0]);
        match fs::OpenOptions::new().write(true).open(&limit) {
            Ok(_) => Ok(group),
            Err(error) => Err(format!("cannot write {}: {error}", limit.display())),
        }
    }

    /// Prepares a run of a program in the group.
    pub(crate) fn run(&self, program: &str, arguments: &[&str]) -> Run {
        let enter = format!(r#"echo $$ > {}/cgroup.procs && exec "$@""#, self.folder.display());
        let words = ["-c", &enter, "sh", program].into_iter().chain(arguments.iter().copied());
        Run::of("sh", words)
    }

    /// Returns the memory that the group uses and that the kernel cannot take back.
    pub(crate) fn used(&self) -> u64 {
        let [_, used, reclaimable] = self.names;
        let text = |name: &str| fs::read_to_string(self.folder.join(name)).unwrap();
        let stat = text("memory.stat");
        let reclaimable = stat.lines().find_map(|line| line.strip_prefix(reclaimable)).unwrap();
        text(used).trim().parse::<u64>().unwrap() - reclaimable.trim().parse::<u64>().unwrap()
    }

    /// Sets the limit, in bytes.
    pub(crate) fn limit(&self, bytes: u64) {
        fs::write(self.folder.join(self.names[0]), bytes.to_string()).unwrap();
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        // A group with a process cannot be removed. Then a test has failed, and its message counts.
        let _ = fs::remove_dir(&self.folder);
    }
}
