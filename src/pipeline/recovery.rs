//! Taking the lease, and recovering the filter to where Redis stands: what each session begins
//! with.

use std::pin::pin;

use indicatif::BinaryBytes;
use tokio::time::{Instant, interval_at};
use tracing::{info, warn};

use super::queue::{Queue, Settled};
use super::suspicion::Suspicion;
use super::{Pipeline, RunError, Shared};
use crate::crawl::protocol::Standing;
use crate::pipeline::phase::Phase;
use urlseen_core::filter::id::RandomId;
use urlseen_core::redis::lease::{LEASE, MARGIN, RENEWAL, RunId, Token};
use urlseen_core::redis::limits::Limits;
use urlseen_core::redis::link::Link;
use urlseen_core::storage::Head;
use urlseen_engine::engine::store::{How, MismatchError, Recovery};

/// The lease, and what was found under it.
pub(super) struct Held {
    pub(super) token: Token,
    /// When it counts as lost unless it is renewed before.
    pub(super) until: Instant,
    standing: Standing,
}

impl Pipeline {
    /// Takes the lease under a fresh token, and then, not before, reads where the crawl stands.
    /// The folder knows the run before Redis does, so that the next one to hold its lock can prove
    /// that this run is dead. All runs that the folder knows are: also later, as a Redis that comes
    /// back with older data may come back with the lease of one of them.
    pub(super) async fn own(&mut self, link: &mut Link) -> Result<Held, RunError> {
        let (token, run) = (self.run.token(), self.run);
        if self.dead.is_none() {
            let runs = match &self.works.storage {
                Some(storage) => storage.call(move |store| store.announce(run.get())).await?,
                None => Ok(Vec::new()),
            };
            let runs = runs.map_err(RunError::Folder)?;
            self.dead = Some(runs.into_iter().map(RunId::new).collect());
        }
        let protocol = &self.parts.protocol;
        for command in protocol.load() {
            link.call(&command).await?;
        }
        self.has_asked_for_lease = true;
        let asked = Instant::now();
        let dead = self.dead.as_deref().unwrap_or_default();
        let reply = link.call(&protocol.own(&token, &self.parts.holder, dead)).await?;
        let standing = protocol.owned(reply)?;
        Ok(Held { token, until: asked + LEASE - MARGIN, standing })
    }

    /// Asks what the server takes at once. That may have changed since the last connection.
    pub(super) async fn ask_limits(&mut self, link: &mut Link) -> Result<(), RunError> {
        self.limits = Limits::ask(link).await?;
        if !self.limits.is_told && self.queue.is_none() {
            info!(
                "this user may not ask for proto-max-bulk-len (CONFIG GET): it is assumed that \
                 Redis takes {} of an item at once",
                BinaryBytes(self.limits.word as u64)
            );
        }
        Ok(())
    }

    /// Settles what became of the batches in flight; where Redis stands elsewhere, brings the
    /// filter there.
    pub(super) async fn go_on_from(
        &mut self,
        link: &mut Link,
        held: &mut Held,
    ) -> Result<(), RunError> {
        let standing = held.standing;
        // A log that has to be cut may fail then: what is asked must not be left half answered.
        if self.queue.is_some() {
            self.answer_all().await?;
        }
        match self.queue.as_mut().map(|queue| queue.settle(standing)) {
            Some(Ok(settled)) => self.settle(settled, standing).await?,
            Some(Err(diverged)) => {
                warn!("{diverged}");
                self.suspicion = Suspicion::default();
                self.abort_queue();
                self.counts.rollbacks += 1;
                self.recover(link, held).await?;
            }
            None => self.recover(link, held).await?,
        }
        Ok(())
    }

    /// Gives up what is judged and not committed: the filter has to be recovered.
    pub(super) fn abort_queue(&mut self) {
        let forgotten = self.queue.take().map_or(0, |queue| queue.batches());
        self.note_aborted(forgotten);
    }

    /// Counts batches that are read and judged again.
    pub(super) fn note_aborted(&mut self, batches: usize) {
        self.counts.batches_aborted += batches as u64;
    }

