//! Filter in memory over a frozen filter, whose keys are seen, too.
//!
//! `urlseen storage convert` writes such a folder. The log and the snapshots know a forgotten
//! key only by its id, which the frozen filter does not understand. So each forgotten key has a
//! tombstone, which hides it from both filters until it is inserted again.

use std::io::{self, Read, Write};
use std::sync::Arc;

use super::{Blob, Effort, Fill, FilterKind, Full, Gauge, Saved};
use crate::{KeyHash, ShardId, Verdict};

/// Number of bytes before the saved frozen shard: the number of its keys, and its length.
const HEAD: u64 = 16;

/// Shards of a filter, over the same shards of a frozen filter. New keys go to the upper filter.
/// The frozen filter never changes.
#[derive(Debug)]
pub struct OverFrozen {
    upper: Box<dyn FilterKind>,
    frozen: Box<dyn FilterKind>,
}

impl OverFrozen {
    pub(crate) fn new(upper: Box<dyn FilterKind>, frozen: Box<dyn FilterKind>) -> Self {
        Self { upper, frozen }
    }

    /// Returns the saved state of a shard whose frozen part is this saved shard, and whose upper
    /// part is empty.
    pub fn over(frozen: Box<dyn Blob>) -> Box<dyn Blob> {
        Box::new(Both { upper: Box::new(Saved::default()), frozen })
    }

    fn read(&mut self, shard: ShardId, keys: u64, len: u64, from: &mut dyn Read) -> io::Result<()> {
        let mut head = [[0; 8]; 2];
        head.iter_mut().try_for_each(|number| from.read_exact(number))?;
        let [frozen_keys, frozen_len] = head.map(u64::from_le_bytes);
        let upper_len = len.checked_sub(HEAD).and_then(|len| len.checked_sub(frozen_len));
        let (Some(upper_keys), Some(upper_len)) = (keys.checked_sub(frozen_keys), upper_len) else {
            return Err(io::ErrorKind::InvalidData.into());
        };
        self.frozen.load(shard, frozen_keys, frozen_len, from)?;
        self.upper.load(shard, upper_keys, upper_len, from)
    }
}

impl FilterKind for OverFrozen {
    fn test(&self, key_hashes: &[KeyHash], verdicts: &mut Vec<Verdict>) {
        let first = verdicts.len();
        self.upper.test(key_hashes, verdicts);
        let unseen = verdicts[first..].iter_mut().zip(key_hashes);
        let unseen = unseen.filter(|(verdict, _)| **verdict == Verdict::Unseen);
        let (open, asked): (Vec<&mut Verdict>, Vec<KeyHash>) =
            unseen.map(|(verdict, &key_hash)| (verdict, key_hash)).unzip();
        let mut answers = Vec::with_capacity(asked.len());
        self.frozen.test(&asked, &mut answers);
        open.into_iter().zip(answers).for_each(|(verdict, answer)| *verdict = answer);
    }

    fn reserve(&mut self, shard: ShardId, keys: u64, effort: Effort) -> Result<bool, Full> {
        self.upper.reserve(shard, keys, effort)
    }

    fn insert(&mut self, key_hashes: &[KeyHash]) -> Result<(), Full> {
        self.upper.insert(key_hashes)
    }

    /// The key may be in the frozen filter. A log or a snapshot names a forgotten key by its id,
    /// which the frozen filter does not understand. So each removed key needs a tombstone.
    fn remove(&mut self, key_hash: KeyHash) -> bool {
        self.upper.remove(key_hash);
        false
    }

    fn gauge(&self) -> Arc<dyn Gauge> {
        Arc::new(Gauges { upper: self.upper.gauge(), frozen: self.frozen.gauge() })
    }

    fn save(&self, shard: ShardId, buffer: Vec<u8>) -> Box<dyn Blob> {
        let frozen = self.frozen.save(shard, buffer);
        Box::new(Both { upper: self.upper.save(shard, Vec::new()), frozen })
    }

    fn load(&mut self, shard: ShardId, keys: u64, len: u64, from: &mut dyn Read) -> io::Result<()> {
        if len == 0 {
            self.frozen.load(shard, 0, 0, from)?;
            return self.upper.load(shard, keys, 0, from);
        }
        let loaded = self.read(shard, keys, len, from);
        if loaded.is_err() {
            self.load(shard, 0, 0, &mut io::empty())?;
        }
        loaded
    }

