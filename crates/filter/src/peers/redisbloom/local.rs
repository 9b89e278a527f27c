//! Filter of RedisBloom, in memory. The filter has one shard with all keys.
//!
//! If the filter may not grow, an addition can fail. So the engine makes room before it passes
//! a batch on, and the keys of every commit have room. Old layers never change again, so the
//! filter and the writer of a snapshot share them; the newest layer is copied if a key is added
//! meanwhile. A recovery repeats the later additions in their order, so the recovered filter is
//! the same, byte for byte.

use std::io::{self, Read, Write};
use std::sync::{Arc, Mutex, PoisonError};

use crate::generation::Generation;
use crate::local::{Blob, BuildError, Effort, Fill, FilterKind, Full, Gauge, Saved};
use crate::peers::redisbloom::dump::{self, DumpError, DumpFormatError};
use crate::peers::redisbloom::{Filter, ReserveError};
use crate::{KeyHash, Reservation, ShardId, Verdict, memory};

/// A RedisBloom filter in memory.
#[derive(Debug)]
pub struct RedisBloomFilter {
    reservation: Reservation,
    limit: u64,
    /// The filter; `None` if it is empty. It is emptied before another filter is loaded, so that
    /// the two never take memory at the same time.
    filter: Option<Filter>,
    /// Fill of an empty filter.
    empty: Fill,
    gauge: Arc<LayersGauge>,
}

impl RedisBloomFilter {
    /// Builds an empty filter, which may take half of the available memory. For an imported filter
    /// without a reservation, it is the smallest possible one, which the loaded data replace.
    ///
    /// # Errors
    /// The first layer does not fit.
    pub fn build(reservation: Option<Reservation>) -> Result<Self, BuildError> {
        let limit = memory::available().map_or(u64::MAX, |available| available.bytes);
        // A copy of the newest layer takes memory, too, while a snapshot is taken.
        Ok(Self::reserve(reservation.unwrap_or_else(Reservation::least), limit / 2)?)
    }

    /// Creates an empty filter and allocates its first layer. All layers together never take more
    /// than `limit` bytes.
    ///
    /// # Errors
    /// The first layer does not fit, or no filter can have this reservation.
    pub fn reserve(reservation: Reservation, limit: u64) -> Result<Self, ReserveError> {
        let filter = reservation.reserve(limit)?;
        let empty = Fill { hashes: 0, ..fill(&filter) };
        let filter =
            Self { reservation, limit, filter: Some(filter), empty, gauge: Arc::default() };
        filter.show();
        Ok(filter)
    }

    /// Returns the wrapped filter.
    ///
    /// # Errors
    /// The filter is empty, and the system has too little memory for the first layer.
    pub fn into_filter(mut self) -> Result<Filter, Full> {
        self.filter()?;
        Ok(self.filter.expect("it was made"))
    }

    fn filter(&mut self) -> Result<&mut Filter, Full> {
        let Self { reservation, limit, filter, .. } = self;
        match filter {
            Some(filter) => Ok(filter),
            None => Ok(filter.insert(reservation.reserve(*limit)?)),
        }
    }

    fn show(&self) {
        let shown = match &self.filter {
            Some(filter) => (fill(filter), filter.error_rate_now()),
            None => (self.empty, 0.0),
        };
        self.gauge.show(shown.0, shown.1);
    }
}

fn fill(filter: &Filter) -> Fill {
    Fill {
        keys: filter.size(),
        counted: filter.size(),
        capacity: filter.capacity(),
        bytes: filter.bytes(),
        layers: filter.layers().len(),
        expansion: filter.expansion(),
        hashes: filter.layers().last().map_or(0, |layer| layer.hashes()),
    }
}

impl FilterKind for RedisBloomFilter {
    fn test(&self, key_hashes: &[KeyHash], verdicts: &mut Vec<Verdict>) {
        let has = |&key_hash| self.filter.as_ref().is_some_and(|it| it.has(key_hash));
        verdicts.extend(key_hashes.iter().map(|key_hash| Verdict::of(has(key_hash))));
    }

    /// An insertion copies the newest layer if a snapshot shares it, which takes long.
    fn reserve(&mut self, _: ShardId, keys: u64, effort: Effort) -> Result<bool, Full> {
        if effort == Effort::Any {
            self.filter()?.make_room(keys)?;
        }
        Ok(effort == Effort::Any)
    }

    fn insert(&mut self, _: Generation, key_hashes: &[KeyHash]) -> Result<(), Full> {
        if key_hashes.is_empty() {
            return Ok(());
        }
        let filter = self.filter()?;
        let put = key_hashes.iter().try_for_each(|&it| filter.put(it).map(drop));
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
        match &self.filter {
            Some(filter) => Box::new(filter.frozen()),
            None => Box::new(Saved::default()),
        }
    }

    fn load(&mut self, shard: ShardId, keys: u64, len: u64, from: &mut dyn Read) -> io::Result<()> {
        assert_eq!(shard, ShardId::WHOLE, "the filter has one shard");
        self.filter = None;
        let read = if len == 0 { Ok(None) } else { dump::read(from, u64::MAX).map(Some) };
        let loaded = read.map_err(|DumpError { problem, .. }| match problem {
            DumpFormatError::Io(error) => error,
            DumpFormatError::Chunk(chunk) if chunk.is_for_want_of_memory() => {
                io::Error::new(io::ErrorKind::OutOfMemory, chunk)
            }
            problem => io::Error::new(io::ErrorKind::InvalidData, problem),
        });
        let loaded = loaded.and_then(|mut filter| {
            if filter.as_ref().map_or(0, Filter::size) != keys {
                return Err(io::ErrorKind::InvalidData.into());
            }
            if let Some(filter) = &mut filter {
                filter.set_limit(self.limit);
            }
            self.filter = filter;
            Ok(())
        });
        self.show();
        loaded
    }

    fn clear(&mut self) {
        self.filter = None;
        self.show();
    }
}

impl Blob for Filter {
    fn keys(&self) -> u64 {
        self.size()
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
