//! A filter of RedisBloom with all its layers.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;

use super::TIGHTENING;
use super::error::{AddError, ChunkError, ReserveError};
use super::forecast::rate_of;
use super::header::{DumpHeader, Options, Shape};
use super::layer::{Hashes, Layer};
use super::loader::{FIRST, Loader};
use super::rate::Rate;
use crate::filter::UniteError;

/// Maximum size of a written chunk in bytes, as in servers. Larger chunks can be read.
pub(crate) const MAX_CHUNK: usize = 16 << 20;

/// Expansion of a filter that is reserved without one.
const DEFAULT_EXPANSION: u32 = 2;

/// A filter of RedisBloom, in memory.
#[derive(Debug, Clone, PartialEq)]
pub struct Filter {
    size: u64,
    options: Options,
    growth: u32,
    /// Layers, at least one. The last receives new items. If a frozen copy shares it, it is copied
    /// first.
    layers: Vec<Arc<Layer>>,
    /// Empty layers that will follow the last one.
    spare: VecDeque<Layer>,
    /// Maximum number of bytes that the layers may take.
    limit: u64,
}

/// Growth of a filter once it is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Growth {
    /// `EXPANSION n`: by a layer of n times the last one's capacity, at half its error rate.
    Expansion(u32),
    /// `NONSCALING`: not at all.
    None,
}

/// The growth that `BF.RESERVE` and the first `BF.ADD` give: `EXPANSION 2`.
impl Default for Growth {
    fn default() -> Self {
        Self::Expansion(DEFAULT_EXPANSION)
    }
}

/// A part of a dump: an answer of `BF.SCANDUMP`, and an argument of `BF.LOADCHUNK`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk<'a> {
    /// 1 for the header; otherwise 1 and the bytes of layers up to this chunk's end.
    pub iterator: i64,
    /// The header, or bytes of one layer.
    pub data: Cow<'a, [u8]>,
}

impl Filter {
    /// Makes an empty filter as `BF.RESERVE` does. Its layers may never take more than `limit`
    /// bytes.
    pub fn reserve(
        error_rate: f64,
        capacity: u64,
        growth: Growth,
        limit: u64,
    ) -> Result<Self, ReserveError> {
        match growth {
            Growth::Expansion(0) => Err(ReserveError::Expansion),
            Growth::Expansion(times) => {
                Self::empty(error_rate, capacity, Options::SCALING, times, limit)
            }
            Growth::None => {
                Self::empty(error_rate, capacity, Options::NONSCALING, DEFAULT_EXPANSION, limit)
            }
        }
    }

    pub(super) fn empty(
        error_rate: f64,
        capacity: u64,
        options: Options,
        growth: u32,
        limit: u64,
    ) -> Result<Self, ReserveError> {
        // The rates of all layers together must stay below the requested rate.
        let first = if options.is_fixed() { error_rate } else { error_rate * TIGHTENING };
        if !(first > 0.0 && error_rate < 1.0) {
            return Err(ReserveError::ErrorRate(error_rate));
        }
        // Iterators count bytes, from 1 and with a sign.
        let limit = limit.min(i64::MAX as u64 - 1);
        let (layers, spare) = (Vec::new(), VecDeque::new());
        let mut filter = Self { size: 0, options, growth, layers, spare, limit };
        let layer = filter.layer(capacity, first)?;
        filter.layers.push(Arc::new(layer));
        Ok(filter)
    }

    pub(super) fn loaded(header: DumpHeader, limit: u64) -> Self {
        let DumpHeader { size, options, growth, layers } = header;
        let layers = layers.into_iter().map(Arc::new).collect();
        Self { size, options, growth, layers, spare: VecDeque::new(), limit }
    }

