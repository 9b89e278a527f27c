//! Connection of a session, and the requests that wait for replies on it.

use std::collections::VecDeque;
use std::time::Instant;

use redis::{Cmd, Value};

use super::Pending;
use super::pending::SINGLES;
use urlseen_core::redis::error::LinkError;
use urlseen_core::redis::link::{Link, Reply, WAITING_MAX};
use urlseen_core::redis::packed::Packed;

/// Maximum number of waiting requests of the kinds of which several may wait. The connection keeps
/// its other places for the other kinds, so that a renewal of the lease always has a place.
const SEVERAL_MAX: usize = WAITING_MAX - SINGLES;

/// A connection for requests.
pub(super) struct Requests {
    link: Link,
    /// Requests that wait for their replies, oldest first, with the times at which they were sent.
    pending: VecDeque<(Pending, Instant)>,
}

/// Reply of the server, with the request that it answers.
pub(super) struct Answered {
    pub(super) pending: Pending,
    pub(super) reply: Reply,
    /// Time at which the request was sent.
    pub(super) sent: Instant,
}

impl Requests {
    pub(super) fn new(link: Link) -> Self {
        Self { link, pending: VecDeque::new() }
    }

    /// Returns true if a request may be sent now whose kind is not [single](Pending::is_single).
    pub(super) fn has_room(&self) -> bool {
        self.iter().filter(|pending| !pending.is_single()).count() < SEVERAL_MAX
    }

    /// Returns true if all requests are answered.
    pub(super) fn is_idle(&self) -> bool {
        self.pending.is_empty()
    }

    /// Returns true if a request of this kind waits for its reply.
    pub(super) fn is_asking(&self, kind: &Pending) -> bool {
        self.iter().any(|pending| pending.is_like(kind))
    }

    /// Returns true if a request of a duty with this name waits for its reply.
    pub(super) fn is_asking_for(&self, wanted: &str) -> bool {
        self.iter().any(|it| matches!(it, Pending::Duty { name, .. } if *name == wanted))
    }

    /// Sends a request. Does nothing if the kind is [single](Pending::is_single) and such a request
    /// waits, so that requests to a slow server do not pile up. Other kinds need
    /// [room](Requests::has_room).
    pub(super) fn ask(&mut self, pending: Pending, command: &Cmd) {
        if pending.is_single() && self.is_asking(&pending) {
            return;
        }
        let singles = self.iter().filter(|it| it.is_single()).count();
        debug_assert!(!pending.is_single() || singles < SINGLES, "SINGLES is too small");
        self.pending.push_back((pending, Instant::now()));
        self.link.send(command);
    }

    pub(super) fn ask_transaction(&mut self, pending: Pending, push: &[Packed], script: &Cmd) {
        self.pending.push_back((pending, Instant::now()));
        self.link.send_transaction(push, script);
    }

    /// Returns the next reply, which may be a refusal, and the request that it answers. If the
    /// future is dropped, the next call returns the same reply.
    pub(super) async fn answer(&mut self) -> Result<Answered, LinkError> {
        loop {
            let reply = self.link.next_reply().await?;
            // The server sends no reply without a request.
            if let Some((pending, sent)) = self.pending.pop_front() {
                return Ok(Answered { pending, reply, sent });
            }
        }
    }

    fn iter(&self) -> impl Iterator<Item = &Pending> {
        self.pending.iter().map(|(pending, _)| pending)
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Fails if requests such as requeues of stopped consumers take the places of renewals.
    #[tokio::test]
    async fn a_full_line_has_a_place_for_each_single_request() {
        let (ours, _theirs) = tokio::io::duplex(64);
        let mut requests = Requests::new(Link::over(ours, Duration::from_secs(1)));
        let ping = redis::cmd("PING");
        let duty =
            |name, is_single| Pending::Duty { name, is_single, take: Box::new(|_, _| Ok(())) };
        while requests.has_room() {
            requests.ask(duty("several", false), &ping);
        }
        for _ in 0..2 {
            for name in ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n"] {
                requests.ask(duty(name, true), &ping);
            }
            requests.ask(Pending::Claim, &ping);
            requests.ask(Pending::Renewal, &ping);
        }
        assert_eq!(requests.pending.len(), WAITING_MAX);
    }
}
