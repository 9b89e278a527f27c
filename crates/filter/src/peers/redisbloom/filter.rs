//! Filter of RedisBloom with all its layers.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;

use crate::peers::redisbloom::ReserveError;
use crate::peers::redisbloom::TIGHTENING;
use crate::peers::redisbloom::layer::{Layer, key_hash};
use crate::peers::redisbloom::parameters::{LayerParameters, Options};
use crate::peers::redisbloom::rate::{Rate, rate_of};
use crate::{Capacity, ErrorRate, Full, KeyHash};

/// Maximum size of a written chunk in bytes, as in servers. Larger chunks can be read.
pub(crate) const MAX_CHUNK: usize = 16 << 20;

/// Expansion of a filter if `BF.RESERVE` or the first `BF.ADD` names no expansion.
pub const DEFAULT_EXPANSION: u32 = 2;

/// Arguments of `BF.RESERVE`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reservation {
    /// Number of fingerprints that the first layer is made for.
    pub capacity: Capacity,
    /// Error rate of all layers together.
    pub error_rate: ErrorRate,
    /// Factor by which the capacity grows from one layer to the next. 0 for a filter that does not
    /// grow.
    pub expansion: u32,
}

impl Reservation {
    /// Returns the smallest possible reservation, for a filter that another filter will replace.
    pub(crate) fn least() -> Self {
        Self {
            capacity: Capacity::new(1).expect("one key"),
            error_rate: ErrorRate::new(ErrorRate::MAX).expect("a rate"),
            expansion: DEFAULT_EXPANSION,
        }
    }

    /// Reserves an empty filter. Its layers never take more than `limit` bytes.
    ///
    /// # Errors
    /// The first layer does not fit, or no filter can have this reservation.
    pub fn reserve(&self, limit: u64) -> Result<Filter, ReserveError> {
        Filter::reserve(self.error_rate.get(), self.capacity.get(), self.expansion, limit)
    }
}

/// Filter of RedisBloom in memory.
#[derive(Debug, Clone, PartialEq)]
pub struct Filter {
    pub(crate) size: u64,
    pub(crate) options: Options,
    pub(crate) growth: u32,
    /// Layers, at least one. New items are added to the last layer. If a frozen copy shares that
    /// layer, the layer is copied first.
    pub(crate) layers: Vec<Arc<Layer>>,
    /// Empty layers that will follow the last layer.
    pub(crate) spare: VecDeque<Layer>,
    /// Maximum number of bytes that the layers may take.
    pub(crate) limit: u64,
}

/// Iterator of the header. An iterator is the number that `BF.SCANDUMP` returns with a chunk. For a
/// later chunk, it is 1 plus the number of layer bytes in the dump up to the end of that chunk.
pub(crate) const FIRST: i64 = 1;

/// Part of a dump: an answer of `BF.SCANDUMP`, and the arguments of `BF.LOADCHUNK`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk<'a> {
    /// Iterator: 1 for the header. For a chunk of a layer, 1 plus the number of bytes of all layers
    /// up to the end of the chunk.
    pub iterator: i64,
    /// Bytes of the header, or of one layer.
    pub data: Cow<'a, [u8]>,
}

impl Filter {
    /// Makes an empty filter as `BF.RESERVE` does. Each layer has `expansion` times the capacity
    /// of the one before; 0 stands for `NONSCALING`. The layers may never take more than `limit`
    /// bytes.
    pub fn reserve(
        error_rate: f64,
        capacity: u64,
        expansion: u32,
        limit: u64,
    ) -> Result<Self, ReserveError> {
        let growth = if expansion == 0 { DEFAULT_EXPANSION } else { expansion };
        Self::empty(error_rate, capacity, Options::of(expansion), growth, limit)
    }

    pub(crate) fn empty(
        error_rate: f64,
        capacity: u64,
        options: Options,
        growth: u32,
        limit: u64,
    ) -> Result<Self, ReserveError> {
        // An iterator is a signed number: 1 plus a number of bytes.
        let limit = limit.min(i64::MAX as u64 - 1);
        let first = Layer::new(LayerParameters::first(error_rate, capacity, options, limit)?)?;
        let (layers, spare) = (vec![Arc::new(first)], VecDeque::new());
        Ok(Self { size: 0, options, growth, layers, spare, limit })
    }

