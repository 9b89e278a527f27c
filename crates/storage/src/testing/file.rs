//! Files of the simulated disk.

use std::io;

use super::SimDisk;
use crate::disk::{DiskFile, Lock};

/// Bytes that the disk writes at once.
const BLOCK: usize = 64;

const SMALL: &str = "files of tests are small";

#[derive(Debug, Clone, Default)]
pub(super) struct FileContents {
    pub(super) bytes: Vec<u8>,
    pub(super) durable: Vec<u8>,
    /// True after a failed sync: no data reaches the platter any more, even if a later sync
    /// succeeds.
    pub(super) is_lost: bool,
}

/// Open file of a simulated disk.
#[derive(Debug)]
pub(super) struct SimFile {
    pub(super) disk: SimDisk,
    pub(super) inode: u64,
    pub(super) lock: Option<Lock>,
}

impl FileContents {
    /// Returns content that may be left after a loss of power.
    pub(super) fn survivor(&self, below: &mut dyn FnMut(usize) -> usize) -> Vec<u8> {
        let (now, then) = (&self.bytes, &self.durable);
        let same = now.iter().zip(then).take_while(|(a, b)| a == b).count();
        let (short, long) = (now.len().min(then.len()), now.len().max(then.len()));
        // No write changes bytes in place, so the two versions differ only at the end.
        let len = match below(3) {
            0 => then.len(),
            1 => now.len(),
            _ => short + below(long - short + 1),
        };
        let source = if now.len() > same { now } else { then };
        let mut bytes = vec![0; len];
        for start in (0..len).step_by(BLOCK) {
            let end = (start + BLOCK).min(len);
            let is_there = below(4) > 0;
            for (at, byte) in (start..end).zip(&mut bytes[start..end]) {
                if at < same || is_there {
                    *byte = source.get(at).copied().unwrap_or_default();
                }
            }
        }
        bytes
    }
}

impl DiskFile for SimFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let state = self.disk.state();
        let bytes = &state.files[&self.inode].bytes;
        let rest = &bytes[bytes.len().min(usize::try_from(offset).expect(SMALL))..];
        // Reads at most 3000 bytes, so that callers must read repeatedly.
        let len = rest.len().min(buffer.len()).min(3000);
        buffer[..len].copy_from_slice(&rest[..len]);
        Ok(len)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.disk.state().files[&self.inode].bytes.len() as u64)
    }

    fn append(&self, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.disk.state();
        let done = state.step();
        let contents = state.contents(self.inode);
        match done {
            Ok(()) => contents.bytes.extend(bytes),
            Err((true, _)) => contents.bytes.extend(&bytes[..bytes.len() / 2]),
            Err(_) => {}
        }
        done.map_err(|(_, error)| error)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut state = self.disk.state();
        state.roomless()?;
        let contents = state.contents(self.inode);
        contents.bytes.truncate(usize::try_from(len).expect(SMALL));
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.disk.state();
        let done = state.roomless();
        let contents = state.contents(self.inode);
        contents.is_lost |= done.is_err();
        if !contents.is_lost {
            contents.durable.clone_from(&contents.bytes);
        }
        done
    }

    fn inode(&self) -> io::Result<u64> {
        Ok(self.inode)
    }
}

impl Drop for SimFile {
    fn drop(&mut self) {
        if let Some(lock) = self.lock {
            *self.disk.state().locks.entry(self.inode).or_default() +=
                if lock == Lock::Shared { -1 } else { 1 };
        }
    }
}
