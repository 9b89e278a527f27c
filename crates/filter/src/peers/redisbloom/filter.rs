//! Filter of RedisBloom with all its layers, in memory. It has one shard with all keys.
//!
//! If the filter may not grow, an addition can fail. So the engine makes room before it passes
//! a batch on, and the keys of every commit have room. Old layers never change again, so the
//! filter and the writer of a snapshot share them; the newest layer is copied if a key is added
//! meanwhile. A recovery repeats the later additions in their order, so the recovered filter is
//! the same, byte for byte.

use std::borrow::Cow;
use std::io::{self, Read, Write};
use std::sync::{Arc, Mutex, PoisonError};

use crate::SpecError;
use crate::local::{Blob, Effort, Fill, FilterKind, Full, Gauge, Saved};
use crate::peers::redisbloom::TIGHTENING;
use crate::peers::redisbloom::dump;
use crate::peers::redisbloom::layer::{Layer, key_hash};
use crate::peers::redisbloom::parameters::{LayerParameters, Options, Reservation};
use crate::peers::redisbloom::rate::{Rate, rate_of};
use crate::{Capacity, ErrorRate, KeyHash, ShardId, Verdict, memory};

/// Maximum size of a written chunk in bytes, as in servers. Larger chunks can be read.
pub(crate) const MAX_CHUNK: usize = 16 << 20;

/// Expansion of a filter if `BF.RESERVE` or the first `BF.ADD` names no expansion.
pub(crate) const DEFAULT_EXPANSION: u32 = 2;

/// Filter of RedisBloom in memory. A clone shares the layers: a layer that gets new items is copied
/// first.
#[derive(Debug, Clone)]
pub struct Filter {
    pub(crate) size: u64,
    pub(crate) options: Options,
    pub(crate) growth: u32,
    /// Parameters of the first layer while it is empty.
    pub(crate) first: LayerParameters,
    /// Layers, the oldest first. There are none if the system gave no memory for the first one.
    pub(crate) layers: Vec<Arc<Layer>>,
    /// Number of layers in use. New items are added to the last of these; the layers after it are
    /// empty.
    pub(crate) used: usize,
    /// Maximum number of bytes that the layers may take.
    pub(crate) limit: u64,
    pub(crate) gauge: Arc<LayersGauge>,
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
    /// Makes an empty filter, which may take half of the available memory. For an imported filter
    /// without a reservation, it is the smallest possible one, which the loaded data replace.
    ///
    /// # Errors
    /// The first layer does not fit.
    pub fn build(reservation: Option<Reservation>) -> Result<Self, SpecError> {
        let limit = memory::available().map_or(u64::MAX, |available| available.bytes);
        let reservation = reservation.unwrap_or_else(|| Reservation {
            capacity: Capacity::new(1).expect("one key"),
            error_rate: ErrorRate::new(ErrorRate::MAX).expect("a rate"),
            expansion: DEFAULT_EXPANSION,
        });
        // A copy of the newest layer takes memory, too, while a snapshot is taken.
        Self::reserve(reservation, limit / 2)
    }

    /// Makes an empty filter as `BF.RESERVE` does. Its layers never take more than `limit` bytes.
    ///
    /// # Errors
    /// The first layer does not fit.
    pub fn reserve(reservation: Reservation, limit: u64) -> Result<Self, SpecError> {
        let growth = match reservation.expansion {
            0 => DEFAULT_EXPANSION,
            expansion => expansion,
        };
        let first = LayerParameters::first(reservation, limit)?;
        Self::begun(first, Options::of(reservation.expansion), growth, limit)
    }

    /// Makes an empty filter with this first layer.
    pub(crate) fn begun(
        first: LayerParameters,
        options: Options,
        growth: u32,
        limit: u64,
    ) -> Result<Self, SpecError> {
        let layers = vec![Arc::new(Layer::new(first)?)];
        // An iterator is a signed number: 1 plus a number of bytes.
        let (limit, gauge) = (limit.min(i64::MAX as u64 - 1), Arc::default());
        let filter = Self { size: 0, options, growth, first, layers, used: 1, limit, gauge };
        filter.show();
        Ok(filter)
    }

