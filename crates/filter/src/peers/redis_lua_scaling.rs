//! Kind of redis-lua-scaling-bloom-filter in its plain variant. A filter grows by layers.
//!
//! ```text
//! s = 2^(i-1) n                         capacity of layer i in items; i = 1, 2, …
//! m = floor(-s ln(p 0.5^i) / 0.4804530139182)   its bits
//! k = floor(0.69314718055995 m / s)     its hashes
//! h0 to h3: SHA-1 (text), its first four words of 32 bits
//! bit j  (h[j mod 2] + j h[2 + ((j + j mod 2) mod 4) / 2]) mod m, j = 1 to k
//! keys   BASE:count, and BASE:i
//! ```
//!
//! A text is in the filter if any layer has all bits of the text. A new item is added to the first
//! layer that is not full. The count of items determines that layer.

use sha1::{Digest, Sha1};
use urlseen_fingerprint::Fingerprint;

use crate::Outlook;
use crate::SpecError;
use crate::kinds::kind::{IN_REDIS, Kind, Registered};
use crate::number::whole;
use crate::peers::bit_strings::{BitPosition, LARGEST_STRING, PlacementError, rate};
use crate::redis_kind::{
    BIT, Content, Estimate, ForeignKey, KeyLook, KindScript, Question, RedisKind, text,
};

pub(crate) const KIND: Kind = Kind(&Registered {
    name: NAME,
    grows: true,
    read: |values| values.by_size(Scaling::new),
    ..IN_REDIS
});

const NAME: &str = "redis-lua-scaling";

/// Natural logarithm of 2, and its square, in the digits of the project's scripts.
#[allow(clippy::approx_constant)]
const LN_2: f64 = 0.693_147_180_559_95;
const LN_2_SQUARED: f64 = 0.480_453_013_918_2;

/// Number of bits of an old layer that the script tests first.
const FEW: usize = 4;

/// Layout of a filter of redis-lua-scaling-bloom-filter.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Scaling {
    /// All layers that fit into Redis strings.
    layers: Vec<ScalingLayer>,
}

/// A layer of the filter.
#[derive(Debug, Clone, Copy, PartialEq)]
struct ScalingLayer {
    bits: u64,
    hashes: u32,
    /// Number of items that this layer and all layers before it are made for.
    held: u64,
}

impl Scaling {
    /// Computes the layout for a capacity in items and an error rate. The project's scripts call
    /// the capacity the initial size, and the error rate the precision.
    ///
    /// # Errors
    /// The capacity is 0, or the error rate is not between 0 and 1. Or the first layer would have
    /// no bit, or more bits than fit into a Redis string.
    pub(crate) fn new(capacity: u64, error_rate: f64) -> Result<Self, SpecError> {
        SpecError::check_size(NAME, capacity, error_rate)?;
        let layers: Vec<_> =
            (1..=32).map_while(|i| ScalingLayer::of(i, capacity, error_rate)).collect();
        if layers.is_empty() {
            let allowed = "the first layer has 1 to 2^32 bits";
            return Err(SpecError::of_size(NAME, capacity, error_rate, allowed));
        }
        Ok(Self { layers })
    }

    /// Returns the index of the layer that gets this item. Items are counted from 1. If all layers
    /// are full, returns the index of the last layer.
    fn layer_of(&self, item: u64) -> usize {
        let after = self.layers.iter().position(|layer| item <= layer.held);
        after.unwrap_or(self.layers.len() - 1)
    }

    /// Returns the chance that at least one layer reports an unseen text as seen. All layers except
    /// the newest one are full.
    fn error_rate(&self, keys: u64) -> f64 {
        let mut right = 0.0;
        let mut before = 0;
        for &layer in &self.layers[..=self.layer_of(keys)] {
            let items = if layer == self.layers[self.layers.len() - 1] {
                keys.saturating_sub(before)
            } else {
                keys.min(layer.held).saturating_sub(before)
            };
            let wrong = rate(items as f64, layer.hashes, layer.bits as f64);
            right += (-wrong).ln_1p();
            before = layer.held;
        }
        0.0 - f64::exp_m1(right)
    }
}

impl ScalingLayer {
    /// Computes layer `number`, counted from 1. Returns `None` if it does not fit into a Redis
    /// string.
    fn of(number: i32, capacity: u64, error_rate: f64) -> Option<Self> {
        let scale = 2_f64.powi(number - 1) * capacity as f64;
        let bits = (-(scale * (error_rate * 0.5_f64.powi(number)).ln()) / LN_2_SQUARED).floor();
        let hashes = (LN_2 * bits / scale).floor();
        if !(hashes >= 1.0 && bits <= LARGEST_STRING as f64) {
            return None;
        }
        let held = (2_f64.powi(number) - 1.0) * capacity as f64;
        let hashes = u32::try_from(whole(hashes)).expect("at most 1550 a layer");
        Some(Self { bits: whole(bits), hashes, held: whole(held) })
    }

