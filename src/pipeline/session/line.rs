//! The connection of a session, and what each reply on it will be the answer to.

use std::collections::VecDeque;

use redis::{Cmd, Value};

use super::Pending;
use urlseen_core::redis::error::LinkError;
use urlseen_core::redis::link::{Link, Reply};
use urlseen_core::redis::packed::Packed;

/// A connection on which questions are asked.
pub(super) struct Line {
    link: Link,
    /// Those that wait for their replies, oldest first.
    pending: VecDeque<Pending>,
}

impl Line {
    pub(super) fn new(link: Link) -> Self {
        Self { link, pending: VecDeque::new() }
    }

    /// Whether another question may be asked now.
    pub(super) fn has_room(&self) -> bool {
        self.link.has_room()
    }

    /// Whether all questions are answered.
    pub(super) fn is_idle(&self) -> bool {
        self.pending.is_empty()
    }

    /// Whether a question of this kind still waits for its reply. Those asked by the clock are not
    /// asked again then: a server that does not answer must not be asked more and more.
    pub(super) fn is_asking(&self, kind: &Pending) -> bool {
        self.pending
            .iter()
            .any(|pending| std::mem::discriminant(pending) == std::mem::discriminant(kind))
    }

    /// Whether it is asked how full a key of the filter is.
    pub(super) fn is_filling(&self) -> bool {
        self.pending.iter().any(|pending| matches!(pending, Pending::Fill(_)))
    }

    pub(super) fn ask(&mut self, pending: Pending, command: &Cmd) {
        self.pending.push_back(pending);
        self.link.send(command);
    }

    pub(super) fn ask_transaction(&mut self, pending: Pending, push: &[Packed], script: &Cmd) {
        self.pending.push_back(pending);
        self.link.send_transaction(push, script);
    }

    /// The next reply, and the question that it answers. Nothing is lost when the future is
    /// dropped.
    pub(super) async fn answer(&mut self) -> Result<(Pending, Reply), LinkError> {
        loop {
            let reply = self.link.receive().await?;
            // A reply comes to a question only.
            if let Some(pending) = self.pending.pop_front() {
                return Ok((pending, reply));
            }
        }
    }

    /// Asks a question and waits for its reply, where no other waits.
    pub(super) async fn call(&mut self, command: &Cmd) -> Result<Value, LinkError> {
        self.link.call(command).await
    }

    /// The connection, where no question waits for its reply.
    pub(super) fn link(&mut self) -> &mut Link {
        &mut self.link
    }
}
