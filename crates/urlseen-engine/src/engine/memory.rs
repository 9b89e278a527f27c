//! What one thread judges by.

use super::growing::Growing;
use urlseen_core::filter::native::Probe;
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
    pub(super) fn fetch(&self, probe: Probe) {
        if let Self::Whole(shards) = self {
            shards.fetch(probe);
        }
    }

    /// Which of the keys are seen, in their order.
    pub(super) fn test_all(
        &self,
        probes: impl IntoIterator<Item = Probe, IntoIter: Clone>,
    ) -> Vec<Verdict> {
        match self {
            Self::Whole(shards) => shards.test_all(probes),
            Self::Recent(recent) => probes.into_iter().map(|probe| recent.test(probe)).collect(),
            Self::RedisBloom(growing) => {
                probes.into_iter().map(|probe| growing.test(hashes(probe))).collect()
            }
            Self::Elsewhere => nothing(probes),
        }
    }

    /// The keys are seen from now on.
    ///
    /// # Errors
    /// The filter is full and cannot grow; not where [`Memory::make_room`] had room for the keys.
    pub(super) fn set_all(
        &mut self,
        probes: impl IntoIterator<Item = Probe, IntoIter: Clone>,
    ) -> Result<(), AddError> {
        match self {
            Self::Whole(shards) => shards.set_all(probes),
            Self::Recent(recent) => probes.into_iter().for_each(|probe| recent.set(probe)),
            Self::RedisBloom(growing) => {
                return probes.into_iter().try_for_each(|probe| growing.set(hashes(probe)));
            }
            Self::Elsewhere => drop(nothing(probes)),
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
    pub(super) fn forget_seen(&mut self) {
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

fn hashes(probe: Probe) -> Hashes {
    Hashes::from_words(probe.words_of_key())
}

/// What is told to a thread that has nothing.
fn nothing(probes: impl IntoIterator<Item = Probe>) -> Vec<Verdict> {
    assert!(probes.into_iter().next().is_none(), "all of the filter belongs to another thread");
    Vec::new()
}
