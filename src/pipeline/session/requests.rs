//! Requests of a session on its connection, and the effects of their replies.

use std::collections::VecDeque;
use std::time::Instant;

use redis::Cmd;

use super::{RunError, Session};
use urlseen_redis::error::LinkError;
use urlseen_redis::link::{Link, Reply, WAITING_MAX};
use urlseen_redis::packed::Packed;

/// Change of a session by the reply to a request that was sent at this time.
pub(super) type Take =
    Box<dyn FnOnce(&mut Session<'_>, Reply, Instant) -> Result<(), RunError> + Send>;

/// Request that waits for its reply.
pub(super) struct Pending {
    name: &'static str,
    /// True if at most one request of this name waits.
    is_single: bool,
    sent: Instant,
    take: Take,
}

/// Names of the commits, and of the question how many replicas have them.
pub(super) const COMMIT: &str = "commit";
pub(super) const REPLICAS: &str = "replicas";

/// Maximum number of names of which at most one request waits. It may be more than there are.
const SINGLES: usize = 16;

/// Maximum number of waiting requests of the names of which several may wait. The connection keeps
/// its other places for the other names, so that a renewal of the lease always has a place.
const SEVERAL_MAX: usize = WAITING_MAX - SINGLES;

/// A connection for requests.
pub(super) struct Requests {
    /// The connection. Its user may call it directly while no request is pending.
    pub(super) link: Link,
    /// Requests that wait for their replies, oldest first.
    pub(super) pending: VecDeque<Pending>,
}

impl Requests {
    pub(super) fn new(link: Link) -> Self {
        Self { link, pending: VecDeque::new() }
    }

    /// Returns true if a request may be sent now of whose name several may wait.
    pub(super) fn has_room(&self) -> bool {
        self.pending.iter().filter(|pending| !pending.is_single).count() < SEVERAL_MAX
    }

    /// Returns true if a request of this name waits for its reply.
    pub(super) fn is_asking(&self, name: &str) -> bool {
        self.pending.iter().any(|pending| pending.name == name)
    }

    /// Sends a request, unless one of this name waits for its reply. So requests to a slow server
    /// do not pile up.
    pub(super) fn ask_once(&mut self, name: &'static str, command: &Cmd, take: Take) {
        if self.is_asking(name) {
            return;
        }
        let singles = self.pending.iter().filter(|it| it.is_single).count();
        debug_assert!(singles < SINGLES, "SINGLES is too small");
        self.pending.push_back(Pending { name, is_single: true, sent: Instant::now(), take });
        self.link.send(command);
    }

    /// Sends a request beside others of this name. There must be [room](Requests::has_room).
    pub(super) fn ask(&mut self, name: &'static str, command: &Cmd, take: Take) {
        self.pending.push_back(Pending { name, is_single: false, sent: Instant::now(), take });
        self.link.send(command);
    }

    /// Sends a transaction like [`Requests::ask`].
    pub(super) fn ask_transaction(
        &mut self,
        name: &'static str,
        push: &[Packed],
        script: &Cmd,
        take: Take,
    ) {
        self.pending.push_back(Pending { name, is_single: false, sent: Instant::now(), take });
        self.link.send_transaction(push, script);
    }

    /// Returns the next reply, which may be a refusal, and the request that it answers. If the
    /// future is dropped, the next call returns the same reply.
    pub(super) async fn answer(&mut self) -> Result<(Pending, Reply), LinkError> {
        loop {
            let reply = self.link.next_reply().await?;
            // The server sends no reply without a request.
            if let Some(pending) = self.pending.pop_front() {
                return Ok((pending, reply));
            }
        }
    }
}

impl Session<'_> {
    /// Processes the reply to a request, and counts the time that Redis took for it.
    pub(super) fn take_note(&mut self, (pending, reply): (Pending, Reply)) -> Result<(), RunError> {
        let Pending { name, sent, take, .. } = pending;
        let times = &mut self.pipeline.reporter.now.status.times;
        match name {
            COMMIT => times.commit.observe(sent.elapsed()),
            // Redis answers this request when the replicas have answered.
            REPLICAS => {}
            _ => times.round_trip.observe(sent.elapsed()),
        }
        take(self, reply, sent)
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
        let take = || -> Take { Box::new(|_, _, _| Ok(())) };
        while requests.has_room() {
            requests.ask("several", &ping, take());
        }
        for _ in 0..2 {
            let names = "a b c d e f g h i j k l m n o p".split(' ');
            names.for_each(|name| requests.ask_once(name, &ping, take()));
        }
        assert_eq!(requests.pending.len(), WAITING_MAX);
    }
}
