//! Notes: the small files `ages`, `imports`, `lease` and `timing`, beside log and snapshots.
//!
//! A note has a line of JSON, and a line with the CRC-32C of the first line in hex. Reading a
//! missing or damaged note returns `None`.

use std::io;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::dir::{Dir, aside};

/// Reads the note called `name`.
pub(super) fn read<T: DeserializeOwned>(dir: &Dir, name: &str) -> Option<T> {
    let bytes = dir.read(name).ok()??;
    let end = memchr::memchr(b'\n', &bytes)? + 1;
    let (content, crc) = bytes.split_at(end);
    (crc == crc_line(content).as_bytes()).then(|| serde_json::from_slice(content).ok())?
}

/// Writes a note, and replaces an earlier note of this name.
pub(super) fn write(dir: &Dir, name: &str, note: &impl Serialize) -> io::Result<()> {
    let mut bytes = serde_json::to_vec(note)?;
    bytes.push(b'\n');
    bytes.extend(crc_line(&bytes).into_bytes());
    dir.write_aside(name, &bytes).and_then(|()| dir.replace(name)).inspect_err(|_| {
        // If the disk is full, the half-written file must not occupy the last free space.
        let _ = dir.remove(&aside(name));
    })
}

fn crc_line(content: &[u8]) -> String {
    format!("{:08x}\n", crc32c::crc32c(content))
}
