//! Requests of a session on its connection, and the effects of their replies.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use redis::Cmd;

use super::duties::Take;
use super::{RunError, Session};
use urlseen_redis::error::LinkError;
use urlseen_redis::link::{Link, Reply, WAITING_MAX};
use urlseen_redis::packed::Packed;
use urlseen_redis::protocol::value;

/// Request that waits for its reply.
pub(super) enum Pending {
    Claim,
    Window,
    Commit {
        is_transaction: bool,
    },
    Renewal,
    Replicas,
    /// Request of a duty. At most one of this name waits if it `is_single`.
    Duty {
        name: &'static str,
        is_single: bool,
        take: Take,
    },
}

/// Maximum number of kinds of which at most one request waits: see [`Pending::is_single`]. It may
/// be more than there are.
const SINGLES: usize = 16;

impl Pending {
    /// Returns true if at most one request of this kind waits for its reply.
    fn is_single(&self) -> bool {
        match self {
            Self::Claim | Self::Renewal | Self::Replicas => true,
            Self::Window | Self::Commit { .. } => false,
            Self::Duty { is_single, .. } => *is_single,
        }
    }

    /// Returns true if both requests are of the same kind, and of the same name if they are those
    /// of duties.
    fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Duty { name, .. }, Self::Duty { name: other, .. }) => name == other,
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }
}

/// Maximum number of waiting requests of the kinds of which several may wait. The connection keeps
/// its other places for the other kinds, so that a renewal of the lease always has a place.
const SEVERAL_MAX: usize = WAITING_MAX - SINGLES;

/// A connection for requests.
pub(super) struct Requests {
    /// The connection. Its user may call it directly while no request is pending.
    pub(super) link: Link,
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
}

impl Session<'_> {
    /// Processes the reply to a request.
    pub(super) fn take_note(&mut self, answered: Answered) -> Result<(), RunError> {
        let Answered { pending, reply, sent } = answered;
        self.note_time(&pending, sent.elapsed());
        let protocol = &self.pipeline.parts.protocol;
        match pending {
            Pending::Claim => {
                let cursor = protocol.claimed(reply.into_value()?)?;
                if protocol.claims_all(cursor) {
                    self.pipeline.arrivals.claimed(sent);
                    self.pipeline.reporter.note_source(0);
                }
                self.intake.claimed(cursor);
                self.pipeline.queue.cursor = cursor;
                self.pipeline.backoff.reset();
            }
            Pending::Window => {
                let (after, wanted) = self.intake.next_answer();
                let items = protocol.items(reply.checked()?, after, wanted)?;
                self.intake.read(items);
            }
            Pending::Commit { is_transaction } => {
                let committed = protocol.committed(reply.into_value()?, is_transaction)?;
                self.commit_answered(committed);
            }
            Pending::Renewal => {
                protocol.done(reply.into_value()?)?;
                self.lease.renewed();
            }
            // Only the replicas can acknowledge a commit. So if Redis refuses this request, the
            // session ends, as if Redis had refused the commit itself.
            Pending::Replicas => {
                let have = value("WAIT", reply.into_value()?)?;
                self.replicas_answered(have);
            }
            Pending::Duty { name, take, .. } => self.duty_answered(name, take, reply)?,
        }
        Ok(())
    }

    /// Counts the time that Redis took for a request.
    fn note_time(&mut self, pending: &Pending, took: Duration) {
        let times = &mut self.pipeline.reporter.now.status.times;
        match pending {
            Pending::Commit { .. } => times.commit.observe(took),
            // Redis answers this request when the replicas have answered.
            Pending::Replicas => {}
            _ => times.round_trip.observe(took),
        }
    }
}

#[cfg(test)]
mod tests {
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
