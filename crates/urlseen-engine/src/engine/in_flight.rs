//! What a thread found unseen and has not set yet.

use std::collections::{HashMap, HashSet, VecDeque};

use urlseen_core::filter::Hashed;
use urlseen_core::filter::native::KeyHash;

/// Keys by the 128 bits that the layout makes of a fingerprint: what they do not tell apart, the
/// filter cannot either.
pub(super) type Keys = HashSet<u128, Hashed>;

/// The exact set of what was found unseen and is not set yet: that of batches until they are
/// committed, that of single questions until it is written down.
#[derive(Debug, Default)]
pub(super) struct InFlight {
    keys: Keys,
    /// What was found unseen by batch, oldest first.
    batches: VecDeque<Vec<KeyHash>>,
    /// The same by group of questions.
    groups: VecDeque<Vec<KeyHash>>,
    /// How many times keys are in those lists without being in the set, as they were forgotten
    /// meanwhile. Hardly ever is there one.
    orphans: HashMap<u128, usize, Hashed>,
}

impl InFlight {
    /// How many keys are to be set.
    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    pub(super) fn contains(&self, key_hash: KeyHash) -> bool {
        self.keys.contains(&key_hash.id())
    }

    /// Whether `key hash` was not there yet; it is now.
    pub(super) fn insert(&mut self, key_hash: KeyHash) -> bool {
        self.keys.insert(key_hash.id())
    }

    /// Takes back an [`InFlight::insert`].
    pub(super) fn take_back(&mut self, key_hash: KeyHash) {
        self.keys.remove(&key_hash.id());
    }

    /// Whether `key hash` was there; it may be found unseen again from now on, while what found it
    /// unseen before is in flight still.
    pub(super) fn remove(&mut self, key_hash: KeyHash) -> bool {
        let was_there = self.keys.remove(&key_hash.id());
        if was_there {
            *self.orphans.entry(key_hash.id()).or_default() += 1;
        }
        was_there
    }

    /// What of the next batch was inserted.
    pub(super) fn push_batch(&mut self, key_hashes: Vec<KeyHash>) {
        self.batches.push_back(key_hashes);
    }

    /// What of the next group of questions was inserted.
    pub(super) fn push_group(&mut self, key_hashes: Vec<KeyHash>) {
        self.groups.push_back(key_hashes);
    }

    pub(super) fn pop_batch(&mut self) -> Option<Vec<KeyHash>> {
        self.batches.pop_front()
    }

    pub(super) fn pop_group(&mut self) -> Option<Vec<KeyHash>> {
        self.groups.pop_front()
    }

    /// One of those popped is in flight no more. Whether it was not forgotten since it was found
    /// unseen.
    pub(super) fn settle(&mut self, key_hash: KeyHash) -> bool {
        let id = key_hash.id();
        if !self.orphans.is_empty()
            && let Some(times) = self.orphans.get_mut(&id)
        {
            *times -= 1;
            if *times == 0 {
                self.orphans.remove(&id);
            }
            return false;
        }
        self.keys.remove(&id)
    }

    /// No batch is in flight any more.
    pub(super) fn drop_batches(&mut self) {
        while let Some(key_hashes) = self.pop_batch() {
            for key_hash in key_hashes {
                self.settle(key_hash);
            }
        }
    }
}
