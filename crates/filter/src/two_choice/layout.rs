//! Layout of the blocks of a shard: places of words, before and after a growth.

use std::num::NonZeroU8;
use std::str::FromStr;

use super::super::{KeyHash, ShardId};
use super::slots::Format;

/// Odd number c. Its multiples spread evenly, because it is close to 2^64 divided by the golden
/// ratio (Knuth, "The Art of Computer Programming", volume 3, section 6.4).
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// Number whose product with [`MULTIPLIER`] is 1 mod 2^64.
const INVERSE: u64 = inverse(MULTIPLIER);

/// Inverts an odd number mod 2^64 by Newton's method. Each step doubles the number of right bits.
const fn inverse(odd: u64) -> u64 {
    // Three bits are right: the square of an odd number is 1 mod 8.
    let (mut inverse, mut bits) = (odd, 3);
    while bits < u64::BITS {
        inverse = inverse.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(inverse)));
        bits *= 2;
    }
    inverse
}

/// Number h of the bits of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KeyBits(pub(crate) NonZeroU8);

impl KeyBits {
    /// Largest number of bits. A border after all words fits into 64 bits, too.
    pub(crate) const MAX: u32 = 63;

    /// Returns `None` if the number is 0 or above [`KeyBits::MAX`].
    pub(crate) fn new(bits: u32) -> Option<Self> {
        let bits = u8::try_from(bits).ok().and_then(NonZeroU8::new)?;
        (u32::from(bits.get()) <= Self::MAX).then_some(Self(bits))
    }

    pub(crate) fn get(self) -> u32 {
        self.0.get().into()
    }

    /// Returns the key whose bits are the highest ones of a hash.
    #[inline]
    pub(crate) fn key(self, hash: u64) -> Key {
        Key(hash & !(self.unit() - 1))
    }

    /// Returns the number of possible keys.
    pub(crate) fn count(self) -> f64 {
        2_f64.powi(self.get().cast_signed())
    }

    /// Returns the number of bytes that have all bits.
    pub(crate) fn bytes(self) -> usize {
        self.get().div_ceil(8) as usize
    }

    /// Returns the key with these bytes, the highest ones first. Returns `None` if they are no key.
    pub(crate) fn read(self, bytes: &[u8]) -> Option<Key> {
        let mut all = [0; size_of::<u64>()];
        all[..bytes.len()].copy_from_slice(bytes);
        let hash = u64::from_be_bytes(all);
        Some(self.key(hash)).filter(|key| key.0 == hash)
    }

    /// Returns the key hash of a stored key. It lacks the bits that the filter does not keep.
    pub(crate) fn key_hash(self, shard: ShardId, key: Key) -> KeyHash {
        KeyHash { h1: 0, h2: key.0, shard, kept: Some(self.0) }
    }

    /// Returns the smallest difference between two words.
    #[inline]
    fn unit(self) -> u64 {
        1 << (u64::BITS - self.get())
    }
}

impl FromStr for KeyBits {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        text.parse().ok().and_then(Self::new).ok_or(())
    }
}

/// Key of a shard, and at the same time its word x. The h bits of a word are the highest ones of
/// the 64 bits. The lower bits are 0. A product mod 2^64 with such a number is a product mod 2^h
/// with the same position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key(pub(super) u64);

/// One of the two words of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub(super) enum Which {
    X = 1,
    Y = 2,
}

/// Word of a key, and its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) value: u64,
    pub(super) which: Which,
}

impl Key {
    /// Returns the words x and y.
    #[inline]
    pub(super) fn words(self) -> [Word; 2] {
        let y = self.0.wrapping_mul(MULTIPLIER);
        [Word { value: self.0, which: Which::X }, Word { value: y, which: Which::Y }]
    }
}

impl Word {
    /// Returns the key of the word.
    #[inline]
    pub(super) fn key(self) -> Key {
        match self.which {
            Which::X => Key(self.value),
            Which::Y => Key(self.value.wrapping_mul(INVERSE)),
        }
    }

