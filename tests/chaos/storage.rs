//! Contents of the storage folder between two runs. The tests copy, damage and restore these
//! contents.
//!
//! The file `lock` is not copied or replaced, because its inode distinguishes a folder from a copy.

use std::fs::{self, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use anyhow::Result;
use fastrand::Rng;

/// Contents of the files of a folder, by name.
#[derive(Debug, Clone)]
pub(crate) struct Contents(Vec<(String, Vec<u8>)>);

impl Contents {
    /// Reads all files except the lock and the lease. Returns no files if the folder does not
    /// exist.
    pub(crate) fn read(folder: &Path) -> Result<Self> {
        let mut files = Vec::new();
        for path in files_of(folder)? {
            files.push((name_of(&path), fs::read(&path)?));
        }
        Ok(Self(files))
    }

    /// Replaces the content of a folder.
    pub(crate) fn put_back(&self, folder: &Path) -> Result<()> {
        for path in files_of(folder)? {
            fs::remove_file(path)?;
        }
        fs::create_dir_all(folder)?;
        for (name, bytes) in &self.0 {
            fs::write(folder.join(name), bytes)?;
        }
        Ok(())
    }
}

/// Bit of a file that was flipped.
#[derive(Debug)]
pub(crate) struct Flipped {
    pub(crate) file: String,
    offset: u64,
    bit: u8,
}

impl Flipped {
    /// Flips a random bit of a log file or of a snapshot that is not the oldest. Without the oldest
    /// one, the daemon rightly refuses to go as far back as Redis may do later. Returns `None` if
    /// there is no such file.
    pub(crate) fn at_random(folder: &Path, random: &mut Rng) -> Result<Option<Self>> {
        let mut files = files_of(folder)?;
        let oldest = files.iter().find(|path| is_snapshot(&name_of(path))).cloned();
        let is_kept = |name: &str| is_log(name) || is_snapshot(name);
        files.retain(|path| is_kept(&name_of(path)) && Some(path) != oldest.as_ref());
        if files.is_empty() {
            return Ok(None);
        }
        let path = &files[random.usize(0..files.len())];
        let length = fs::metadata(path)?.len();
        // At least half of the flips are in the first or the last 64 bytes of the file.
        let offset = match random.u8(0..4) {
            0 => random.u64(0..length.clamp(1, 64)),
            1 => length.saturating_sub(random.u64(1..=64)),
            _ => random.u64(0..length.max(1)),
        };
        let flipped = Self { file: name_of(path), offset, bit: 1 << random.u8(0..8) };
        flipped.flip(folder)?;
        Ok(Some(flipped))
    }

    /// Flips the bit back if the rest of the file is unchanged, except for appended bytes. A
    /// flipped bit that had no effect at the daemon's start could have an effect later, when the
    /// daemon goes back further.
    pub(crate) fn mend(&self, folder: &Path, right: &Contents) -> Result<()> {
        let Some((_, right)) = right.0.iter().find(|(name, _)| *name == self.file) else {
            return Ok(());
        };
        // The daemon may have deleted the file.
        let Ok(mut now) = fs::read(folder.join(&self.file)) else { return Ok(()) };
        if let Some(byte) = now.get_mut(usize::try_from(self.offset)?) {
            *byte ^= self.bit;
        }
        if now.starts_with(right) { self.flip(folder) } else { Ok(()) }
    }

    fn flip(&self, folder: &Path) -> Result<()> {
        let mut file = OpenOptions::new().read(true).write(true).open(folder.join(&self.file))?;
        let mut byte = [0];
        file.seek(SeekFrom::Start(self.offset))?;
        file.read_exact(&mut byte)?;
        byte[0] ^= self.bit;
        file.seek(SeekFrom::Start(self.offset))?;
        Ok(file.write_all(&byte)?)
    }
}

/// Cuts at most `most` bytes off the end of the log. Returns the name of the log file, if there is
/// one.
pub(crate) fn tear_log(folder: &Path, most: u64, random: &mut Rng) -> Result<Option<String>> {
    let mut files = files_of(folder)?;
    files.retain(|path| is_log(&name_of(path)));
    let Some(path) = files.last() else { return Ok(None) };
    let file = OpenOptions::new().write(true).open(path)?;
    let length = file.metadata()?.len();
    file.set_len(length.saturating_sub(random.u64(1..=most)))?;
    Ok(Some(name_of(path)))
}

/// Returns true if the folder has an unfinished snapshot.
pub(crate) fn has_unfinished_snapshot(folder: &Path) -> bool {
    let files = files_of(folder).unwrap_or_default();
    let is_unfinished = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "tmp");
    files.iter().any(|path| name_of(path).starts_with("snapshot") && is_unfinished(path))
}

/// Returns the files of a storage folder without lock and notes, ordered by name.
fn files_of(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let entry = entry?;
        let name = entry.file_name();
        // A file that was deleted meanwhile is skipped.
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        if is_file && name != "lock" && name != "notes" {
            paths.push(entry.path());
        }
    }
    paths.sort();
    Ok(paths)
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn is_log(name: &str) -> bool {
    name.starts_with("log-")
}

fn is_snapshot(name: &str) -> bool {
    name.starts_with("snapshot-")
}
