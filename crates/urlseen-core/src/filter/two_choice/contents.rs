//! Copy of the contents of a shard.
//!
//! A shard is written as its keys, in any order. A key takes as many bytes as its bits need, the
//! highest ones first. If the keys expire, the number of the shard's generation comes before all
//! keys (4 bytes, little-endian). Each key then has a byte after it: its age in generations, or
//! [`FOREVER`]. An empty shard takes no bytes.

use std::io::{self, Write};

use super::super::block::Block;
use super::super::generation::Generation;
use super::super::local::Blob;
use super::ages::{Ages, Stamp};
use super::layout::{Key, KeyBits, Word};
use super::layouts::Layouts;
use super::shard::words;

/// Number of keys that are written together.
const PAGE: usize = 8192;

/// Byte after a key that never expires.
const FOREVER: u8 = u8::MAX;

/// Copy of the blocks of a shard. It can be read while the shard is in use.
#[derive(Debug)]
pub(in crate::filter) struct Contents {
    pub(super) bits: KeyBits,
    /// Number of keys that have not expired.
    pub(super) keys: u64,
    pub(super) layouts: Layouts,
    /// The live blocks, in order.
    pub(super) bytes: Vec<u8>,
    pub(super) homeless: Vec<(Key, Stamp)>,
    pub(super) ages: Option<Ages>,
}

/// Form in which the keys of a shard are written.
#[derive(Debug, Clone, Copy)]
pub(in crate::filter) struct SavedForm {
    pub(in crate::filter) bits: KeyBits,
    /// True if the keys expire.
    pub(in crate::filter) expires: bool,
}

impl SavedForm {
    /// Returns the number of bytes before the keys.
    pub(in crate::filter) fn head(self) -> usize {
        if self.expires { size_of::<u32>() } else { 0 }
    }

    /// Returns the number of bytes of a key.
    pub(in crate::filter) fn key(self) -> usize {
        self.bits.bytes() + usize::from(self.expires)
    }

    /// Returns the number of bytes of a shard with this number of keys. `None` if no shard has as
    /// many keys.
    pub(in crate::filter) fn len(self, keys: u64) -> Option<u64> {
        let head = if keys == 0 { 0 } else { self.head() as u64 };
        keys.checked_mul(self.key() as u64)?.checked_add(head)
    }

    /// Reads a key of a shard that was in generation `now`. Returns `None` if these bytes are no
    /// key.
    pub(in crate::filter) fn read(
        self,
        bytes: &[u8],
        now: Generation,
    ) -> Option<(Key, Generation)> {
        let (key, age) = bytes.split_at(self.bits.bytes());
        let generation = match age.first() {
            None | Some(&FOREVER) => Generation::FOREVER,
            Some(&age) => now.get().checked_sub(age.into()).map(Generation::new)?,
        };
        generation.age_in(now).and(self.bits.read(key)).map(|key| (key, generation))
    }
}

impl Contents {
    /// Iterates over all keys that have not expired.
    pub(in crate::filter) fn iter(&self) -> impl Iterator<Item = (Key, Stamp)> {
        let blocks = self.bytes.chunks_exact(size_of::<Block>());
        let keys = self.layouts.live().zip(blocks).flat_map(|((layout, block), bytes)| {
            let words = words(layout, self.bits, block, bytemuck::pod_read_unaligned(bytes));
            words.map(|(word, stamp)| (Word::key(word), stamp))
        });
        let dead = self.ages.and_then(|ages| ages.dead());
        keys.chain(self.homeless.iter().copied()).filter(move |&(_, stamp)| Some(stamp) != dead)
    }

    fn form(&self) -> SavedForm {
        SavedForm { bits: self.bits, expires: self.ages.is_some() }
    }
}

impl Blob for Contents {
    fn keys(&self) -> u64 {
        self.keys
    }

    fn len(&self) -> u64 {
        self.form().len(self.keys).expect("the keys are in memory")
    }

    fn write(&self, to: &mut dyn Write) -> io::Result<()> {
        let (form, now) = (self.form(), self.ages.map(|ages| ages.now));
        let mut page = Vec::with_capacity(PAGE * form.key());
        if let Some(now) = now.filter(|_| self.keys > 0) {
            to.write_all(&now.get().to_le_bytes())?;
        }
        for (key, stamp) in self.iter() {
            page.extend_from_slice(&key.get().to_be_bytes()[..self.bits.bytes()]);
            page.extend(now.map(|now| age(stamp, now)));
            if page.len() == PAGE * form.key() {
                to.write_all(&page)?;
                page.clear();
            }
        }
        to.write_all(&page)
    }

    fn into_buffer(self: Box<Self>) -> Vec<u8> {
        self.bytes
    }
}

/// Returns the byte after a key with this stamp, in generation `now`.
fn age(stamp: Stamp, now: Generation) -> u8 {
    match stamp.generation(now) {
        Generation::FOREVER => FOREVER,
        // At most 6.
        #[allow(clippy::cast_possible_truncation)]
        generation => (now.get() - generation.get()) as u8,
    }
}