    /// Returns the other word of the same key.
    pub(super) fn other(self) -> Self {
        let [x, y] = self.key().words();
        match self.which {
            Which::X => y,
            Which::Y => x,
        }
    }
}

/// Layout of the blocks of a shard.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layout {
    pub(super) blocks: u64,
    pub(super) format: &'static Format,
}

/// Place of a word in a layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SlotPlace {
    pub(super) block: u64,
    /// Content of the slot: the tag, and the name of the word.
    pub(super) content: u64,
}

impl Layout {
    /// Returns the smallest layout with at least this number of slots in which block and tag
    /// determine a word. The slots have stamps if `has_stamps` is true.
    pub(super) fn with_slots(slots: u64, bits: KeyBits, has_stamps: bool) -> Self {
        let layout = |format: &'static Format| Self {
            blocks: slots.div_ceil(format.slots as u64).max(1),
            format,
        };
        // The format with the most slots comes first.
        let fits = Format::all(has_stamps).rev().map(layout).find(|it| it.is_lossless(bits));
        fits.unwrap_or_else(|| {
            let widest = Format::all(has_stamps).next().expect("there are formats");
            Self { blocks: 1 << (bits.get() - widest.tag_bits()), format: widest }
        })
    }

    /// Returns true if block and tag determine a word.
    fn is_lossless(&self, bits: KeyBits) -> bool {
        self.format.tag_bits() + self.blocks.ilog2() >= bits.get()
    }

    /// Returns the layout of a shard that grows to 1.25 times its slots. If possible, a block has
    /// one slot more. All words move to higher blocks, or stay.
    pub(super) fn grown(&self, bits: KeyBits) -> Self {
        let slots = self.slots() + self.slots().div_ceil(4);
        let layout = |format: &'static Format| Self {
            blocks: slots.div_ceil(format.slots as u64).max(self.blocks + 1),
            format,
        };
        let denser = self.format.denser().map(layout);
        denser.filter(|it| it.is_lossless(bits)).unwrap_or_else(|| layout(self.format))
    }

    /// Returns the number of slots of all blocks.
    pub(super) fn slots(&self) -> u64 {
        self.blocks * self.format.slots as u64
    }

    /// Returns the place of a word.
    #[inline]
    pub(super) fn place(&self, word: Word) -> SlotPlace {
        let product = u128::from(word.value) * u128::from(self.blocks);
        // The upper half, and the lower.
        #[allow(clippy::cast_possible_truncation)]
        let (block, rest) = ((product >> u64::BITS) as u64, product as u64);
        let tag = rest >> (u64::BITS - self.format.tag_bits());
        SlotPlace { block, content: tag << 2 | word.which as u64 }
    }

    /// Returns a decoder of the slots of a block.
    pub(super) fn decoder(&self, block: u64, bits: KeyBits) -> Decoder {
        let (unit, blocks) = (bits.unit(), self.blocks);
        let first = self.last_before(block).map_or(0, |last| (last | (unit - 1)).wrapping_add(1));
        Decoder {
            first,
            rest: first.wrapping_mul(blocks),
            // If a block has at most one word, the words have no difference in a block.
            step: unit.saturating_mul(blocks),
            unit,
            shift: u64::BITS - self.format.tag_bits(),
        }
    }

    /// Returns the last number before the words of a block; `None` for the first block.
    pub(super) fn last_before(&self, block: u64) -> Option<u64> {
        let first = (u128::from(block) << u64::BITS).div_ceil(u128::from(self.blocks));
        // The words of a block are below 2^64.
        first.checked_sub(1).map(|last| u64::try_from(last).unwrap_or(u64::MAX))
    }

    /// Returns the first block that may have words after `last`.
    pub(super) fn first_after(&self, last: u64) -> u64 {
        let product = (u128::from(last) + 1) * u128::from(self.blocks);
        // At most the number of blocks.
        #[allow(clippy::cast_possible_truncation)]
        let block = (product >> u64::BITS) as u64;
        block
    }
}

