//! Transactions: commands between `MULTI` and `EXEC`. Clients send their pipelines as such.

use bytes::Bytes;

use super::framing::Words;

/// Command as it was received.
pub(super) type Received = (Bytes, Words);

/// Commands that wait for `EXEC`.
#[derive(Debug, Default)]
pub(super) struct Transaction {
    commands: Vec<Received>,
    bytes: usize,
    is_broken: bool,
}

impl Transaction {
    /// Adds a command, if all commands together have at most `most` bytes.
    pub(super) fn push(&mut self, command: Received, most: usize) -> bool {
        self.bytes += command.0.len();
        let fits = self.bytes <= most;
        if fits {
            self.commands.push(command);
        } else {
            self.fail();
        }
        fits
    }

    /// Marks the transaction as failed, because one of its commands was refused.
    pub(super) fn fail(&mut self) {
        self.is_broken = true;
        self.commands = Vec::new();
    }

    /// Commands to run; `None` if one of them was refused.
    pub(super) fn commands(self) -> Option<Vec<Received>> {
        (!self.is_broken).then_some(self.commands)
    }
}
