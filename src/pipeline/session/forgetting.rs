//! Keys that spiders want forgotten by way of a Redis list. They are read, asked of the threads as
//! any other query, and removed from the list once the log has them.

use std::time::SystemTime;

use tokio::sync::oneshot;
use tokio::time::{Duration, Instant};
use tracing::{info, warn};

use super::{Pending, RunError, Session};
use crate::crawl::protocol::Rejects;
use urlseen_core::redis::limits::Limits;
use urlseen_core::redis::reject;
use urlseen_engine::engine::query::Reply;
use urlseen_engine::engine::{Answer, Question, Wanted, Works};
use urlseen_engine::item::{Identity, Reader};

/// Time between two looks at the list.
pub(super) const FORGETS: Duration = Duration::from_secs(4);

/// Entries of the list that are read at once.
const AT_ONCE: usize = 1000;

/// Time to wait if there is no room for more tombstones.
const FULL: Duration = Duration::from_secs(5);

/// Progress with the list.
#[derive(Debug, Default)]
pub(super) enum Forgetting {
    /// State without a question.
    #[default]
    Idle,
    /// Redis was asked for the list.
    Pending,
    /// The threads were asked to forget.
    Answering { answer: oneshot::Receiver<Reply>, count: usize, rejects: Rejects },
    /// There is no room, and nothing is asked before `until`.
    Full { until: Instant },
}

impl Forgetting {
    /// Returns true if keys are being forgotten, or looked for.
    pub(super) fn is_under_way(&self) -> bool {
        matches!(self, Self::Pending | Self::Answering { .. })
    }
}

impl Session<'_> {
    /// Looks for keys to be forgotten, unless that is under way.
    pub(super) fn look_for_forgets(&mut self) {
        if matches!(self.forgetting, Forgetting::Full { .. }) {
            self.ask_for_forgets();
        } else if !self.forgetting.is_under_way()
            && self.pipeline.filter.shared.is_none()
            && !self.line.is_asking(&Pending::ForgetLength)
            && self.line.has_room()
        {
            let length = self.pipeline.parts.protocol.forget_length();
            self.line.ask(Pending::ForgetLength, &length);
        }
    }

    /// Asks for the keys to be forgotten, unless that is under way.
    pub(super) fn ask_for_forgets(&mut self) {
        let is_free = match &self.forgetting {
            Forgetting::Full { until } => *until <= Instant::now(),
            other => !other.is_under_way(),
        };
        // A session that ends begins nothing new.
        let is_ending = self.intake.is_ending();
        let is_here = self.pipeline.filter.shared.is_none();
        if is_free && is_here && !is_ending && self.line.has_room() {
            let forgets = self.pipeline.parts.protocol.forgets(&self.lease.token, AT_ONCE);
            self.line.ask(Pending::Forgets, &forgets);
            self.forgetting = Forgetting::Pending;
        }
    }

    /// Has the threads forget the keys of the list.
    pub(super) fn forget(&mut self, items: &[Vec<u8>]) {
        self.forgetting = Forgetting::Idle;
        if items.is_empty()
            || self.intake.is_ending()
            || !self.pipeline.filter.works.has_room_to_ask()
        {
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
                    // Every server takes so much.
                    let now = SystemTime::now();
                    rejects.push(place, reject::write(item, &reason, now, Limits::LEAST));
                }
            }
        }
        if !rejects.is_empty() {
            warn!("{} items to be forgotten cannot be read; they are rejected", rejects.len());
        }
        let Works { dispatcher, engine, .. } = &mut self.pipeline.filter.works;
        let answer = dispatcher.put(questions, engine);
        self.forgetting = Forgetting::Answering { answer, count: items.len(), rejects };
    }

    /// Takes the threads' answer. The log has the changes, so the keys are removed from the list.
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

    /// Waits until the threads have forgotten the keys that they were asked to.
    pub(super) async fn finish_forgetting(&mut self) -> Result<(), RunError> {
        if matches!(self.forgetting, Forgetting::Answering { .. }) {
            self.pipeline.answer_all().await?;
            if let Some(reply) = answered(&mut self.forgetting).await {
                self.forgot(&reply);
            }
        }
        Ok(())
    }

    /// Takes the reply to the removal from the list. There may be more entries.
    pub(super) fn removed(&mut self, reply: redis::Value) -> Result<(), RunError> {
        self.pipeline.parts.protocol.done(reply)?;
        self.forgetting = Forgetting::Idle;
        self.ask_for_forgets();
        Ok(())
    }
}

/// Waits for the threads' answer; for ever if they were not asked.
pub(super) async fn answered(forgetting: &mut Forgetting) -> Option<Reply> {
    match forgetting {
        Forgetting::Answering { answer, .. } => answer.await.ok(),
        _ => std::future::pending().await,
    }
}
