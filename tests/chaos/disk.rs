//! Disk that can become full: a small file system in memory, if this program has permission to
//! mount one.
//!
//! Root can mount a file system. Other users can mount one if the kernel permits them a user
//! namespace. The mounts are in this program's own mount namespace, so they disappear with the
//! program.

use std::env;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use rustix::fs::statvfs;
use rustix::process::geteuid;

use crate::process::{SOON, wait_for};

/// Environment variable that marks a run with its own mounts.
const MARK: &str = "CHAOS_MOUNTS";

/// Size of the disk when it is not full.
const SIZE: u64 = 1 << 30;

/// Runs this program again in its own mount namespace. Returns only if the new run is impossible,
/// or if the program already has its own mounts.
pub(crate) fn enter_namespace() -> Result<()> {
    if env::var_os(MARK).is_some() {
        return Ok(());
    }
    let mut options = vec!["--mount"];
    if !geteuid().is_root() {
        options.extend(["--user", "--map-root-user"]);
    }
    let possible = Command::new("unshare").args(&options).args(["--", "true"]).output();
    if possible.is_ok_and(|output| output.status.success()) {
        let program = env::current_exe()?;
        let mut command = Command::new("unshare");
        command.args(&options).arg("--").arg(program).args(env::args_os().skip(1)).env(MARK, "1");
        return Err(command.exec()).context("unshare of util-linux");
    }
    println!(
        "this program may not mount a file system here (unshare --mount): no round fills a disk"
    );
    Ok(())
}

/// Small file system for a storage folder.
#[derive(Debug)]
pub(crate) struct Disk(PathBuf);

impl Disk {
    /// Mounts the disk at a folder. Returns `None` if that is impossible.
    pub(crate) fn mount(folder: &Path) -> Result<Option<Self>> {
        if env::var_os(MARK).is_none() {
            return Ok(None);
        }
        fs::create_dir_all(folder)?;
        let options = format!("size={SIZE}");
        run(Command::new("mount").args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(folder))?;
        Ok(Some(Self(folder.to_owned())))
    }

    /// Shrinks the disk until at most this many bytes are free.
    pub(crate) fn fill(&self, free: u64) -> Result<()> {
        // The kernel refuses to shrink the disk if more was written meanwhile.
        wait_for("full disk", SOON, || {
            let facts = statvfs(&self.0)?;
            let used = (facts.f_blocks - facts.f_bfree) * facts.f_frsize;
            Ok(self.resize(used + free).ok())
        })
    }

    /// Restores the full size of the disk.
    pub(crate) fn free(&self) -> Result<()> {
        self.resize(SIZE)
    }

    fn resize(&self, bytes: u64) -> Result<()> {
        run(Command::new("mount").args(["-o", &format!("remount,size={bytes}")]).arg(&self.0))
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        drop(run(Command::new("umount").arg("--lazy").arg(&self.0)));
    }
}

fn run(command: &mut Command) -> Result<()> {
    let output = command.output()?;
    ensure!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}
