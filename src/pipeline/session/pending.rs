//! Requests of a session on its connection, and the effects of their replies.

use std::time::Duration;

use super::duties::Take;
use super::requests::Answered;
use super::{RunError, Session};

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
pub(super) const SINGLES: usize = 16;

impl Pending {
    /// Returns true if at most one request of this kind waits for its reply.
    pub(super) fn is_single(&self) -> bool {
        match self {
            Self::Claim | Self::Renewal | Self::Replicas => true,
            Self::Window | Self::Commit { .. } => false,
            Self::Duty { is_single, .. } => *is_single,
        }
    }

    /// Returns true if both requests are of the same kind, and of the same name if they are those
    /// of duties.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Duty { name, .. }, Self::Duty { name: other, .. }) => name == other,
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
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
                self.pipeline.queue.claimed(cursor);
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
                let have = protocol.waited(reply.into_value()?)?;
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