    /// Iterates over the bit positions of a text in this layer. `words` are the words of the text's
    /// digest.
    fn positions(self, words: [u64; 4]) -> impl Iterator<Item = u32> {
        (1..=u64::from(self.hashes)).map(move |j| {
            // The first index is 0 or 1, and the second one is 2 or 3.
            #[allow(clippy::cast_possible_truncation)]
            let (first, second) = ((j % 2) as usize, 2 + ((j + j % 2) % 4 / 2) as usize);
            // The position is below 2^32.
            #[allow(clippy::cast_possible_truncation)]
            let bit = ((words[first] + j * words[second]) % self.bits) as u32;
            bit
        })
    }
}

/// Returns the four words from which all bit positions of a text are computed.
fn words(text: &[u8]) -> [u64; 4] {
    let digest = Sha1::digest(text);
    std::array::from_fn(|word| {
        let bytes = &digest[4 * word..4 * word + 4];
        bytes.iter().fold(0, |word, &byte| word << 8 | u64::from(byte))
    })
}

impl RedisKind for Scaling {
    fn keys(&self) -> Vec<(u32, Content)> {
        let layer = |(number, layer): (u32, &ScalingLayer)| {
            // The other layers may never be needed. A fingerprint can be in different layers of two
            // filters.
            let (bits, is_reserved, crowded) = (layer.bits, number == 1, None);
            (number, Content::Bits { bits, is_reserved, crowded })
        };
        let layers = (1..).zip(&self.layers).map(layer);
        std::iter::once((0, Content::Count)).chain(layers).collect()
    }

    fn key(&self, base: &str, number: u32) -> String {
        if number == 0 { format!("{base}:count") } else { format!("{base}:{number}") }
    }

    fn foreign(&self, base: &str) -> Vec<ForeignKey> {
        let layered = "which only filters of the layered variant of \
                       redis-lua-scaling-bloom-filter have. urlseen supports only the plain \
                       variant. Choose another filter.key";
        let larger = "which is a layer that no filter of this capacity and error rate has: the \
                      existing filter was made with other values";
        vec![
            ForeignKey { key: format!("{base}:1:count"), why: layered },
            ForeignKey { key: format!("{base}:{}", self.layers.len() + 1), why: larger },
        ]
    }

    fn positions(&self, fingerprint: &Fingerprint) -> Result<Vec<BitPosition>, PlacementError> {
        let words = words(&text(fingerprint));
        // Number 0 is the count.
        let layers = (1..).zip(&self.layers);
        let positions = layers.flat_map(|(string, layer)| {
            layer.positions(words).map(move |bit| BitPosition { string, bit })
        });
        Ok(positions.collect())
    }

    fn check(&self, fingerprint: &Fingerprint) -> Result<(), PlacementError> {
        // In the script, an empty text stands for an item that passes unchecked.
        if text(fingerprint).is_empty() { Err(PlacementError::Empty) } else { Ok(()) }
    }

    /// Returns true if a layer has all of the text's bits.
    fn is_seen(&self, answers: &[bool]) -> bool {
        answers.contains(&true)
    }

    fn estimate(&self, looks: &[KeyLook]) -> Estimate {
        let keys = looks.first().map_or(0, |count| count.size);
        Estimate { keys, error_rate: self.error_rate(keys) }
    }

    fn outlook(&self, keys: u64) -> Outlook {
        let layers = &self.layers[..=self.layer_of(keys.max(1))];
        let bits: Vec<_> = layers.iter().map(|layer| layer.bits).collect();
        let hashes = layers.last().map_or(0, |layer| layer.hashes);
        Outlook::of_strings(&bits, hashes, self.error_rate(keys))
    }

    fn script(&self) -> KindScript {
        let layer = |&ScalingLayer { bits, hashes, held }: &ScalingLayer| {
            format!("{{{bits}, {hashes}, {held}}}")
        };
        let layers: Vec<_> = self.layers.iter().map(layer).collect();
        let text = include_str!("redis_lua_scaling.lua");
        let most = self.layers.iter().map(|layer| layer.hashes).max().unwrap_or(1);
        KindScript {
            lua: format!("local LAYERS = {{{}}}\n{text}", layers.join(", ")),
            // Counts the bits of one layer twice, because the script tests them and then sets them.
            // Also counts the few bits that the script tests first in each layer.
            cost: BIT * (2 * most as usize + FEW * self.layers.len()),
            commands: &[
                &["GET"],
                &["INCRBY", "1"],
                &["BITFIELD_RO", "GET", "u1", "0"],
                &["BITFIELD", "SET", "u1", "0", "0"],
                &["BITCOUNT"],
            ],
        }
    }

    fn question(&self, base: &str, fingerprints: &[Option<&Fingerprint>]) -> Question {
        let keys = self.keys().into_iter().map(|(number, _)| self.key(base, number));
        Question::of_texts(keys.collect(), fingerprints)
    }

    fn newest(&self, keys: u64) -> Option<u32> {
        // Number 0 is the count. There are at most 32 layers.
        #[allow(clippy::cast_possible_truncation)]
        let number = self.layer_of(keys + 1) as u32 + 1;
        Some(number)
    }
}

#[cfg(test)]
#[path = "redis_lua_scaling_tests.rs"]
mod tests;
