//! Requests of a session on its connection, and the effects of their replies.

use std::time::Duration;

use super::line::Answered;
use super::{RunError, Session};
use crate::crawl::protocol::Cursor;
use crate::pipeline::HeldStatus;
use urlseen_core::redis::held::Stopped;
use urlseen_core::redis_filter::opening::Sample;
use urlseen_core::storage::Moment;

/// Request that waits for its reply.
#[derive(Debug)]
pub enum Pending {
    Claim,
    Window { after: Cursor, items: u64 },
    Commit { is_transaction: bool },
    Renewal,
    SourceLength,
    SinkLength,
    RejectedLength,
    Persistence { asked: Moment },
    ForgetLength,
    Forgets,
    Forgotten,
    Fill(Sample),
    Consumers,
    Held { consumers: u64 },
    Requeued(Stopped),
    HeldRejected,
    Replicas,
}

/// Number of the kinds of requests of which at most one waits: see [`Pending::is_single`].
pub(super) const SINGLES: usize = 12;

impl Pending {
    /// Returns true if at most one request of this kind waits for its reply.
    pub(super) fn is_single(&self) -> bool {
        match self {
            Self::Claim
            | Self::Renewal
            | Self::SourceLength
            | Self::SinkLength
            | Self::RejectedLength
            | Self::Persistence { .. }
            | Self::ForgetLength
            | Self::Forgets
            | Self::Forgotten
            | Self::Consumers
            | Self::Held { .. }
            | Self::Replicas => true,
            Self::Window { .. }
            | Self::Commit { .. }
            | Self::Fill(_)
            | Self::Requeued(_)
            | Self::HeldRejected => false,
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
                    self.pipeline.board.note_source(0);
                }
                self.intake.claimed(cursor);
                self.pipeline.queue.claimed(cursor);
                self.pipeline.backoff.reset();
            }
            Pending::Window { after, items: wanted } => {
                let items = protocol.items(reply, after, wanted)?;
                self.read(items);
            }
            Pending::Commit { is_transaction } => {
                let committed = protocol.committed(reply.into_value()?, is_transaction)?;
                self.commit_answered(committed);
            }
            Pending::Renewal => {
                protocol.done(reply.into_value()?)?;
                self.lease.renewed();
            }
            Pending::SourceLength => {
                let waiting = protocol.length(reply.into_value()?)?;
                self.pipeline.board.note_source(waiting);
            }
            Pending::SinkLength => self.pressure.sink = protocol.length(reply.into_value()?)?,
            Pending::RejectedLength => {
                self.pressure.rejected = protocol.length(reply.into_value()?)?;
            }
            Pending::Persistence { asked } => {
                let info = protocol.info(reply.into_value()?)?;
                self.note_persistence(info, asked);
            }
            Pending::ForgetLength => {
                if protocol.length(reply.into_value()?)? > 0 {
                    self.ask_for_forgets();
                }
            }
            Pending::Forgets => {
                let items = protocol.to_forget(reply.into_value()?)?;
                self.forget(&items);
            }
            Pending::Forgotten => self.removed(reply.into_value()?)?,
            Pending::Consumers => self.note_consumers(reply.into_value()?)?,
            Pending::Requeued(stopped) => self.requeued(&stopped, reply.into_value()?)?,
            Pending::Held { consumers } => {
                let requests = protocol.length(reply.into_value()?)?;
                self.pipeline.board.now.status.held = Some(HeldStatus { consumers, requests });
            }
            Pending::HeldRejected => drop(reply.into_value()?),
            Pending::Replicas => {
                let have = protocol.waited(reply.into_value()?)?;
                self.replicas_answered(have);
            }
            Pending::Fill(sample) => {
                let answer = reply.into_value()?;
                self.pipeline.filter.note_fill(sample, answer);
            }
        }
        Ok(())
    }

    /// Counts the time that Redis took for a request.
    fn note_time(&mut self, pending: &Pending, took: Duration) {
        let times = &mut self.pipeline.board.now.status.times;
        match pending {
            Pending::Commit { .. } => times.commit.observe(took),
            // Redis answers this request when the replicas have answered.
            Pending::Replicas => {}
            _ => times.round_trip.observe(took),
        }
    }

    /// If a snapshot is due, asks Redis for the oldest state to which Redis may return.
    pub(super) fn ask_for_snapshot(&mut self) {
        if self.pipeline.filter.snapshots.is_due {
            self.ask_for_persistence();
        }
    }

    /// Asks Redis for the oldest state to which Redis may return, if there is a storage folder.
    pub(super) fn ask_for_persistence(&mut self) {
        let pending = Pending::Persistence { asked: Moment::now() };
        if self.pipeline.filter.works.storage.is_some()
            && self.saves.is_none()
            && !self.line.is_asking(&pending)
        {
            let persistence = self.pipeline.parts.protocol.persistence();
            self.line.ask(pending, &persistence);
        }
    }
}