    fn clear(&mut self) {
        self.upper.clear();
        self.frozen.clear();
    }
}

/// Saved state of a shard: the number of keys of the frozen shard and the number of its bytes, both
/// as 8 bytes with the lowest one first; the frozen shard; the upper shard. An empty shard has no
/// bytes.
#[derive(Debug)]
struct Both {
    upper: Box<dyn Blob>,
    frozen: Box<dyn Blob>,
}

impl Blob for Both {
    fn keys(&self) -> u64 {
        self.upper.keys() + self.frozen.keys()
    }

    fn len(&self) -> u64 {
        match self.upper.len() + self.frozen.len() {
            0 => 0,
            len => HEAD + len,
        }
    }

    fn write(&self, to: &mut dyn Write) -> io::Result<()> {
        if self.is_empty() {
            return Ok(());
        }
        to.write_all(&self.frozen.keys().to_le_bytes())?;
        to.write_all(&self.frozen.len().to_le_bytes())?;
        self.frozen.write(to)?;
        self.upper.write(to)
    }

    fn into_buffer(self: Box<Self>) -> Vec<u8> {
        self.frozen.into_buffer()
    }
}

/// Gauges of both filters.
#[derive(Debug)]
struct Gauges {
    upper: Arc<dyn Gauge>,
    frozen: Arc<dyn Gauge>,
}

impl Gauge for Gauges {
    /// The frozen filter needs no room for further keys.
    fn fill(&self) -> Fill {
        let (upper, frozen) = (self.upper.fill(), self.frozen.fill());
        Fill {
            keys: upper.keys + frozen.keys,
            counted: upper.counted + frozen.counted,
            capacity: upper.capacity + frozen.keys,
            bytes: upper.bytes + frozen.bytes,
            ..upper
        }
    }

    fn saved_bytes(&self) -> u64 {
        self.upper.saved_bytes() + self.frozen.saved_bytes()
    }

    fn error_rate(&self) -> f64 {
        self.upper.error_rate() + self.frozen.error_rate()
    }

    fn frozen_error_rate(&self) -> f64 {
        self.frozen.error_rate()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ForgettingFilter, Kind, Parameters};
    use urlseen_fingerprint::Fingerprint;

    const CAPACITY: u64 = 50_000;

    fn native() -> Parameters {
        read(Kind::NATIVE, "0.01")
    }

    fn over_native() -> Parameters {
        read(Kind::TWO_CHOICE, "0.02").over(&native()).unwrap()
    }

    fn read(kind: Kind, rate: &str) -> Parameters {
        let value = |name: &str| match name {
            "filter.capacity" | "filter.grow_to" => Some(CAPACITY.to_string()),
            "filter.error_rate" => Some(rate.to_owned()),
            "filter.seed" => Some("7".to_owned()),
            _ => None,
        };
        kind.read(&value).unwrap()
    }

    fn key_hashes(keys: std::ops::Range<u64>) -> Vec<KeyHash> {
        let hasher = over_native().hasher();
        let fingerprint = |key: u64| {
            let digest = key.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
            Fingerprint::Raw20([digest; 3].concat()[..20].try_into().unwrap())
        };
        keys.map(|key| hasher.key_hash(&fingerprint(key))).collect()
    }

    fn insert(filter: &mut dyn FilterKind, keys: std::ops::Range<u64>) {
        let key_hashes = key_hashes(keys);
        filter.reserve_for(&key_hashes).unwrap();
        filter.insert(&key_hashes).unwrap();
    }

    fn seen(filter: &dyn FilterKind, keys: std::ops::Range<u64>) -> u64 {
        let mut verdicts = vec![Verdict::Seen];
        filter.test(&key_hashes(keys), &mut verdicts);
        verdicts[1..].iter().map(|&verdict| u64::from(verdict == Verdict::Seen)).sum()
    }

    /// Makes a filter over a native one with the keys from 0 to the capacity.
    fn converted() -> Box<dyn FilterKind> {
        let mut frozen = native().build().unwrap();
        insert(&mut *frozen, 0..CAPACITY);
        let mut filter = over_native().build().unwrap();
        for shard in ShardId::all() {
            copy(&*OverFrozen::over(frozen.save(shard, Vec::new())), &mut *filter, shard).unwrap();
        }
        filter
    }

