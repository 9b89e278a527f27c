//! Tests of the shards of a filter.

use std::collections::BTreeSet;

use proptest::prelude::*;
use urlseen_fingerprint::Fingerprint;

use super::*;
use crate::native::kernel::Scalar;
use crate::{Blocks, Geometry, Seed};

fn shards() -> Shards {
    let geometry = Geometry::new(Blocks::Four, 9, 5).unwrap();
    Shards::allocate(Native::new(Seed::new(3), geometry), 1000).unwrap()
}

/// Operations on one key.
impl Shards {
    /// Sets a key, and returns the number of new bits.
    fn set_one(&mut self, key_hash: KeyHash) -> u64 {
        let before = self.counts[key_hash.shard().index()].ones;
        self.set_all(&[key_hash]);
        self.counts[key_hash.shard().index()].ones - before
    }
}

fn key(leading: u8, rest: u8) -> Fingerprint {
    let mut raw = [rest; 20];
    raw[0] = leading;
    Fingerprint::Raw20(raw)
}

/// Returns the hash of a key, as if this were its shard.
fn in_shard(shard: usize, shards: &Shards, rest: u8) -> KeyHash {
    let shard = ShardId::all().nth(shard).unwrap();
    KeyHash { shard, ..shards.places.native.key_hash(&key(0, rest)) }
}

/// Returns all positions of a shard that are set, read from memory.
fn ones(shards: &Shards, shard: usize) -> BTreeSet<u64> {
    let shard = ShardId::all().nth(shard).unwrap();
    let blocks = &shards.region.blocks()[shards.places.range(shard)];
    let words: &[u64] = bytemuck::cast_slice(blocks);
    let bits = (0u64..).zip(words.iter().flat_map(|word| (0..64).map(move |b| word >> b & 1)));
    bits.filter(|&(_, bit)| bit == 1).map(|(position, _)| position).collect()
}

#[test]
fn setting_sets_the_positions_of_the_key_and_no_others() {
    let mut shards = shards();
    let mut expected = BTreeSet::new();
    for (keys, rest) in (1..).zip(0..20) {
        let key_hash = in_shard(7, &shards, rest);
        let before = expected.len();
        expected.extend(shards.places.native.positions(key_hash));
        assert_eq!(shards.set_one(key_hash), (expected.len() - before) as u64);
        assert_eq!(ones(&shards, 7), expected);
        let count = Count { keys, ones: expected.len() as u64 };
        assert_eq!(shards.counts()[7], count);
        assert_eq!(shards.set_one(key_hash), 0, "set again, it adds nothing");
    }
    assert!((0..256).filter(|&shard| shard != 7).all(|shard| ones(&shards, shard).is_empty()));
}

proptest! {
    #[test]
    fn every_kernel_sets_and_finds_the_same(
        blocks in prop::sample::select(Blocks::ALL.as_slice()),
        bits_per_block in 1..=Geometry::MAX_BITS_PER_BLOCK,
        blocks_per_part in 1..4u32,
        keys in prop::collection::vec((0..3u8, any::<u8>()), 0..200),
    ) {
        let geometry = Geometry::new(blocks, bits_per_block, blocks_per_part).unwrap();
        let native = Native::new(Seed::new(3), geometry);
        let key_hashes: Vec<KeyHash> =
            keys.iter().map(|&(leading, rest)| native.key_hash(&key(leading, rest))).collect();
        let set = &key_hashes[..key_hashes.len() / 2];
        let by = |kernel| {
            let mut shards = Shards::allocate(native, 1000).unwrap();
            shards.kernel = kernel;
            shards.set_all(set);
            let mut verdicts = Vec::new();
            shards.test_all(&key_hashes, &mut verdicts);
            (shards.region.blocks().to_vec(), shards.counts, verdicts)
        };
        let scalar = by(BitKernels::Scalar(Scalar));
        prop_assert!(scalar.2[..set.len()].iter().all(|verdict| *verdict == Verdict::Seen));
        prop_assert_eq!(by(BitKernels::fastest()), scalar);
    }
}