    /// Reads a filter from all its chunks, in order: iterator and data. Its layers may never take
    /// more than `limit` bytes. A [`Loader`] does the same for chunks that come one by one.
    pub fn from_chunks<D: AsRef<[u8]>>(
        chunks: impl IntoIterator<Item = (i64, D)>,
        limit: u64,
    ) -> Result<Self, ChunkError> {
        let mut chunks = chunks.into_iter();
        let mut loader = match chunks.next() {
            Some((iterator, header)) => Loader::new(iterator, header.as_ref(), limit)?,
            None => Loader::new(FIRST, &[], limit)?,
        };
        for (iterator, data) in chunks {
            loader.load(iterator, data.as_ref())?;
        }
        loader.finish()
    }

    /// Iterates over the chunks that [`Filter::from_chunks`] reads and `BF.LOADCHUNK` takes, in
    /// order.
    pub fn chunks(&self) -> impl Iterator<Item = Chunk<'_>> {
        let header = DumpHeader::write(self.size, self.options, self.growth, &self.layers);
        let header = Chunk { iterator: FIRST, data: header.into() };
        let bits = self.layers.iter().flat_map(|layer| layer.bits.chunks(MAX_CHUNK));
        let bits = bits.scan(FIRST, |iterator, data| {
            *iterator = iterator.saturating_add_unsigned(data.len() as u64);
            Some(Chunk { iterator: *iterator, data: data.into() })
        });
        std::iter::once(header).chain(bits)
    }

    /// Returns true if an item was added, or looks so: the answer of `BF.EXISTS`.
    pub fn contains(&self, item: &[u8]) -> bool {
        self.has(Hashes::of(item))
    }

    /// Adds an item and returns true if it was new: the answer of `BF.ADD`. A full filter grows.
    ///
    /// # Errors
    /// If the item is new and the filter is full and cannot grow. An item that is there already is
    /// no error.
    pub fn add(&mut self, item: &[u8]) -> Result<bool, AddError> {
        self.put(Hashes::of(item))
    }

    /// Adds an item that was hashed before, as [`Filter::add`] does.
    pub fn put(&mut self, hashes: Hashes) -> Result<bool, AddError> {
        if self.has(hashes) {
            return Ok(false);
        }
        if self.last().is_full() {
            let layer = match self.spare.pop_front() {
                Some(layer) => layer,
                None => self.next_layer()?,
            };
            self.layers.push(Arc::new(layer));
        }
        if let Some(last) = self.layers.last_mut() {
            Arc::make_mut(last).set(hashes);
        }
        self.size += 1;
        Ok(true)
    }

    /// Allocates memory for `items` new items, so that adding them cannot fail. The filter's dump
    /// stays the same until they are added.
    ///
    /// # Errors
    /// If the filter would have to grow and cannot.
    pub fn make_room(&mut self, items: u64) -> Result<(), AddError> {
        let spare = self.spare.iter().map(Layer::capacity);
        let mut room = spare.fold(self.last().room(), u64::saturating_add);
        while room < items {
            let layer = self.next_layer()?;
            room = room.saturating_add(layer.capacity());
            self.spare.push_back(layer);
        }
        Ok(())
    }

    /// Returns the filter as it is now, for a reader, while this one gets new items. Takes no
    /// memory until then, when the newest layer is copied.
    #[must_use]
    pub fn frozen(&self) -> Self {
        let layers = self.layers.clone();
        Self { layers, spare: VecDeque::new(), ..*self }
    }

    /// Sets the most bytes that the layers may take from now on. Existing layers stay.
    pub fn set_limit(&mut self, limit: u64) {
        self.limit = limit.min(i64::MAX as u64 - 1);
    }

    /// Adds the bits of a filter whose layers have the same shapes. RedisBloom grows by the number
    /// of a layer's items, so these are estimated.
    ///
    /// # Errors
    /// If the layers differ, or one has no room for the items of both.
    pub fn unite(&mut self, other: &Self) -> Result<(), UniteError> {
        let layers = || self.layers.iter().zip(&other.layers);
        let have_same_shapes = layers().all(|(own, other)| own.shape == other.shape);
        if self.layers.len() != other.layers.len() || !have_same_shapes {
            return Err(UniteError::Layers);
        }
        let sizes = layers().map(|(own, other)| own.united_size(other));
        let sizes: Vec<u64> = sizes.collect();
        for (number, (layer, &keys)) in self.layers.iter().zip(&sizes).enumerate() {
            if keys > layer.capacity() {
                let capacity = layer.capacity();
                return Err(UniteError::LayerFull { layer: number, keys, capacity });
            }
        }
        self.spare.clear();
        self.size = sizes.iter().sum();
        for ((layer, other), size) in self.layers.iter_mut().zip(&other.layers).zip(sizes) {
            Arc::make_mut(layer).unite(other, size);
        }
        Ok(())
    }

    /// Returns the number of items that were new when they were added.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns the number of items that the present layers are made for.
    pub fn capacity(&self) -> u64 {
        self.layers.iter().fold(0, |sum, layer| sum.saturating_add(layer.capacity()))
    }

    /// Returns the growth of the filter.
    pub fn growth(&self) -> Growth {
        if self.options.is_fixed() { Growth::None } else { Growth::Expansion(self.growth) }
    }

    /// Returns the layers, the oldest first.
    pub fn layers(&self) -> &[Arc<Layer>] {
        &self.layers
    }

    /// Returns the bytes of all layers.
    pub fn bytes(&self) -> u64 {
        self.layers.iter().map(|layer| layer.shape.bytes).sum()
    }

    /// Returns the share of unseen items that the filter takes for seen now. It is computed from
    /// the bits that are 1 and from the hashes.
    pub fn error_rate_now(&self) -> f64 {
        self.rate_now().total
    }

    /// Returns the present rate, with the part of it that the bits cause.
    pub(crate) fn rate_now(&self) -> Rate {
        Rate::of_layers(self.layers.iter().map(|layer| layer.rate_now()))
    }

    /// Returns the rate once all layers are full.
    pub fn rate_when_full(&self) -> Rate {
        Rate::of_layers(self.layers.iter().map(|layer| rate_of(&layer.shape, layer.capacity())))
    }

    /// Tests an item that was hashed before, as [`Filter::contains`] does.
    pub fn has(&self, hashes: Hashes) -> bool {
        // Newer layers hold more.
        self.layers.iter().rev().any(|layer| layer.contains(hashes))
    }

    fn last(&self) -> &Layer {
        self.layers.last().expect("no filter is made without a layer")
    }

    /// Builds the layer after the last one, with spare layers counted.
    fn next_layer(&self) -> Result<Layer, AddError> {
        if self.options.is_fixed() {
            return Err(AddError::Full(self.capacity()));
        }
        let before = self.spare.back().unwrap_or_else(|| self.last());
        let next = u64::from(self.growth).checked_mul(before.capacity());
        let next = next.ok_or(ReserveError::TooLarge { capacity: u64::MAX, limit: self.limit });
        let rate = before.error_rate() * TIGHTENING;
        next.and_then(|next| self.layer(next, rate)).map_err(AddError::NoLayer)
    }

    /// Builds an empty layer to follow the existing ones.
    fn layer(&self, capacity: u64, error_rate: f64) -> Result<Layer, ReserveError> {
        if capacity == 0 {
            return Err(ReserveError::Capacity);
        }
        if error_rate <= 0.0 {
            return Err(ReserveError::ErrorRate(error_rate));
        }
        let spare: u64 = self.spare.iter().map(|layer| layer.shape.bytes).sum();
        let left = self.limit.saturating_sub(self.bytes()).saturating_sub(spare);
        Shape::for_capacity(capacity, error_rate, self.options)
            .filter(|shape| shape.bytes <= left)
            .ok_or(ReserveError::TooLarge { capacity, limit: self.limit })
            .and_then(Layer::new)
    }
}
