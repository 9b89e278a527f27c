//! Commands between `MULTI` and `EXEC`: clients send their pipelines so.

use bytes::Bytes;

use super::framing::Words;

/// A command as it was received.
pub(super) type Received = (Bytes, Words);

/// Commands that wait for `EXEC`.
#[derive(Debug, Default)]
pub(super) struct Transaction {
    commands: Vec<Received>,
    bytes: usize,
    is_broken: bool,
}

impl Transaction {
    /// Takes a command, if all of them together have at most so many bytes.
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

    /// One of the commands was refused, so none of them is to be carried out.
    pub(super) fn fail(&mut self) {
        self.is_broken = true;
        self.commands = Vec::new();
    }

    /// What is to be carried out; `None` if that is nothing because something was refused.
    pub(super) fn commands(self) -> Option<Vec<Received>> {
        (!self.is_broken).then_some(self.commands)
    }
}