    /// Iterates over the chunks of the dump, in order. A [`Loader`](super::Loader) and
    /// `BF.LOADCHUNK` can read these chunks.
    pub fn chunks(&self) -> impl Iterator<Item = Chunk<'_>> {
        let header = Chunk { iterator: FIRST, data: self.header().into() };
        let bits = self.used().iter().flat_map(|layer| layer.bits.chunks(MAX_CHUNK));
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

    fn put(&mut self, key_hash: KeyHash) -> Result<bool, Full> {
        if self.has(key_hash) {
            return Ok(false);
        }
        if self.used().last().is_none_or(|layer| layer.room() == 0) {
            if self.used == self.layers.len() {
                self.grow()?;
            }
            self.used += 1;
        }
        Arc::make_mut(&mut self.layers[self.used - 1]).set(key_hash);
        self.size += 1;
        Ok(true)
    }

    /// Allocates memory for `items` new items, so that adding these items cannot fail. The filter's
    /// dump stays the same until an item is added.
    ///
    /// # Errors
    /// The filter would have to grow, and cannot.
    pub(crate) fn make_room(&mut self, items: u64) -> Result<(), Full> {
        let open = self.layers.iter().skip(self.used.saturating_sub(1));
        let mut room = open.fold(0, |sum: u64, layer| sum.saturating_add(layer.room()));
        while room < items {
            room = room.saturating_add(self.grow()?);
        }
        self.used = self.used.max(1).min(self.layers.len());
        Ok(())
    }

    /// Adds an empty layer after all others. Returns its capacity.
    fn grow(&mut self) -> Result<u64, Full> {
        let full = |why| Full(format!("the RedisBloom filter is full and cannot grow: {why}"));
        let parameters = match self.layers.last() {
            None => self.first,
            Some(_) if self.options.is_fixed() => {
                return Err(Full(format!(
                    "the RedisBloom filter holds the {} items that it was reserved for, and it \
                     cannot grow (NONSCALING); reserve a larger filter",
                    self.capacity()
                )));
            }
            Some(last) => {
                let taken: u64 = self.layers.iter().map(|layer| layer.parameters.bytes).sum();
                let left = self.limit.saturating_sub(taken);
                let capacity = last.parameters.capacity.saturating_mul(self.growth.into());
                let rate = last.parameters.error_rate * TIGHTENING;
                LayerParameters::within(left, self.limit, capacity, rate, self.options)
                    .map_err(full)?
            }
        };
        self.layers.push(Arc::new(Layer::new(parameters).map_err(full)?));
        Ok(parameters.capacity)
    }

    /// Removes all layers, and so all items.
    fn empty(&mut self) {
        (self.layers, self.used, self.size) = (Vec::new(), 0, 0);
    }

    /// Reads the dump of a filter with this number of items, in place of this filter.
    fn read(&mut self, items: u64, from: &mut dyn Read) -> io::Result<()> {
        let filter = dump::read(from, u64::MAX)?;
        if filter.size != items {
            return Err(io::ErrorKind::InvalidData.into());
        }
        *self = Self { limit: self.limit, gauge: Arc::clone(&self.gauge), ..filter };
        Ok(())
    }

    /// Makes the first layer again if there is none, and shows the numbers. If there is no memory
    /// for this layer, the next insertion tries it again.
    fn begin_again(&mut self) {
        if self.layers.is_empty() {
            let _ = self.make_room(1);
        }
        self.show();
    }

    /// Returns the number of items that were new when they were added.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns the number of items that the layers are made for.
    pub fn capacity(&self) -> u64 {
        self.used().iter().fold(0, |sum, layer| sum.saturating_add(layer.parameters.capacity))
    }

    /// Returns the factor by which the capacity grows from one layer to the next. 0 if the filter
    /// does not grow.
    pub fn expansion(&self) -> u32 {
        if self.options.is_fixed() { 0 } else { self.growth }
    }

    /// Returns the number of layers.
    pub fn layers(&self) -> usize {
        self.used
    }

    fn used(&self) -> &[Arc<Layer>] {
        &self.layers[..self.used]
    }

