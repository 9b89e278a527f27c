//! Transactions: commands between `MULTI` and `EXEC`. Many clients send a pipeline as a
//! transaction.

use bytes::Bytes;

use super::framing::Words;

/// Command as it was received.
pub(super) type Received = (Bytes, Words);

/// Commands that wait for `EXEC`.
#[derive(Debug)]
pub(super) struct Transaction {
    /// Commands that `EXEC` will run; `None` after a command was refused.
    pub(super) commands: Option<Vec<Received>>,
    bytes: usize,
}

impl Transaction {
    pub(super) fn new() -> Self {
        Self { commands: Some(Vec::new()), bytes: 0 }
    }

    /// Appends a command to the transaction. Returns false if all commands together have more than
    /// `most` bytes.
    pub(super) fn push(&mut self, command: Received, most: usize) -> bool {
        self.bytes += command.0.len();
        if self.bytes > most {
            self.commands = None;
        } else if let Some(commands) = &mut self.commands {
            commands.push(command);
        }
        self.bytes <= most
    }
}
