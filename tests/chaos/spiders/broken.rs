//! Python packages that are broken on purpose. The oracle must detect each of them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, ensure};

/// Returns the path of a patch, or of all patches for `all`.
pub(crate) fn patches(name: &str) -> Result<Vec<PathBuf>> {
    let folder = super::root().join("tests/chaos/spiders/broken");
    let entries = fs::read_dir(&folder)?.map(|entry| Ok(entry?.path()));
    let mut patches = entries.collect::<Result<Vec<_>>>()?;
    patches.retain(|it| name == "all" || it.file_stem().is_some_and(|stem| stem == name));
    patches.sort();
    ensure!(!patches.is_empty(), "{} has no {name}.patch", folder.display());
    Ok(patches)
}

/// Copies the package to `folder`, and patches the copy.
pub(crate) fn apply(patch: &Path, package: &Path, folder: &Path) -> Result<()> {
    let mut copy = Command::new("cp");
    copy.arg("--recursive").arg(package.join(".")).arg(folder);
    let copied = copy.status()?;
    ensure!(copied.success(), "{} cannot be copied", package.display());
    let options = ["--strip=4", "--fuzz=0", "--no-backup-if-mismatch", "--batch", "--forward"];
    let mut command = Command::new("patch");
    command.args(options).arg("--input").arg(patch).current_dir(folder);
    let patched = command.output()?;
    let said = String::from_utf8_lossy(&patched.stdout);
    ensure!(patched.status.success(), "{} does not fit any more: {said}", patch.display());
    Ok(())
}
