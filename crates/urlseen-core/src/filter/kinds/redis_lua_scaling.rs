//! The kind of redis-lua-scaling-bloom-filter, in its plain variant: layers that grow.
//!
//! ```text
//! s = 2^(i-1) n                         items that layer i, from 1, is made for
//! m = floor(-s ln(p 0.5^i) / 0.4804530139182)   its bits
//! k = floor(0.69314718055995 m / s)     its hashes
//! h0 to h3: SHA-1 (text), its first four words of 32 bits
//! bit j  (h[j mod 2] + j h[2 + ((j + j mod 2) mod 4) / 2]) mod m, j = 1 to k
//! keys   BASE:count, and BASE:i
//! ```
//!
//! A text is in the filter if any layer has all its bits. The count of items determines the layer
//! that a new item is added to: the first one that is not full.

use std::sync::Arc;

use sha1::{Digest, Sha1};

use super::sized::{BySize, Made, SIZE};
use super::{Kind, Registered};
use crate::filter::Outlook;
use crate::filter::choice::FilterPlace;
use crate::filter::layout::bit_strings::{LARGEST_STRING, fill};
use crate::filter::layout::{BitPosition, PlacementError, SizeError};
use crate::filter::redis_kind::{
    BIT, Content, Estimate, ForeignKey, KeyLook, Question, RedisKind, text,
};
use crate::filter::strings::{Placed, ScriptFilter, StringBits};
use crate::fingerprint::Fingerprint;

pub(super) const KIND: Kind = Kind(&Registered {
    name: NAME,
    short: NAME,
    summary: "that of redis-lua-scaling-bloom-filter, which grows",
    keys: SIZE,
    usual: &[],
    places: &[FilterPlace::Redis],
    read: |values| Ok(BySize::read(values, KIND, make)?.growing().into()),
});

fn make(capacity: u64, error_rate: f64) -> Made {
    Ok(Arc::new(Scaling::new(capacity, error_rate)?))
}

const NAME: &str = "redis-lua-scaling";

/// The constants of its scripts for ln 2 and its square.
#[allow(clippy::approx_constant)]
const LN_2: f64 = 0.693_147_180_559_95;
const LN_2_SQUARED: f64 = 0.480_453_013_918_2;

/// Bits of an old layer that the script looks at first.
const FEW: usize = 4;

/// The layout of redis-lua-scaling-bloom-filter.
#[derive(Debug, Clone, PartialEq)]
pub struct Scaling {
    /// Layers, as many as Redis has room for.
    layers: Vec<Layer>,
}

/// A layer of the filter.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Layer {
    bits: u64,
    hashes: u32,
    /// Items that this layer and those before it are made for.
    held: u64,
}

impl Scaling {
    /// Makes the layout for the initial size and the precision that its scripts take.
    ///
    /// # Errors
    /// If the capacity is 0, or the error rate is not between 0 and 1. Also if the first layer has
    /// no bit, or more bits than a Redis string.
    pub fn new(capacity: u64, error_rate: f64) -> Result<Self, SizeError> {
        if capacity == 0 {
            return Err(SizeError::new(NAME, "the capacity", capacity, "it is 1 or more"));
        }
        SizeError::check_error_rate(NAME, error_rate)?;
        let layers: Vec<_> = (1..=32).map_while(|i| Layer::of(i, capacity, error_rate)).collect();
        if layers.is_empty() {
            let found = format!("{capacity} at the error rate {error_rate:e}");
            let allowed = "its first layer takes from 1 bit to 2^32";
            return Err(SizeError::new(NAME, "the capacity", found, allowed));
        }
        Ok(Self { layers })
    }

    /// Returns the number of the layer, from 0, for the item of this number, from 1. Returns the
    /// last layer if all are full.
    fn layer_of(&self, item: u64) -> usize {
        let after = self.layers.iter().position(|layer| item <= layer.held);
        after.unwrap_or(self.layers.len() - 1)
    }

