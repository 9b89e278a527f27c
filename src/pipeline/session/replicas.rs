//! Commits that Redis has executed, and that wait until enough replicas have them.
//!
//! `WAIT` counts the replicas that have all earlier writes of its connection. So one `WAIT` after
//! several commits is enough for all of them. If too few replicas have the commits in time, the
//! outcome is unknown: the commits stay executed in Redis, and the session asks again.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;
use tracing::{info, warn};

use super::requests::REPLICAS;
use super::{Pipeline, RunError, Session};
use urlseen_redis::link::{Link, Reply};
use urlseen_redis::protocol::{Committed, value};

/// Time after which the log says that commits wait for replicas.
const LATE: Duration = Duration::from_secs(5);

/// Executed commits that too few replicas have.
#[derive(Debug)]
pub(super) struct Replicas {
    /// Number of replicas that must have a commit; 0 if commits do not wait.
    pub(super) wanted: u64,
    /// Replies to the commits, oldest first.
    executed: VecDeque<Committed>,
    /// Start of the wait for the oldest commit.
    since: Option<Instant>,
    /// True if the last log line said that commits wait.
    is_told: bool,
}

impl Replicas {
    /// Starts without commits. Each commit waits for `wanted` replicas.
    pub(super) fn new(wanted: u64) -> Self {
        Self { wanted, executed: VecDeque::new(), since: None, is_told: false }
    }

    /// Counts the executed commits that wait for replicas.
    pub(super) fn waiting(&self) -> usize {
        self.executed.len()
    }

    /// Returns true if commits have waited for a long time.
    pub(super) fn are_late(&self) -> bool {
        self.since.is_some_and(|since| since.elapsed() >= LATE)
    }

    /// Adds an executed commit.
    pub(super) fn hold(&mut self, committed: Committed) {
        self.executed.push_back(committed);
        self.since.get_or_insert_with(Instant::now);
    }

    /// Removes and returns all commits.
    fn take(&mut self) -> VecDeque<Committed> {
        self.since = None;
        std::mem::take(&mut self.executed)
    }

    /// Logs once that commits have waited for a long time. `have` is the number of replicas that
    /// have the commits.
    fn tell(&mut self, have: u64) {
        if !self.are_late() || std::mem::replace(&mut self.is_told, true) {
            return;
        }
        let (wanted, commits) = (self.wanted, self.waiting());
        warn!(
            "waiting: {} of {wanted} replicas (redis.wait_replicas) have not acknowledged the last \
             {commits} commits. urlseen sends no further commits until then. Connect the replicas \
             to this primary (INFO replication shows them), or lower redis.wait_replicas",
            wanted - have
        );
    }
}

impl Pipeline {
    /// Waits once until the wanted replicas have all writes of a connection.
    pub(super) async fn wait_for_replicas(&mut self, link: &mut Link) -> Result<(), RunError> {
        let wanted = self.parts.protocol.wanted_replicas;
        if wanted == 0 {
            return Ok(());
        }
        let wait = self.parts.protocol.wait();
        let reply = self.meanwhile(link.call(&wait)).await??;
        let have = value("WAIT", reply)?;
        if have < wanted { Err(RunError::FewReplicas { have, wanted }) } else { Ok(()) }
    }
}

impl Session<'_> {
    /// Asks how many replicas have the commits, unless this is asked already.
    pub(super) fn ask_replicas(&mut self) {
        if self.replicas.wanted > 0 && self.sent > 0 {
            let wait = self.pipeline.parts.protocol.wait();
            // Only the replicas can acknowledge a commit. So if Redis refuses this request, the
            // session ends, as if Redis had refused the commit itself.
            let take = Box::new(|session: &mut Session<'_>, reply: Reply, _| {
                let have = value("WAIT", reply.into_value()?)?;
                session.replicas_answered(have);
                Ok(())
            });
            self.requests.ask_once(REPLICAS, &wait, take);
        }
    }

    /// Processes the number of replicas that have the commits. All commits whose replies came
    /// before this number were sent before the question. So the number holds for each of these
    /// commits.
    pub(super) fn replicas_answered(&mut self, have: u64) {
        if have < self.replicas.wanted {
            return self.replicas.tell(have);
        }
        self.settle_executed();
        if std::mem::take(&mut self.replicas.is_told) {
            info!("the replicas have acknowledged all commits: the work continues");
        }
    }

    /// Waits for the replies to all requests. Then waits once more for the replicas, if they do not
    /// have all commits. The run ends, so it settles the commits even if some replicas still lack
    /// them.
    pub(super) async fn finish_requests(&mut self) -> Result<(), RunError> {
        for _ in 0..2 {
            self.ask_replicas();
            while !self.requests.pending.is_empty() {
                let answer = self.requests.answer().await?;
                self.take_note(answer)?;
            }
        }
        if self.sent > 0 {
            warn!(
                "fewer than {} replicas (redis.wait_replicas) have acknowledged the last {} \
                 commits, and urlseen ends without waiting any longer. If a replica without these \
                 commits takes over, the next start goes back to the last commit of that replica",
                self.replicas.wanted,
                self.replicas.waiting()
            );
            self.settle_executed();
        }
        Ok(())
    }

    fn settle_executed(&mut self) {
        for committed in self.replicas.take() {
            self.settle(committed);
        }
    }
}
