//! Access of other threads to a filter at work.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crossbeam_channel::{Receiver, bounded};

use super::Gauges;
use super::mailbox::Mailbox;
use super::owner::Job;
use urlseen_core::filter::{KeyHasher, Verdict};
use urlseen_core::fingerprint::Fingerprint;
use urlseen_core::storage::Counts;

/// Handle with which other threads use a filter while the engine works. The handle sends jobs to
/// the owners, which do them among their other jobs. After the end of the engine, such
/// jobs are dropped without an answer.
#[derive(Debug, Clone)]
pub struct Handle {
    pub(super) hasher: KeyHasher,
    pub(super) owners: Vec<Mailbox>,
    pub(super) gauges: Arc<Gauges>,
    /// Counts of limits, of all committed batches.
    pub(super) counts: Arc<Mutex<Counts>>,
    /// The worker of an engine without threads; `None` if the engine has threads.
    #[cfg(feature = "simulation")]
    pub(super) stepped: Option<Arc<super::worker::Worker>>,
}

impl Handle {
    /// Tests fingerprints, in their order, and sets nothing. Ignores batches that are not
    /// committed. Waits for the owners. Returns `None` if the engine has ended.
    pub fn test(&self, fingerprints: &[Fingerprint]) -> Option<Vec<Verdict>> {
        let owners = self.owners.len();
        let mut parts = vec![(Vec::new(), Vec::new()); owners];
        for (place, fingerprint) in fingerprints.iter().enumerate() {
            let key_hash = self.hasher.key_hash(fingerprint);
            let (places, key_hashes) = &mut parts[key_hash.shard().owner(owners)];
            places.push(place);
            key_hashes.push(key_hash);
        }
        let mut verdicts = vec![Verdict::Unseen; fingerprints.len()];
        for (owner, (places, key_hashes)) in parts.into_iter().enumerate() {
            let (reply, answered) = bounded(1);
            self.owners[owner].tell(Job::Test { key_hashes, reply })?;
            for (place, verdict) in places.into_iter().zip(self.wait(&answered)?) {
                verdicts[place] = verdict;
            }
        }
        Some(verdicts)
    }

    /// Returns the gauges of the filter.
    pub fn gauges(&self) -> &Gauges {
        &self.gauges
    }

    /// Returns the counts of limits, of all committed batches.
    pub(super) fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the reply of an owner; `None` if the owner has ended.
    pub(super) fn wait<T>(&self, reply: &Receiver<T>) -> Option<T> {
        #[cfg(feature = "simulation")]
        if let Some(worker) = &self.stepped {
            worker.step_all();
        }
        reply.recv().ok()
    }

    /// Gives each owner a job.
    pub(super) fn tell_all(&self, job: impl Fn() -> Job) {
        (0..self.owners.len()).for_each(|owner| self.tell(owner, job()));
    }

    /// Gives an owner a job. If the owner has ended, the engine reports that.
    pub(super) fn tell(&self, owner: usize, job: Job) {
        self.owners[owner].tell(job);
    }
}