/// Finds the words of a block by the contents of its slots.
#[derive(Debug, Clone, Copy)]
pub(super) struct Decoder {
    /// Smallest word of the block.
    first: u64,
    /// Lower half of the product of this word and the number of blocks.
    rest: u64,
    /// Difference between the products of two neighbouring words.
    step: u64,
    /// Difference between two neighbouring words.
    unit: u64,
    /// Number of the bits of a product below a tag.
    shift: u32,
}

impl Decoder {
    /// Returns the word of a slot with this content. Returns `None` if the slot is empty.
    #[inline]
    pub(super) fn word(&self, content: u64) -> Option<Word> {
        let which = match content & 3 {
            1 => Which::X,
            2 => Which::Y,
            _ => return None,
        };
        // The first word whose product has at least this tag. It has this tag, because block and
        // tag determine a word.
        let rest = content >> 2 << self.shift;
        let words = rest.saturating_sub(self.rest).div_ceil(self.step);
        Some(Word { value: self.first.wrapping_add(words * self.unit), which })
    }
}

/// Layouts of the blocks of a shard. Words up to a border have the first layout, and words after it
/// have the second one. Unless the shard is growing, the layouts are the same.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layouts {
    both: [Layout; 2],
    /// Last word of the first layout.
    last: u64,
    /// Number of blocks of the first layout whose keys were not moved.
    unmoved: u64,
}

/// Block whose keys are due to be moved.
#[derive(Debug, Clone, Copy)]
pub(super) struct Due {
    pub(super) block: u64,
    /// First block to which its keys can move.
    pub(super) to: u64,
    /// Last number before its words; `None` for the first block.
    before: Option<u64>,
}

impl Layouts {
    pub(super) fn new(layout: Layout) -> Self {
        Self { both: [layout; 2], last: u64::MAX, unmoved: layout.blocks }
    }

    /// Returns the layout of a word.
    #[inline]
    pub(super) fn of(&self, word: Word) -> &Layout {
        &self.both[usize::from(word.value > self.last)]
    }

    pub(super) fn first(&self) -> &Layout {
        &self.both[0]
    }

    pub(super) fn second(&self) -> &Layout {
        &self.both[1]
    }

    pub(super) fn is_growing(&self) -> bool {
        self.both[0].blocks != self.both[1].blocks
    }

    /// Returns the first block of the second layout that may have keys.
    pub(super) fn edge(&self) -> u64 {
        self.both[1].first_after(self.last)
    }

    /// Begins the growth to the next layout.
    pub(super) fn begin(&mut self, bits: KeyBits) {
        self.both[1] = self.both[0].grown(bits);
    }

    /// Returns the next block whose keys are to be moved: the last one that was not moved. Returns
    /// `None` if the shard is not growing.
    pub(super) fn due(&self) -> Option<Due> {
        let block = self.is_growing().then(|| self.unmoved - 1)?;
        let before = self.both[0].last_before(block);
        Some(Due { block, to: before.map_or(0, |last| self.both[1].first_after(last)), before })
    }

    /// Gives the words of a block the second layout. After the first block, the growth ends.
    pub(super) fn moved(&mut self, due: Due) {
        match due.before {
            Some(before) => (self.last, self.unmoved) = (before, due.block),
            None => *self = Self::new(self.both[1]),
        }
    }

    /// Returns one of the blocks that may have keys, with its layout: the block with this number
    /// in the order of [`Layouts::live`].
    pub(super) fn nth_live(&self, number: u64) -> Option<(Layout, u64)> {
        let [first, second] = self.both;
        let Some(later) = number.checked_sub(self.unmoved) else { return Some((first, number)) };
        let block = self.edge() + later;
        (self.is_growing() && block < second.blocks).then_some((second, block))
    }

    /// Iterates over all blocks that may have keys, each with its layout.
    pub(super) fn live(&self) -> impl Iterator<Item = (Layout, u64)> + use<> {
        let [first, second] = self.both;
        let end = if self.is_growing() { second.blocks } else { 0 };
        let moved = (self.edge()..end).map(move |block| (second, block));
        (0..self.unmoved).map(move |block| (first, block)).chain(moved)
    }
}
