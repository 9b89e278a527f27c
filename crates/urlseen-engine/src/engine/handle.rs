//! Access of other threads to a filter at work.

use std::sync::Arc;

use super::queue::Queue;
use urlseen_core::filter::{Gauge, KeyHasher, Verdict};
use urlseen_core::fingerprint::Fingerprint;

/// Handle with which other threads use a filter while the engine works. The judge does their steps
/// among its other ones. After the end of the engine, such steps are dropped without an answer.
#[derive(Debug, Clone)]
pub struct Handle {
    pub(super) hasher: KeyHasher,
    pub(super) queue: Arc<Queue>,
    pub(super) gauge: Arc<dyn Gauge>,
}

impl Handle {
    /// Tests fingerprints, in their order, and sets nothing. Ignores batches that are not
    /// committed. Waits for the judge. Returns `None` if the engine has ended.
    pub fn test(&self, fingerprints: &[Fingerprint]) -> Option<Vec<Verdict>> {
        let key_hashes: Vec<_> = fingerprints.iter().map(|it| self.hasher.key_hash(it)).collect();
        self.queue.ask(move |judge| judge.test(&key_hashes))
    }
}