    /// Returns the bytes of all layers.
    pub fn bytes(&self) -> u64 {
        self.used().iter().map(|layer| layer.parameters.bytes).sum()
    }

    /// Returns the current error rate: the share of unseen items that the filter reports as seen.
    /// The rate is computed from the number of set bits, and from known weaknesses of the hashes.
    pub fn error_rate_now(&self) -> f64 {
        Rate::of_layers(self.used().iter().map(|layer| layer.rate_now())).total
    }

    /// Returns a warning text, if the hashes cause more errors than the bits once all layers are
    /// full.
    pub fn warning(&self) -> Option<String> {
        let full =
            self.used().iter().map(|layer| rate_of(&layer.parameters, layer.parameters.capacity));
        Rate::of_layers(full).warning()
    }

    fn has(&self, key_hash: KeyHash) -> bool {
        // Tests newer layers first, because they hold more items.
        self.used().iter().rev().any(|layer| layer.contains(key_hash))
    }

    fn show(&self) {
        let fill = Fill {
            keys: self.size,
            counted: self.size,
            capacity: self.capacity(),
            bytes: self.bytes(),
            layers: self.used,
            expansion: self.expansion(),
            hashes: self.used().last().map_or(0, |layer| layer.parameters.hashes),
        };
        self.gauge.show(fill, self.error_rate_now());
    }
}

impl FilterKind for Filter {
    fn test(&self, key_hashes: &[KeyHash], verdicts: &mut Vec<Verdict>) {
        verdicts.extend(key_hashes.iter().map(|&key_hash| Verdict::of(self.has(key_hash))));
    }

    /// An insertion copies the newest layer if a snapshot shares it, which takes long.
    fn reserve(&mut self, _: ShardId, keys: u64, effort: Effort) -> Result<bool, Full> {
        if effort == Effort::Any {
            self.make_room(keys)?;
        }
        Ok(effort == Effort::Any)
    }

    fn insert(&mut self, key_hashes: &[KeyHash]) -> Result<(), Full> {
        let put = key_hashes.iter().try_for_each(|&it| self.put(it).map(drop));
        self.show();
        put
    }

    fn gauge(&self) -> Arc<dyn Gauge> {
        Arc::clone(&self.gauge) as Arc<dyn Gauge>
    }

    /// Saves the shard without copying it. If keys are added before the save ends, the filter first
    /// copies its newest layer.
    fn save(&self, shard: ShardId, _: Vec<u8>) -> Box<dyn Blob> {
        assert_eq!(shard, ShardId::WHOLE, "the filter has one shard");
        if self.layers.is_empty() {
            return Box::new(Saved::default());
        }
        let mut saved = self.clone();
        saved.layers.truncate(self.used);
        Box::new(saved)
    }

    fn load(&mut self, shard: ShardId, keys: u64, len: u64, from: &mut dyn Read) -> io::Result<()> {
        assert_eq!(shard, ShardId::WHOLE, "the filter has one shard");
        // Two filters never take memory at the same time.
        self.empty();
        let loaded = if len == 0 { Ok(()) } else { self.read(keys, from) };
        self.begin_again();
        loaded
    }

    fn clear(&mut self) {
        self.empty();
        self.begin_again();
    }
}

impl Blob for Filter {
    fn keys(&self) -> u64 {
        self.size
    }

    fn len(&self) -> u64 {
        dump::len(self)
    }

    fn write(&self, to: &mut dyn Write) -> io::Result<()> {
        dump::write(self, to)
    }
}

/// Fill and error rate of a filter with layers. All threads can read these numbers.
#[derive(Debug, Default)]
pub(crate) struct LayersGauge(Mutex<(Fill, f64)>);

impl LayersGauge {
    /// Shows a fill and an error rate from now on.
    pub(crate) fn show(&self, fill: Fill, error_rate: f64) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = (fill, error_rate);
    }

    fn now(&self) -> (Fill, f64) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Gauge for LayersGauge {
    fn fill(&self) -> Fill {
        self.now().0
    }

    fn error_rate(&self) -> f64 {
        self.now().1
    }
}
