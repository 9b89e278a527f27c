//! Saved form of the keys of a shard.
//!
//! A shard is written as its keys, in any order. If the keys expire, the number of the shard's
//! generation comes before all keys (4 bytes, little-endian). Each key then has a byte after it:
//! its age in generations, or [`FOREVER`]. An empty shard takes no bytes.

use std::io::{self, Read};

use super::generation::Generation;

/// Largest number of saved keys that are read together.
const PAGE: u64 = 8192;

/// Byte after a key that never expires.
const FOREVER: u8 = u8::MAX;

/// Form in which the keys of a shard are written.
#[derive(Debug, Clone, Copy)]
pub(super) struct SavedForm {
    /// Number of bytes of a key without its age.
    pub(super) key_bytes: usize,
    /// True if the keys expire.
    pub(super) expires: bool,
}

impl SavedForm {
    /// Returns the number of bytes before the keys.
    fn head(self) -> usize {
        if self.expires { size_of::<u32>() } else { 0 }
    }

    /// Returns the number of bytes of a key.
    pub(super) fn key(self) -> usize {
        self.key_bytes + usize::from(self.expires)
    }

    /// Returns the number of bytes of a shard with this number of keys. `None` if no shard has as
    /// many keys.
    pub(super) fn len(self, keys: u64) -> Option<u64> {
        let head = if keys == 0 { 0 } else { self.head() as u64 };
        keys.checked_mul(self.key() as u64)?.checked_add(head)
    }

    /// Returns the bytes before the keys of a shard, which is in generation `now`.
    pub(super) fn begin(self, keys: u64, now: Generation) -> Option<[u8; size_of::<u32>()]> {
        (self.expires && keys > 0).then(|| now.get().to_le_bytes())
    }

    /// Returns the byte after a key of this generation. The shard is in generation `now`.
    pub(super) fn age(self, generation: Generation, now: Generation) -> Option<u8> {
        let age = || u8::try_from(now.get() - generation.get()).expect("below 6");
        self.expires.then(|| if generation == Generation::FOREVER { FOREVER } else { age() })
    }

    /// Divides a saved key into its bytes and its generation. The shard was in generation `now`.
    /// Returns `None` if the age is invalid.
    fn divide(self, bytes: &[u8], now: Generation) -> Option<(&[u8], Generation)> {
        let (key, age) = bytes.split_at(self.key_bytes);
        let generation = match age.first() {
            None | Some(&FOREVER) => Generation::FOREVER,
            Some(&age) => now.get().checked_sub(age.into()).map(Generation::new)?,
        };
        generation.age_in(now).map(|_| (key, generation))
    }
}

/// Saved keys that are read together, as bytes, with their generations.
pub(super) type Page<'a> = Vec<(&'a [u8], Generation)>;

/// Saved keys of a shard that are being read.
pub(super) struct SavedKeys<'a> {
    form: SavedForm,
    from: &'a mut dyn Read,
    /// Generation in which the shard was saved.
    pub(super) saved_in: Generation,
    /// Number of keys that are not read yet.
    left: u64,
    page: Vec<u8>,
}

impl<'a> SavedKeys<'a> {
    /// Begins to read a shard with this number of keys.
    ///
    /// # Errors
    /// Reading fails.
    pub(super) fn begin(form: SavedForm, keys: u64, from: &'a mut dyn Read) -> io::Result<Self> {
        let mut head = [0; size_of::<u32>()];
        if form.expires && keys > 0 {
            from.read_exact(&mut head)?;
        }
        let saved_in = Generation::new(u32::from_le_bytes(head));
        Ok(Self { form, from, saved_in, left: keys, page: Vec::new() })
    }

    /// Reads the next keys, with their generations. Returns `None` after the last key.
    ///
    /// # Errors
    /// Reading fails, or an age is invalid.
    pub(super) fn next_page(&mut self) -> io::Result<Option<Page<'_>>> {
        if self.left == 0 {
            return Ok(None);
        }
        let count = self.left.min(PAGE);
        self.left -= count;
        // At most a page.
        #[allow(clippy::cast_possible_truncation)]
        self.page.resize(count as usize * self.form.key(), 0);
        self.from.read_exact(&mut self.page)?;
        let keys = self.page.chunks_exact(self.form.key());
        let keys = keys.map(|bytes| self.form.divide(bytes, self.saved_in));
        Ok(Some(keys.collect::<Option<_>>().ok_or(io::ErrorKind::InvalidData)?))
    }
}
