//! What one thread judges by.

use crate::filter::native::Probe;
use crate::filter::{Recent, ShardId, Shards, Verdict};

/// What a thread knows of the fingerprints of its shards.
#[derive(Debug)]
#[allow(clippy::large_enum_variant)] // there is one a thread
pub(super) enum Memory {
    /// All: the filter itself.
    Whole(Shards),
    /// Some of what is seen, where the filter is in Redis. All else goes there to be judged.
    Recent(Recent),
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
        }
    }

    /// The keys are seen from now on.
    pub(super) fn set_all(&mut self, probes: impl IntoIterator<Item = Probe, IntoIter: Clone>) {
        match self {
            Self::Whole(shards) => shards.set_all(probes),
            Self::Recent(recent) => probes.into_iter().for_each(|probe| recent.set(probe)),
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
            Self::Recent(_) => None,
        }
    }
}
