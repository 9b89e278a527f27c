//! Filters that are filled with sets of known overlap.

use urlseen_analysis::{Ones, Totals};
use urlseen_core::filter::kinds::PyreBloom;
use urlseen_core::filter::layout::{BitPosition, BitStrings};
use urlseen_core::filter::native::Native;
use urlseen_core::filter::{Capacity, Cells, ErrorRate, Seed, ShardId, Shards, Sizing};
use urlseen_core::fingerprint::Fingerprint;

/// Sizes of two sets A and B: each has `size` keys, and `common` keys are in both.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sets {
    pub(super) size: u64,
    pub(super) common: u64,
}

/// Kind and parameters of the filled filters.
pub(super) enum Filled {
    Native(Sizing),
    Pyrebloom(PyreBloom),
}

impl Filled {
    pub(super) fn native(capacity: u64) -> Self {
        let capacity = Capacity::new(capacity).expect("a capacity");
        Self::Native(Sizing::new(capacity, ErrorRate::new(1e-3).expect("a rate")))
    }

    pub(super) fn pyrebloom(capacity: u64) -> Self {
        let capacity = u32::try_from(capacity).expect("a small capacity");
        Self::Pyrebloom(PyreBloom::new(capacity, 1e-3).expect("it can be that large"))
    }

    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Native(_) => "native",
            Self::Pyrebloom(_) => "pyrebloom",
        }
    }

    /// Fills a filter with A and another with B. Returns the totals of their set bits, and the size
    /// of A that [`textbook`] estimates.
    pub(super) fn totals(&self, trial: u64, Sets { size, common }: Sets) -> (Totals, f64) {
        let mut random = fastrand::Rng::with_seed(trial);
        let mut key = || {
            let mut raw = [0; 20];
            random.fill(&mut raw);
            Fingerprint::Raw20(raw)
        };
        let keys: Vec<Fingerprint> = (0..2 * size - common).map(|_| key()).collect();
        let index = |at: u64| usize::try_from(at).expect("keys in memory");
        let (a, b) = (&keys[..index(size)], &keys[index(size - common)..]);
        let mut totals = Totals::default();
        match self {
            Self::Native(sizing) => {
                let geometry = sizing.geometry;
                let seed = Seed::new(u32::try_from(trial).expect("few trials"));
                let native = Native::new(seed, geometry);
                let filled = |keys: &[Fingerprint]| {
                    let mut shards = Shards::allocate(native, 0, 1).expect("a small filter");
                    let key_hashes: Vec<_> = keys.iter().map(|key| native.key_hash(key)).collect();
                    shards.set_all(&key_hashes);
                    shards
                };
                let ((a, b), mut by_book) = ((filled(a), filled(b)), 0.0);
                let (bits, k) = (geometry.shard_bits() as f64, f64::from(geometry.k()));
                for shard in ShardId::all() {
                    let mut ones = Ones::default();
                    ones.add(a.bytes(shard), b.bytes(shard));
                    totals.add(&Cells::shard(geometry), ones);
                    by_book += textbook(bits, k, ones.a);
                }
                (totals, by_book)
            }
            Self::Pyrebloom(layout) => {
                let (a, b) = (string(layout, a), string(layout, b));
                let mut ones = Ones::default();
                ones.add(&a, &b);
                totals.add(&Cells::string(layout.bits(0), layout.spread_hashes()), ones);
                (totals, textbook(layout.bits(0) as f64, layout.spread_hashes(), ones.a))
            }
        }
    }
}

/// Estimates the size of a set from the number of ones in its filter, by the formula of Swamidass
/// and Baldi.
fn textbook(bits: f64, hashes: f64, ones: u64) -> f64 {
    -(bits / hashes) * (-(ones as f64) / bits).ln_1p()
}

/// Returns the only string of a small pyreBloom filter that has these keys.
fn string(layout: &PyreBloom, keys: &[Fingerprint]) -> Vec<u8> {
    let mut string = vec![0; usize::try_from(layout.max_bytes(0)).expect("a small filter")];
    let mut positions = Vec::new();
    for key in keys {
        positions.clear();
        let placed = layout.push_positions(key.to_string().as_bytes(), &mut positions);
        placed.expect("hex digits have a place");
        for BitPosition { bit, .. } in &positions {
            string[*bit as usize / 8] |= 0x80 >> (bit % 8);
        }
    }
    string
}