    /// Returns the chance that at least one layer is wrong. All layers but the newest are full.
    fn error_rate(&self, keys: u64) -> f64 {
        let mut right = 0.0;
        let mut before = 0;
        for &layer in &self.layers[..=self.layer_of(keys)] {
            let items = if layer == self.layers[self.layers.len() - 1] {
                keys.saturating_sub(before)
            } else {
                keys.min(layer.held).saturating_sub(before)
            };
            right += (-layer.error_rate(items as f64)).ln_1p();
            before = layer.held;
        }
        0.0 - f64::exp_m1(right)
    }

    /// Appends the positions of a text in all layers.
    fn push(&self, text: &[u8], positions: &mut Vec<BitPosition>) {
        let words = words(text);
        // Number 0 is the count.
        for (string, layer) in (1..).zip(&self.layers) {
            positions.extend(layer.positions(words).map(|bit| BitPosition { string, bit }));
        }
    }
}

impl Layer {
    /// Makes layer `number`, from 1; `None` if Redis has no room for it.
    fn of(number: i32, capacity: u64, error_rate: f64) -> Option<Self> {
        let scale = 2_f64.powi(number - 1) * capacity as f64;
        let bits = (-(scale * (error_rate * 0.5_f64.powi(number)).ln()) / LN_2_SQUARED).floor();
        let hashes = (LN_2 * bits / scale).floor();
        if !(hashes >= 1.0 && bits <= LARGEST_STRING as f64) {
            return None;
        }
        let held = (2_f64.powi(number) - 1.0) * capacity as f64;
        // Whole, positive, and at most 2^32 but for the last, which is below 2^53.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        Some(Self { bits: bits as u64, hashes: hashes as u32, held: held as u64 })
    }

    /// Iterates over the bits of a text with these words.
    fn positions(self, words: [u64; 4]) -> impl Iterator<Item = u32> {
        (1..=u64::from(self.hashes)).map(move |j| {
            // 0 and 1, and the numbers that they lead to: 2 and 3.
            #[allow(clippy::cast_possible_truncation)]
            let (first, second) = ((j % 2) as usize, 2 + ((j + j % 2) % 4 / 2) as usize);
            // The position is below 2^32.
            #[allow(clippy::cast_possible_truncation)]
            let bit = ((words[first] + j * words[second]) % self.bits) as u32;
            bit
        })
    }

    /// Returns the share of unseen texts that the layer reports as seen with this number of items.
    fn error_rate(self, items: f64) -> f64 {
        let hashes = f64::from(self.hashes);
        fill(hashes * items, self.bits as f64).powf(hashes)
    }
}

/// Returns the words from which all positions of a text come.
fn words(text: &[u8]) -> [u64; 4] {
    let digest = Sha1::digest(text);
    std::array::from_fn(|word| {
        let bytes = &digest[4 * word..4 * word + 4];
        bytes.iter().fold(0, |word, &byte| word << 8 | u64::from(byte))
    })
}

impl RedisKind for Scaling {
    fn used(&self) -> Vec<u32> {
        // There are at most 33 keys.
        #[allow(clippy::cast_possible_truncation)]
        let layers = self.layers.len() as u32;
        (0..=layers).collect()
    }

    /// Returns only the count, which tells the number of keys.
    fn looked_at(&self) -> Vec<u32> {
        vec![0]
    }

    fn key(&self, base: &str, number: u32) -> String {
        if number == 0 { format!("{base}:count") } else { format!("{base}:{number}") }
    }

    fn content(&self, number: u32) -> Content {
        let Some(index) = number.checked_sub(1) else { return Content::Count };
        let bits = self.layers[index as usize].bits;
        // The other layers may never be needed.
        Content::Bits { bits, max_bytes: bits.div_ceil(8), is_reserved: index == 0 }
    }

