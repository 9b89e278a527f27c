//! Connection of a session, and the requests that wait for replies on it.

use std::collections::VecDeque;

use redis::{Cmd, Value};

use super::Pending;
use urlseen_core::redis::error::LinkError;
use urlseen_core::redis::link::{Link, Reply};
use urlseen_core::redis::packed::Packed;

/// A connection for requests.
pub(super) struct Line {
    link: Link,
    /// Requests that wait for their replies, oldest first.
    pending: VecDeque<Pending>,
}

impl Line {
    pub(super) fn new(link: Link) -> Self {
        Self { link, pending: VecDeque::new() }
    }

    /// Returns true if another request may be sent now.
    pub(super) fn has_room(&self) -> bool {
        self.link.has_room()
    }

    /// Returns true if all requests are answered.
    pub(super) fn is_idle(&self) -> bool {
        self.pending.is_empty()
    }

    /// Returns true if a request of this kind waits for its reply. Then a periodic request is not
    /// repeated, so that requests to a slow server do not pile up.
    pub(super) fn is_asking(&self, kind: &Pending) -> bool {
        self.pending
            .iter()
            .any(|pending| std::mem::discriminant(pending) == std::mem::discriminant(kind))
    }

    /// Returns true if a request for the filter's fill waits for its reply.
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

    /// Returns the next reply, and the request that it answers. If the future is dropped, the next
    /// call returns the same reply.
    pub(super) async fn answer(&mut self) -> Result<(Pending, Reply), LinkError> {
        loop {
            let reply = self.link.receive().await?;
            // The server sends no reply without a request.
            if let Some(pending) = self.pending.pop_front() {
                return Ok((pending, reply));
            }
        }
    }

    /// Sends a request and waits for its reply. No other request may be pending.
    pub(super) async fn call(&mut self, command: &Cmd) -> Result<Value, LinkError> {
        self.link.call(command).await
    }

    /// Returns the connection. No request may be pending.
    pub(super) fn link(&mut self) -> &mut Link {
        &mut self.link
    }
}
