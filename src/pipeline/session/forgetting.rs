//! Keys to forget, from a Redis list to which spiders push. The session reads the list and asks the
//! threads to forget the keys, as with any other query. The session removes the keys from the list
//! after the log has the changes.

use std::time::SystemTime;

use futures_util::stream::StreamExt as _;
use tokio::time::{Duration, Instant};
use tracing::{info, warn};

use super::{RunError, Session};
use urlseen_engine::engine::query::Reply;
use urlseen_engine::engine::{Answer, Question, Wanted, Works};
use urlseen_engine::item::Identity;
use urlseen_redis::protocol::value;
use urlseen_redis::reject;

/// Time between two checks of the list.
pub(super) const FORGETS: Duration = Duration::from_secs(4);

/// Number of entries of the list that are read together.
const AT_ONCE: usize = 1000;

/// Time to wait if the filter has no room for more tombstones, which mark forgotten keys.
const FULL: Duration = Duration::from_secs(5);

/// Names of the requests for entries of the list, and for their removal.
const READ: &str = "forget list";
const REMOVAL: &str = "removal from the forget list";

/// State of the work on the list, beside the requests that wait for a reply.
#[derive(Debug, Default)]
pub(super) enum Forgetting {
    /// All entries that were read are removed from the list.
    #[default]
    Idle,
    /// The list is to be read, and may have entries that this session has claimed.
    Unread,
    /// The session has asked the filter's threads to forget keys.
    Answering,
    /// The log has the changes of the first `count` entries, which are to be removed from the list.
    /// They are not read again before that, so no key is forgotten twice.
    Forgotten { count: usize, rejects: Vec<Vec<u8>> },
    /// There was no room for tombstones. The session asks for no entries before `until`.
    Full { until: Instant },
}

impl Session<'_> {
    /// Returns true if keys are being forgotten, or the list is being read.
    pub(super) fn is_forgetting(&self) -> bool {
        let asks = [READ, REMOVAL].into_iter().any(|name| self.requests.is_asking(name));
        asks || matches!(self.forgetting, Forgetting::Answering)
    }

    /// Takes the next step of the work on the list, or asks for the length of the list.
    pub(super) fn look_for_forgets(&mut self) {
        match self.forgetting {
            Forgetting::Unread | Forgetting::Full { .. } => self.ask_for_forgets(),
            Forgetting::Forgotten { .. } => self.remove_forgotten(),
            _ if self.is_forgetting() || self.pipeline.filter.shared.is_some() => {}
            _ => {
                let length = redis::Cmd::llen(&self.pipeline.parts.protocol.keys.forget);
                self.ask("length of the forget list", &length, |session, reply| {
                    if value::<u64>("a length", reply)? > 0 {
                        session.ask_for_forgets();
                    }
                    Ok(())
                });
            }
        }
    }

    /// Asks for the entries of the list, unless keys are being forgotten.
    pub(super) fn ask_for_forgets(&mut self) {
        let is_free = match &self.forgetting {
            Forgetting::Full { until } => *until <= Instant::now(),
            Forgetting::Forgotten { .. } => false,
            _ => !self.is_forgetting(),
        };
        // A session that is ending starts no new work.
        let is_ending = self.intake.is_ending();
        let is_here = self.pipeline.filter.shared.is_none();
        if is_free && is_here && !is_ending {
            let protocol = &self.pipeline.parts.protocol;
            let claim = protocol.claim_forgets(&self.lease.token);
            let read = protocol.read_forgets(AT_ONCE.min(self.pipeline.limits.items) as u64);
            self.ask("claim of the forget list", &claim, |session, reply| {
                session.pipeline.parts.protocol.claimed(reply)?;
                Ok(())
            });
            self.ask(READ, &read, |session, reply| {
                let items: Vec<Vec<u8>> = value("the items to forget", reply)?;
                session.forget(&items);
                Ok(())
            });
            self.forgetting = Forgetting::Unread;
        }
    }

    /// Asks the threads to forget the keys of `items`, which are entries of the list.
    fn forget(&mut self, items: &[Vec<u8>]) {
        if items.is_empty() {
            self.forgetting = Forgetting::Idle;
        }
        let has_room = self.pipeline.filter.works.engine.has_room_to_ask();
        if items.is_empty() || self.intake.is_ending() || !has_room {
            return;
        }
        let mut reader = self.pipeline.parts.forgets.clone();
        let (mut questions, mut rejects) = (Vec::new(), Vec::new());
        for item in items {
            match reader.read(item).map(|read| read.identity) {
                Ok(Identity::Fingerprint(fingerprint)) => {
                    questions.push(Question { wanted: Wanted::Forget, fingerprint });
                }
                // The filter never has such an item, so there is nothing to forget.
                Ok(Identity::Unfiltered | Identity::Dropped(_)) => {}
                Err(reason) => {
                    // So every server accepts the rejects of all items together.
                    let is_large = item.len() > reject::BEGINNING;
                    let write = if is_large { reject::shortened } else { reject::write };
                    rejects.push(write(item, &reason, SystemTime::now()));
                }
            }
        }
        if !rejects.is_empty() {
            warn!("{} items of the forget list cannot be read: they are rejected", rejects.len());
        }
        let Works { dispatcher, engine, .. } = &mut self.pipeline.filter.works;
        let answer = dispatcher.put(questions, engine);
        self.forgetting = Forgetting::Answering;
        let count = items.len();
        self.expect(answer, move |session, reply| {
            if let Ok(reply) = reply {
                session.forgot(&reply, count, rejects);
            }
            Ok(())
        });
    }

    /// Processes the threads' answer. The log has the changes, so the entries are removed from the
    /// list.
    fn forgot(&mut self, reply: &Reply, count: usize, rejects: Vec<Vec<u8>>) {
        if reply.answers.contains(&Answer::Full) {
            warn!(
                "the number of forgotten fingerprints has reached its maximum (forget.max_len): \
                 further items of the forget list wait until some of the forgotten URLs have \
                 passed again"
            );
            self.forgetting = Forgetting::Full { until: Instant::now() + FULL };
            return;
        }
        let seen = reply.answers.iter().filter(|&&answer| answer == Answer::Seen).count();
        info!("{seen} fingerprints are forgotten: the next items with these fingerprints pass");
        self.forgetting = Forgetting::Forgotten { count, rejects };
        self.remove_forgotten();
    }

    /// Removes the entries from the list whose keys are forgotten.
    fn remove_forgotten(&mut self) {
        let Forgetting::Forgotten { count, rejects } = &self.forgetting else { return };
        let removal = self.pipeline.parts.protocol.forgotten(&self.lease.token, *count, rejects);
        self.ask(REMOVAL, &removal, |session, reply| {
            session.pipeline.parts.protocol.done(reply)?;
            session.forgetting = Forgetting::Idle;
            // The list may have more entries.
            session.ask_for_forgets();
            Ok(())
        });
    }

    /// Waits until the threads have forgotten the keys that they were asked to forget.
    pub(super) async fn finish_forgetting(&mut self) -> Result<(), RunError> {
        if matches!(self.forgetting, Forgetting::Answering) {
            self.pipeline.answer_all().await?;
        }
        while matches!(self.forgetting, Forgetting::Answering)
            && let Some(act) = self.answers.next().await
        {
            act(self)?;
        }
        Ok(())
    }
}
