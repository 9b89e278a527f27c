//! Copy of the contents of a shard.
//!
//! A shard is written in the form of [`SavedForm`]. A key takes as many bytes as its bits need, the
//! highest ones first.

use std::io::{self, Write};

use super::super::ages::{ShardAges, Stamp};
use super::super::generation::Generation;
use super::super::local::Blob;
use super::super::region::Block;
use super::super::saved_keys::SavedForm;
use super::super::{KeyHash, ShardId};
use super::layout::{Key, KeyBits, Layouts, Word};
use super::shard::words;

/// Number of keys that are written together.
const PAGE: usize = 8192;

/// Copy of the blocks of a shard. It can be read while the shard is in use.
#[derive(Debug)]
pub(crate) struct Contents {
    pub(super) bits: KeyBits,
    /// Number of keys that have not expired.
    pub(super) keys: u64,
    pub(super) layouts: Layouts,
    /// The live blocks, in order.
    pub(super) bytes: Vec<u8>,
    pub(super) homeless: Vec<(Key, Stamp)>,
    pub(super) ages: Option<ShardAges>,
}

impl Contents {
    /// Iterates over all keys that have not expired.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Key, Stamp)> {
        let blocks = self.bytes.chunks_exact(size_of::<Block>());
        let keys = self.layouts.live().zip(blocks).flat_map(|((layout, block), bytes)| {
            let words = words(layout, self.bits, block, bytemuck::pod_read_unaligned(bytes));
            words.map(|(word, stamp)| (Word::key(word), stamp))
        });
        let dead = self.ages.and_then(|ages| ages.dead());
        keys.chain(self.homeless.iter().copied()).filter(move |&(_, stamp)| Some(stamp) != dead)
    }

    fn form(&self) -> SavedForm {
        SavedForm { key_bytes: self.bits.bytes(), expires: self.ages.is_some() }
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
        let (form, now) = (self.form(), self.ages.map(|ages| ages.now).unwrap_or_default());
        let mut page = Vec::with_capacity(PAGE * form.key());
        if let Some(begin) = form.begin(self.keys, now) {
            to.write_all(&begin)?;
        }
        for (key, stamp) in self.iter() {
            page.extend_from_slice(&key.0.to_be_bytes()[..self.bits.bytes()]);
            page.extend(form.age(stamp.generation(now), now));
            if page.len() == PAGE * form.key() {
                to.write_all(&page)?;
                page.clear();
            }
        }
        to.write_all(&page)
    }

    fn key_hashes(&self, shard: ShardId) -> Option<Vec<(KeyHash, Generation)>> {
        let now = self.ages.map(|ages| ages.now).unwrap_or_default();
        let dated =
            |(key, stamp): (Key, Stamp)| (self.bits.key_hash(shard, key), stamp.generation(now));
        Some(self.iter().map(dated).collect())
    }

    fn into_buffer(self: Box<Self>) -> Vec<u8> {
        self.bytes
    }
}
