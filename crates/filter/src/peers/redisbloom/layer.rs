//! Layer of a filter: a Bloom filter with its own capacity and error rate.

use crate::SpecError;
use crate::key_hash::murmur64a;
use crate::peers::redisbloom::parameters::LayerParameters;
use crate::peers::redisbloom::rate::Rate;
use crate::{KeyHash, ShardId};

/// Layer of a filter, with its bits.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Layer {
    pub(crate) parameters: LayerParameters,
    /// Number of bits that are 1.
    pub(crate) ones: u64,
    /// Bytes of the layer. Bit `x` is bit `x % 8`, from the lowest, of byte `x / 8`. A layer that
    /// is still being loaded has fewer bytes than its parameters say.
    pub(crate) bits: Vec<u8>,
}

/// Seed of the first hash of an item.
const SEED: u64 = 0xc6a4_a793_5bd1_e995;

/// Computes both hashes of an item, from which its bit positions are computed.
pub(crate) fn key_hash(item: &[u8]) -> KeyHash {
    let h1 = murmur64a(item, SEED);
    KeyHash { h1, h2: murmur64a(item, h1), shard: ShardId::WHOLE, kept: None }
}

impl Layer {
    /// Allocates an empty layer.
    pub(crate) fn new(parameters: LayerParameters) -> Result<Self, SpecError> {
        let wanted = parameters.bytes;
        let refused = || {
            let why = "bytes of memory for a RedisBloom layer";
            SpecError(format!("the system did not give {wanted} {why}"))
        };
        let bytes = usize::try_from(wanted).map_err(|_| refused())?;
        let mut bits = Vec::new();
        bits.try_reserve_exact(bytes).map_err(|_| refused())?;
        bits.resize(bytes, 0);
        Ok(Self { parameters, ones: 0, bits })
    }

    /// Returns the current error rate of the layer.
    pub(crate) fn rate_now(&self) -> Rate {
        self.parameters
            .rate(self.ones as f64 / self.parameters.modulus() as f64, self.parameters.size)
    }

    /// Returns the number of further items for which the layer has room.
    pub(crate) fn room(&self) -> u64 {
        self.parameters.capacity.saturating_sub(self.parameters.size)
    }

    pub(crate) fn contains(&self, key_hash: KeyHash) -> bool {
        self.places(key_hash).all(|(byte, mask)| self.bits[byte] & mask != 0)
    }

    pub(crate) fn set(&mut self, key_hash: KeyHash) {
        for (byte, mask) in self.places(key_hash) {
            let byte = &mut self.bits[byte];
            self.ones += u64::from(*byte & mask == 0);
            *byte |= mask;
        }
        self.parameters.size += 1;
    }

    /// Iterates over the positions of an item: the index of the byte, and the mask of the bit.
    fn places(&self, key_hash: KeyHash) -> impl Iterator<Item = (usize, u8)> + use<> {
        self.parameters.positions(key_hash).map(|bit| {
            // All bytes of the layer are in memory.
            #[allow(clippy::cast_possible_truncation)]
            let byte = (bit / 8) as usize;
            (byte, 1 << (bit % 8))
        })
    }
}
