//! The filter: has this fingerprint been seen before?
#![allow(missing_docs)]
pub mod native {
    use super::*;
    use crate::fingerprint::Fingerprint;
    use std::hash::{Hash, Hasher};
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub struct Probe {
        shard: ShardId,
        h: u64,
    }
    impl Probe {
        pub fn shard(&self) -> ShardId {
            self.shard
        }
        pub fn id(&self) -> u128 {
            u128::from(self.h)
        }
    }
    #[derive(Debug, Clone, Copy)]
    pub struct Native;
    impl Native {
        pub fn probe(&self, f: &Fingerprint) -> Probe {
            let mut h = std::collections::hash_map::DefaultHasher::new();
            f.as_bytes().hash(&mut h);
            Probe { shard: ShardId(f.as_bytes().first().copied().unwrap_or(0)), h: h.finish() }
        }
    }
    #[derive(Debug, Default)]
    pub struct Shards(pub std::collections::HashSet<u64>, pub u8, pub u8);
    impl Shards {
        pub fn owns(&self, s: ShardId) -> bool {
            s.0 % self.2 == self.1
        }
        pub fn ids(&self) -> impl Iterator<Item = ShardId> + use<'_> {
            (0..=255).map(ShardId).filter(|s| self.owns(*s))
        }
        pub fn keys(&self, _: ShardId) -> u64 {
            self.0.len() as u64
        }
        pub fn ones(&self, _: ShardId) -> u64 {
            self.0.len() as u64
        }
        pub fn prefetch(&self, _: Probe) {}
        pub fn test(&self, p: Probe) -> Verdict {
            if self.0.contains(&p.h) { Verdict::Seen } else { Verdict::Unseen }
        }
        pub fn set(&mut self, p: Probe) -> u32 {
            u32::from(self.0.insert(p.h))
        }
    }
}
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ShardId(u8);
impl ShardId {
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Unseen,
    Seen,
}