    /// Iterates over the chunks of the dump, in order. A [`Loader`](super::Loader) and
    /// `BF.LOADCHUNK` can read these chunks.
    pub fn chunks(&self) -> impl Iterator<Item = Chunk<'_>> {
        let header = Chunk { iterator: FIRST, data: self.header().into() };
        let bits = self.layers.iter().flat_map(|layer| layer.bits.chunks(MAX_CHUNK));
        let bits = bits.scan(FIRST, |iterator, data| {
            *iterator = iterator.saturating_add_unsigned(data.len() as u64);
            Some(Chunk { iterator: *iterator, data: data.into() })
        });
        std::iter::once(header).chain(bits)
    }

    /// Returns true if the filter reports an item as seen: the answer of `BF.EXISTS`.
    pub fn contains(&self, item: &[u8]) -> bool {
        self.has(key_hash(item))
    }

    /// Adds an item and returns true if the item is new: the answer of `BF.ADD`. A full filter
    /// grows.
    ///
    /// # Errors
    /// The item is new, and the filter is full and cannot grow.
    pub fn add(&mut self, item: &[u8]) -> Result<bool, Full> {
        self.put(key_hash(item))
    }

    /// Adds an item with the given hashes: see [`Filter::add`].
    ///
    /// # Errors
    /// The same errors as [`Filter::add`].
    pub(crate) fn put(&mut self, key_hash: KeyHash) -> Result<bool, Full> {
        if self.has(key_hash) {
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
            Arc::make_mut(last).set(key_hash);
        }
        self.size += 1;
        Ok(true)
    }

    /// Allocates memory for `items` new items, so that adding these items cannot fail. The filter's
    /// dump stays the same until an item is added.
    ///
    /// # Errors
    /// The filter would have to grow, and cannot.
    pub(crate) fn make_room(&mut self, items: u64) -> Result<(), Full> {
        let spare = self.spare.iter().map(|layer| layer.parameters.capacity);
        let mut room = spare.fold(self.last().room(), u64::saturating_add);
        while room < items {
            let layer = self.next_layer()?;
            room = room.saturating_add(layer.parameters.capacity);
            self.spare.push_back(layer);
        }
        Ok(())
    }

    /// Returns a copy of the filter that shares its layers. When this filter gets new items, it
    /// copies the newest layer first. So the returned copy never changes.
    #[must_use]
    pub fn frozen(&self) -> Self {
        let layers = self.layers.clone();
        Self { layers, spare: VecDeque::new(), ..*self }
    }

    /// Sets the maximum number of bytes of all layers. Existing layers stay.
    pub(crate) fn set_limit(&mut self, limit: u64) {
        self.limit = limit.min(i64::MAX as u64 - 1);
    }

    /// Returns the number of items that were new when they were added.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns the number of items that the existing layers are made for.
    pub fn capacity(&self) -> u64 {
        self.layers.iter().fold(0, |sum, layer| sum.saturating_add(layer.parameters.capacity))
    }

    /// Returns the factor by which the capacity grows from one layer to the next. 0 if the filter
    /// does not grow.
    pub fn expansion(&self) -> u32 {
        if self.options.is_fixed() { 0 } else { self.growth }
    }

    /// Returns the layers, the oldest first.
    pub fn layers(&self) -> &[Arc<Layer>] {
        &self.layers
    }

    /// Returns the bytes of all layers.
    pub fn bytes(&self) -> u64 {
        self.layers.iter().map(|layer| layer.parameters.bytes).sum()
    }

    /// Returns the current error rate: the share of unseen items that the filter reports as seen.
    /// The rate is computed from the number of set bits, and from known weaknesses of the hashes.
    pub fn error_rate_now(&self) -> f64 {
        Rate::of_layers(self.layers.iter().map(|layer| layer.rate_now())).total
    }

    /// Computes the error rate of the filter once all layers are full.
    pub fn rate_when_full(&self) -> Rate {
        Rate::of_layers(
            self.layers.iter().map(|layer| rate_of(&layer.parameters, layer.parameters.capacity)),
        )
    }

    /// Tests an item with the given hashes: see [`Filter::contains`].
    pub(crate) fn has(&self, key_hash: KeyHash) -> bool {
        // Tests newer layers first, because they hold more items.
        self.layers.iter().rev().any(|layer| layer.contains(key_hash))
    }

    fn last(&self) -> &Layer {
        self.layers.last().expect("no filter is made without a layer")
    }

    /// Allocates the layer that follows the last layer and all spare layers.
    fn next_layer(&self) -> Result<Layer, Full> {
        if self.options.is_fixed() {
            return Err(Full(format!(
                "the RedisBloom filter holds the {} items that it was reserved for, and it cannot \
                 grow (NONSCALING); reserve a larger filter",
                self.capacity()
            )));
        }
        let before = self.spare.back().unwrap_or_else(|| self.last());
        let next = u64::from(self.growth).checked_mul(before.parameters.capacity);
        let next = next.ok_or(ReserveError::TooLarge { capacity: u64::MAX, limit: self.limit })?;
        let spare: u64 = self.spare.iter().map(|layer| layer.parameters.bytes).sum();
        let left = self.limit.saturating_sub(self.bytes()).saturating_sub(spare);
        let rate = before.parameters.error_rate * TIGHTENING;
        Ok(Layer::new(LayerParameters::within(left, self.limit, next, rate, self.options)?)?)
    }
}