    async fn settle(&mut self, settled: Settled, standing: Standing) -> Result<(), RunError> {
        let Settled { committed, stale } = settled;
        let unseen =
            self.parts.shared.is_some().then(|| standing.unseen.saturating_sub(self.unseen));
        self.committed(&committed, unseen);
        if stale {
            self.suspicion = Suspicion::default();
        }
        let queue = self.queue.as_mut().expect("it was settled");
        let stale = stale || self.suspicion.judges_again(queue, self.limits);
        let forgotten = if stale { queue.clear() } else { 0 };
        let (again, head) = (queue.batches(), queue.head());
        if stale {
            self.note_aborted(forgotten);
            self.abort(head).await?;
        }
        info!(
            "connected again: {} batches had been committed, {again} are sent again, {forgotten} \
             are read and judged again",
            committed.len()
        );
        Ok(())
    }

    /// Brings the filter to where Redis stands, and ties the two together.
    async fn recover(&mut self, link: &mut Link, held: &mut Held) -> Result<(), RunError> {
        let Standing { processing, unseen, .. } = held.standing;
        self.unseen = unseen;
        self.answer_all().await?;
        self.enter(Phase::Recovering);
        let Recovery { head, filter: ours, how } = self.recover_to(link, held).await?;
        let protocol = &self.parts.protocol;
        let begin = protocol.begin(&held.token, ours, head);
        protocol.done(link.call(&begin).await?)?;
        self.counts.recoveries += 1;
        info!("the lease is taken; Redis is at {head}, {processing} items are claimed. {how}");
        for warning in how.warnings() {
            warn!("{warning}");
        }
        self.queue = Some(Queue::new(head, processing));
        self.watch_fill();
        Ok(())
    }

    /// Keeps the lease while the filter is recovered.
    async fn recover_to(&mut self, link: &mut Link, held: &mut Held) -> Result<Recovery, RunError> {
        let Standing { head: theirs, filter, .. } = held.standing;
        self.gather().await?;
        let threads = self.works.engine.restoring();
        let Some(storage) = &self.works.storage else {
            self.check_fit(theirs, filter).await??;
            threads.clear();
            let ours = self.parts.shared.as_ref().map_or_else(RandomId::random, Shared::id);
            let head = theirs.unwrap_or(Head::START);
            return Ok(Recovery { head, filter: ours, how: How::Shared });
        };
        let recovering = storage.call(move |store| {
            let recovered = store.recover_to(theirs, filter);
            (recovered, store.footprint())
        });
        let mut recovering = pin!(recovering);
        let mut renewal = interval_at(Instant::now() + RENEWAL, RENEWAL);
        let mut lost = None;
        let (recovered, footprint) = loop {
            tokio::select! {
                recovered = &mut recovering => break recovered?,
                _ = renewal.tick(), if lost.is_none() => {
                    if self.hang().is_none() {
                        lost = self.renew(link, held).await.err();
                    }
                }
            }
        };
        self.works.engine.restored().await?;
        self.keep_footprint(footprint);
        // What was read stays, and is not read again by the session that comes next.
        lost.map_or(Ok(()), Err)?;
        Ok(recovered?)
    }

    /// Checks that the filter can belong to where Redis stands.
    pub(super) async fn check_fit(
        &self,
        theirs: Option<Head>,
        filter: Option<RandomId>,
    ) -> Result<Result<(), MismatchError>, RunError> {
        Ok(match (&self.works.storage, &self.parts.shared) {
            (Some(storage), _) => {
                storage.call(move |store| store.check_fit(theirs, filter)).await?
            }
            (None, Some(shared)) => shared.check_fit(theirs, filter),
            (None, None) => Ok(()),
        })
    }

    async fn renew(&self, link: &mut Link, held: &mut Held) -> Result<(), RunError> {
        let (protocol, asked) = (&self.parts.protocol, Instant::now());
        protocol.done(link.call(&protocol.renew(&held.token)).await?)?;
        held.until = asked + LEASE - MARGIN;
        Ok(())
    }
}
