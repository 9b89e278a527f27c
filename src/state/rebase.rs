//! Replacing all that a folder remembers by one snapshot.

use std::io;

use crate::filter::{Count, ShardId};
use crate::head::Position;

/// Writes the filter that a folder is to remember instead of all that it does.
#[derive(Debug)]
pub struct Rebase {}

impl Rebase {
    /// Where the filter stands.
    pub fn position(&self) -> Position {
        todo!()
    }

    /// Writes a shard, in order; one without bits may have no bytes.
    pub fn write(&mut self, shard: ShardId, count: Count, bytes: &[u8]) -> io::Result<()> {
        todo!()
    }

    /// Puts it in the place of everything else. What is to be handed to
    /// [`Folder::journal`](super::Folder::journal).
    ///
    /// # Panics
    /// If a shard was not written.
    pub fn finish(self) -> io::Result<Position> {
        todo!()
    }
}
