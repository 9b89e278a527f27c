//! What one thread judges by.

use super::growing::Growing;
use urlseen_core::filter::native::KeyHash;
use urlseen_core::filter::redisbloom::{AddError, Hashes};
use urlseen_core::filter::{Recent, ShardId, Shards, Verdict};

/// What a thread knows of the fingerprints of its shards.
#[derive(Debug)]
#[allow(clippy::large_enum_variant)] // there is one a thread
pub(super) enum Memory {
    /// All: the filter itself.
    Whole(Shards),
    /// Some of what is seen, where the filter is in Redis. All else goes there to be judged.
    Recent(Recent),
    /// All, in one piece: a filter of RedisBloom.
    RedisBloom(Growing),
    /// Nothing: another thread has all of it.
    Elsewhere,
}

impl Memory {
    /// Begins to fetch what a test of the key looks at.
    #[inline]
    pub(super) fn fetch(&self, key_hash: KeyHash) {
        if let Self::Whole(shards) = self {
            shards.fetch(key_hash);
        }
    }

    /// Which of the keys are seen, in their order.
    pub(super) fn test_all(
        &self,
        key_hashes: impl IntoIterator<Item = KeyHash, IntoIter: Clone>,
    ) -> Vec<Verdict> {
        match self {
            Self::Whole(shards) => shards.test_all(key_hashes),
            Self::Recent(recent) => {
                key_hashes.into_iter().map(|key_hash| recent.test(key_hash)).collect()
            }
            Self::RedisBloom(growing) => {
                key_hashes.into_iter().map(|key_hash| growing.test(hashes(key_hash))).collect()
            }
            Self::Elsewhere => nothing(key_hashes),
        }
    }

    /// The keys are seen from now on.
    ///
    /// # Errors
    /// The filter is full and cannot grow; not where [`Memory::make_room`] had room for the keys.
    pub(super) fn set_all(
        &mut self,
        key_hashes: impl IntoIterator<Item = KeyHash, IntoIter: Clone>,
    ) -> Result<(), AddError> {
        match self {
            Self::Whole(shards) => shards.set_all(key_hashes),
            Self::Recent(recent) => {
                key_hashes.into_iter().for_each(|key_hash| recent.set(key_hash));
            }
            Self::RedisBloom(growing) => {
                return key_hashes
                    .into_iter()
                    .try_for_each(|key_hash| growing.set(hashes(key_hash)));
            }
            Self::Elsewhere => drop(nothing(key_hashes)),
        }
        Ok(())
    }

    /// Makes sure that so many new keys can be set. The other filters take any number.
    pub(super) fn make_room(&mut self, keys: usize) -> Result<(), AddError> {
        match self {
            Self::RedisBloom(growing) => growing.make_room(keys as u64),
            Self::Whole(_) | Self::Recent(_) | Self::Elsewhere => Ok(()),
        }
    }

    /// Forgets all.
    pub(super) fn clear(&mut self) {
        match self {
            Self::Whole(shards) => {
                for shard in ShardId::all() {
                    if shards.has(shard) {
                        shards.clear(shard);
                    }
                }
            }
            Self::Recent(recent) => recent.clear(),
            Self::RedisBloom(growing) => growing.replace(None),
            Self::Elsewhere => {}
        }
    }

    /// Forgets what somebody else knows better.
    pub(super) fn evict_seen(&mut self) {
        if let Self::Recent(recent) = self {
            recent.clear();
        }
    }

    /// The shards, where the filter is here.
    pub(super) fn shards(&mut self) -> Option<&mut Shards> {
        match self {
            Self::Whole(shards) => Some(shards),
            Self::Recent(_) | Self::RedisBloom(_) | Self::Elsewhere => None,
        }
    }

    /// The filter of RedisBloom, where it is here.
    pub(super) fn growing(&mut self) -> Option<&mut Growing> {
        match self {
            Self::RedisBloom(growing) => Some(growing),
            Self::Whole(_) | Self::Recent(_) | Self::Elsewhere => None,
        }
    }
}

fn hashes(key_hash: KeyHash) -> Hashes {
    Hashes::from_words(key_hash.words_of_key())
}

/// What is told to a thread that has nothing.
fn nothing(key_hashes: impl IntoIterator<Item = KeyHash>) -> Vec<Verdict> {
    assert!(key_hashes.into_iter().next().is_none(), "all of the filter belongs to another thread");
    Vec::new()
}
