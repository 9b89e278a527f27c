//! What spiders want forgotten by way of a Redis list: read, asked of the threads like any other
//! question, and removed from the list once the log has it.

use std::time::SystemTime;

use tokio::sync::oneshot;
use tokio::time::{Duration, Instant};
use tracing::{info, warn};

use super::{Pending, RunError, Session};
use crate::crawl::protocol::Rejects;
use urlseen_core::redis::limits::Limits;
use urlseen_core::redis::reject::{self, Written};
use urlseen_engine::engine::query::Reply;
use urlseen_engine::engine::{Answer, Question, Wanted, Works};
use urlseen_engine::item::{Identity, Reader};

/// The time between two looks at the list.
pub(super) const FORGETS: Duration = Duration::from_secs(4);

/// How many are read at once.
const AT_ONCE: usize = 1000;

/// How long to wait where there is no room for more.
const FULL: Duration = Duration::from_secs(5);

/// How far the list is worked through.
#[derive(Debug, Default)]
pub(super) enum Forgetting {
    /// Nothing is under way.
    #[default]
    Idle,
    /// Redis was asked.
    Pending,
    /// The threads were.
    Answering { answer: oneshot::Receiver<Reply>, count: usize, rejects: Rejects },
    /// Nothing is asked before that, as there is no room.
    Full { until: Instant },
}

impl Forgetting {
    /// Whether something is being forgotten, or looked for.
    pub(super) fn is_under_way(&self) -> bool {
        matches!(self, Self::Pending | Self::Answering { .. })
    }
}

impl Session<'_> {
    /// Looks whether there is something to be forgotten, unless that is under way.
    pub(super) fn look_for_forgets(&mut self) {
        if matches!(self.forgetting, Forgetting::Full { .. }) {
            self.ask_for_forgets();
        } else if !self.forgetting.is_under_way()
            && self.pipeline.parts.shared.is_none()
            && !self.line.is_asking(&Pending::ForgetLength)
            && self.line.has_room()
        {
            let length = self.pipeline.parts.protocol.forget_length();
            self.line.ask(Pending::ForgetLength, &length);
        }
    }

    /// Asks for what is to be forgotten, unless that is under way.
    pub(super) fn ask_for_forgets(&mut self) {
        let is_free = match &self.forgetting {
            Forgetting::Full { until } => *until <= Instant::now(),
            other => !other.is_under_way(),
        };
        // Whoever ends begins nothing new.
        let is_ending = self.waiter.is_none();
        let is_here = self.pipeline.parts.shared.is_none();
        if is_free && is_here && !is_ending && self.line.has_room() {
            let forgets = self.pipeline.parts.protocol.forgets(&self.lease.token, AT_ONCE);
            self.line.ask(Pending::Forgets, &forgets);
            self.forgetting = Forgetting::Pending;
        }
    }

    /// Has the threads forget what Redis has.
    pub(super) fn forget(&mut self, items: &[Vec<u8>]) {
        self.forgetting = Forgetting::Idle;
        if items.is_empty() || self.waiter.is_none() || !self.pipeline.works.has_room_to_ask() {
            return;
        }
        let mut reader = Reader::new(self.pipeline.parts.forgets);
        let (mut questions, mut rejects) = (Vec::new(), Rejects::default());
        for (place, item) in items.iter().enumerate() {
            match reader.read(item).map(|read| read.identity) {
                Ok(Identity::Fingerprint(fingerprint)) => {
                    questions.push(Question { wanted: Wanted::Forget, fingerprint });
                }
                // It is never seen.
                Ok(Identity::Unfiltered) => {}
                Err(reason) => {
                    // Every server takes so much: what breaks connections is not found here.
                    let Written { json, is_oversize } =
                        reject::write(item, &reason, SystemTime::now(), Limits::LEAST);
                    if is_oversize {
                        rejects.oversize.push((place, json));
                    } else {
                        rejects.whole.push(json);
                    }
                }
            }
        }
        if !rejects.is_empty() {
            warn!("{} items to be forgotten cannot be read; they are rejected", rejects.len());
        }
        let Works { dispatcher, engine, .. } = &mut self.pipeline.works;
        let answer = dispatcher.put(questions, engine);
        self.forgetting = Forgetting::Answering { answer, count: items.len(), rejects };
    }

    /// The threads have forgotten it, and it is in the log: so it goes from the list.
    pub(super) fn forgot(&mut self, reply: &Reply) {
        let Forgetting::Answering { count, rejects, .. } = std::mem::take(&mut self.forgetting)
        else {
            return;
        };
        if reply.answers.contains(&Answer::Full) {
            warn!(
                "as many fingerprints are forgotten as forget.max_len allows: the rest waits until \
                 some of them have passed again"
            );
            self.forgetting = Forgetting::Full { until: Instant::now() + FULL };
            return;
        }
        let seen = reply.answers.iter().filter(|&&answer| answer == Answer::Seen).count();
        info!("{seen} fingerprints are to pass once more");
        let done = self.pipeline.parts.protocol.forgotten(&self.lease.token, count, &rejects);
        self.line.ask(Pending::Forgotten, &done);
        self.forgetting = Forgetting::Pending;
    }

    /// Waits until what the threads were asked to forget is done with.
    pub(super) async fn finish_forgetting(&mut self) -> Result<(), RunError> {
        if matches!(self.forgetting, Forgetting::Answering { .. }) {
            self.pipeline.answer_all(Some(&mut self.queue)).await?;
            if let Some(reply) = answered(&mut self.forgetting).await {
                self.forgot(&reply);
            }
        }
        Ok(())
    }

    /// They are gone from the list; there may be more.
    pub(super) fn removed(&mut self, reply: redis::Value) -> Result<(), RunError> {
        self.pipeline.parts.protocol.done(reply)?;
        self.forgetting = Forgetting::Idle;
        self.ask_for_forgets();
        Ok(())
    }
}

/// The threads' answer, if they were asked.
pub(super) async fn answered(forgetting: &mut Forgetting) -> Option<Reply> {
    match forgetting {
        Forgetting::Answering { answer, .. } => answer.await.ok(),
        _ => std::future::pending().await,
    }
}
