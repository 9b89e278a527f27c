//! Reclaiming: requeues the requests that stopped consumers held.

use redis::{Cmd, Value};
use tokio::time::Instant;
use tracing::{info, warn};

use super::{RunError, Session};
use crate::report::HeldStatus;
use urlseen_redis::error::LinkError;
use urlseen_redis::protocol::{HeldCalls, Requeued, Stopped, value};

impl Session<'_> {
    /// Asks for the heartbeats of all consumers.
    pub(super) fn look_for_stopped_consumers(&mut self) {
        let consumers = Cmd::hgetall(&self.pipeline.parts.protocol.held.keys.consumers);
        self.ask("consumers", &consumers, |session, reply| {
            let heartbeats = HeldCalls::heartbeats(reply).map_err(LinkError::from)?;
            session.note_consumers(heartbeats);
            Ok(())
        });
    }

    /// Requeues the held requests of stopped consumers, as long as the connection has room for
    /// commands. The next check finds the remaining consumers again.
    fn note_consumers(&mut self, heartbeats: Vec<(String, String)>) {
        self.count_held(heartbeats.iter().map(|(consumer, _)| consumer.as_str()));
        for stopped in self.reclaimer.observe(heartbeats, Instant::now().into_std()) {
            if !self.requests.has_room() {
                break;
            }
            let Stopped { consumer, heartbeat } = &stopped;
            let held = &self.pipeline.parts.protocol.held;
            let requeue = held.requeue(consumer, heartbeat, &[]).by_text();
            self.ask_also("requeue", &requeue, move |session, reply| {
                session.requeued(&stopped, reply)
            });
        }
    }

    /// Asks for the number of requests that these consumers hold.
    fn count_held<'c>(&mut self, consumers: impl ExactSizeIterator<Item = &'c str>) {
        let number = consumers.len() as u64;
        if number == 0 {
            self.pipeline.reporter.now.status.held = Some(HeldStatus::default());
            return;
        }
        let length = self.pipeline.parts.protocol.held.held_length(consumers).by_text();
        self.ask("held requests", &length, move |session, reply| {
            let requests = value("a length", reply)?;
            session.pipeline.reporter.now.status.held =
                Some(HeldStatus { consumers: number, requests });
            Ok(())
        });
    }

    /// Processes the reply to a requeue. Moves requests that were delivered too often to the
    /// rejects.
    fn requeued(&mut self, stopped: &Stopped, reply: Value) -> Result<(), RunError> {
        let requeued = HeldCalls::requeued(reply).map_err(LinkError::from)?;
        if let Some(words) = self.pipeline.parts.protocol.held.foreign(stopped, &requeued) {
            warn!("{words}");
        }
        let Requeued::Done { put_back, too_often } = requeued else { return Ok(()) };
        let consumer = &stopped.consumer;
        if put_back > 0 {
            info!(
                "the consumer {consumer:?} has stopped: {put_back} of its requests are in the sink \
                 again"
            );
        }
        for too_often in too_often {
            if !self.requests.has_room() {
                break;
            }
            let reason = too_often.reason(consumer);
            warn!("a request of the consumer {consumer:?} is rejected: {reason}");
            let held = &self.pipeline.parts.protocol.held;
            let reject = held.reject_too_often(consumer, &too_often).by_text();
            self.ask_also("reject of a held request", &reject, |_, _| Ok(()));
        }
        Ok(())
    }
}