    fn copy(saved: &dyn Blob, to: &mut dyn FilterKind, shard: ShardId) -> io::Result<()> {
        let mut bytes = Vec::new();
        saved.write(&mut bytes)?;
        assert_eq!(bytes.len() as u64, saved.len());
        to.load(shard, saved.keys(), saved.len(), &mut bytes.as_slice())
    }

    #[test]
    fn keys_of_both_filters_are_seen_and_the_error_rates_add_up() {
        let mut filter = converted();
        assert_eq!(seen(&*filter, 0..CAPACITY), CAPACITY);
        insert(&mut *filter, CAPACITY..2 * CAPACITY);
        assert_eq!(seen(&*filter, 0..2 * CAPACITY), 2 * CAPACITY);
        let (rate, frozen) = (filter.gauge().error_rate(), filter.gauge().frozen_error_rate());
        assert!(rate > 2.0 * frozen && frozen > 0.005, "{rate} {frozen}");
        let unseen = 2 * CAPACITY..12 * CAPACITY;
        let expected = rate * (10 * CAPACITY) as f64;
        let wrong = seen(&*filter, unseen) as f64;
        // Both filters report some keys.
        assert!((wrong - expected).abs() < 3.0 * expected.sqrt() + expected * frozen, "{wrong}");
        let Fill { keys, counted, .. } = filter.gauge().fill();
        for count in [keys, counted] {
            assert!(count.abs_diff(2 * CAPACITY) < CAPACITY / 20, "{count}");
        }
    }

    #[test]
    fn a_saved_filter_loads_and_a_damaged_shard_does_not() {
        let mut filter = converted();
        insert(&mut *filter, CAPACITY..2 * CAPACITY);
        let mut other = over_native().build().unwrap();
        for shard in ShardId::all() {
            let saved = filter.save(shard, Vec::new());
            copy(&*saved, &mut *other, shard).unwrap();
        }
        assert_eq!(seen(&*other, 0..2 * CAPACITY), 2 * CAPACITY);
        let keys = |filter: &dyn FilterKind| filter.gauge().fill().keys;
        assert_eq!(keys(&*other), keys(&*filter));
        let shard = key_hashes(0..1)[0].shard();
        let saved = filter.save(shard, Vec::new());
        let mut bytes = Vec::new();
        saved.write(&mut bytes).unwrap();
        for (keys, len, byte) in [
            (0, saved.len(), 0),
            (saved.keys() + 1, saved.len(), 0),
            (saved.keys(), saved.len() - 1, 0),
            (saved.keys(), HEAD - 1, 0),
            (saved.keys(), saved.len(), 255),
        ] {
            let mut damaged = bytes.clone();
            damaged[8] ^= byte;
            other.load(shard, keys, len, &mut damaged.as_slice()).unwrap_err();
            let own = key_hashes(0..2 * CAPACITY).into_iter().filter(|it| it.shard() == shard);
            let mut verdicts = Vec::new();
            other.test(&own.collect::<Vec<_>>(), &mut verdicts);
            assert!(verdicts.iter().all(|&it| it == Verdict::Unseen), "{keys} {len} {byte}");
            copy(&*saved, &mut *other, shard).unwrap();
        }
        other.clear();
        assert_eq!(seen(&*other, 0..2 * CAPACITY), 0);
        assert!(other.save(shard, Vec::new()).is_empty());
    }

    /// Rule G4: a tombstone hides a forgotten key from the frozen filter.
    #[test]
    fn a_forgotten_key_of_the_frozen_filter_passes_once_more() {
        let mut filter = ForgettingFilter::new(converted());
        let ask = |filter: &mut ForgettingFilter, key| {
            let mut verdicts = Vec::new();
            filter.test(&[key], &mut verdicts);
            verdicts[0]
        };
        let [old, other] = key_hashes(0..2)[..] else { unreachable!() };
        for _ in 0..3 {
            assert_eq!(ask(&mut filter, old), Verdict::Seen);
            // A log and a snapshot name a forgotten key by its id.
            filter.forget(KeyHash::named(old.shard(), old.id()));
            assert_eq!(ask(&mut filter, old), Verdict::Unseen);
            assert_eq!(ask(&mut filter, other), Verdict::Seen);
            filter.insert(crate::generation::Generation::FOREVER, &[old]).unwrap();
        }
    }
}