    fn foreign(&self, base: &str) -> Vec<ForeignKey> {
        let layered = "which the layered variant of redis-lua-scaling-bloom-filter has: urlseen \
                       reads and writes the plain one alone. Choose another filter.key";
        let larger = "which is a layer that a filter of this capacity and error rate never has: \
                      it was made with others";
        vec![
            ForeignKey { key: format!("{base}:1:count"), why: layered },
            ForeignKey { key: format!("{base}:{}", self.layers.len() + 1), why: larger },
        ]
    }

    fn positions(&self, fingerprint: &Fingerprint) -> Result<Vec<BitPosition>, PlacementError> {
        let mut positions = Vec::new();
        self.push(&text(fingerprint), &mut positions);
        Ok(positions)
    }

    fn check(&self, fingerprint: &Fingerprint) -> Result<(), PlacementError> {
        // The script takes an empty text for an item that passes unchecked.
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
        let lengths = layers.iter().map(|layer| layer.bits.div_ceil(8));
        let bits = layers.iter().map(|layer| layer.bits).sum();
        let hashes = layers.last().map_or(0, |layer| layer.hashes);
        Outlook::of_strings(lengths, bits, hashes, self.error_rate(keys))
    }

    fn lua(&self) -> String {
        let layer = |&Layer { bits, hashes, held }: &Layer| format!("{{{bits}, {hashes}, {held}}}");
        let layers: Vec<_> = self.layers.iter().map(layer).collect();
        let text = include_str!("redis_lua_scaling.lua");
        format!("local LAYERS = {{{}}}\n{text}", layers.join(", "))
    }

    /// Counts all bits of one layer, and a few of most others.
    fn cost(&self) -> usize {
        let most = self.layers.iter().map(|layer| layer.hashes).max().unwrap_or(1);
        BIT * (2 * most as usize + FEW * self.layers.len())
    }

    fn question(&self, base: &str, fingerprints: &[Option<&Fingerprint>]) -> Question {
        let item = |it: Option<&Fingerprint>| it.map_or_else(Vec::new, |it| text(it).into());
        Question {
            keys: self.used().into_iter().map(|number| self.key(base, number)).collect(),
            places: Vec::new(),
            extras: fingerprints.iter().copied().map(item).collect(),
        }
    }

    fn commands(&self) -> &'static [&'static [&'static str]] {
        &[
            &["GET"],
            &["INCRBY", "1"],
            &["BITFIELD_RO", "GET", "u1", "0"],
            &["BITFIELD", "SET", "u1", "0", "0"],
            &["BITCOUNT"],
        ]
    }

    /// Returns the bits of the first layer.
    fn bits(&self) -> u64 {
        self.layers[0].bits
    }

    fn hashes(&self) -> u32 {
        self.layers[0].hashes
    }

    fn in_memory(&self) -> Option<Box<dyn ScriptFilter>> {
        let bits: Vec<_> = self.layers.iter().map(|layer| layer.bits).collect();
        let bits = StringBits::of(&bits);
        Some(Box::new(ScalingFilter { layout: self.clone(), bits, keys: 0 }))
    }
}

/// A filter of this kind in this process's memory.
#[derive(Debug)]
struct ScalingFilter {
    layout: Scaling,
    bits: StringBits,
    keys: u64,
}

impl ScriptFilter for ScalingFilter {
    fn add_all(&mut self, texts: &[&[u8]], each: &mut dyn FnMut(Placed)) {
        for text in texts {
            let (words, newest) = (words(text), self.layout.layer_of(self.keys + 1));
            let Self { layout, bits, .. } = self;
            let positions = |index: usize| {
                // There are at most 32 layers.
                #[allow(clippy::cast_possible_truncation)]
                let string = index as u32;
                layout.layers[index].positions(words).map(move |bit| BitPosition { string, bit })
            };
            if (0..=newest).any(|index| positions(index).all(|position| bits.has(position))) {
                each(Placed::Seen);
                continue;
            }
            positions(newest).for_each(|position| bits.set(position));
            self.keys += 1;
            each(Placed::Added);
        }
    }

    fn keys(&self) -> u64 {
        self.keys
    }
}

#[cfg(test)]
#[path = "redis_lua_scaling_tests.rs"]
mod tests;
