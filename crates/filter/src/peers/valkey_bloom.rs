//! Kind of valkey-bloom, in memory: layers that are filters of the Rust crate `bloomfilter` 3.
//!
//! ```text
//! h1, h2    SipHash-1-3 of the length of the text (8 bytes, little endian) and the text; the keys
//!           are the first and the last 16 bytes of the seed
//! bit i     of k, of a layer with m bits: h1 mod m, h2 mod m, and from i = 2 on
//!           (h1 + i h2 mod 2^64) mod (2^64 - 59) mod m, from the lowest bit of the first byte
//! m, k      8 ceil(n ln(1/p) / (8 ln(2)^2)), and m / n ln(2), rounded, at least 1
//! layer i   n e^i keys at the error rate p / 2^i, for the expansion e
//! ```
//!
//! The seed is the one of a server with `bloom-use-random-seed no`. A saved filter is the payload
//! of `BF.LOAD`: a byte 1, and by the rules of bincode 1 (little endian, 8 bytes for a length) the
//! expansion, the error rate, the tightening ratio, a byte 0, and the layers. A layer is the saved
//! filter of `bloomfilter` (a byte 1, its length, k, the seed, the bits), its keys and its
//! capacity.

use std::io::{self, Read, Write};
use std::iter;
use std::sync::Arc;

use super::bit_strings::rate;
use super::redisbloom::kind::{EXPANSION, fields_of, reservation_of, shape_of};
use super::redisbloom::{LayersGauge, Reservation};
use crate::SpecError;
use crate::choice::FilterPlace;
use crate::key_hash::sip_hash_1_3;
use crate::kinds::kind::{CAPACITY, ERROR_RATE, IN_REDIS, Kind, KindParameters, Registered};
use crate::local::{Blob, Effort, Fill, FilterKind, Full, Gauge, Saved, out_of_memory};
use crate::number::whole;
use crate::{BuildError, KeyHash, KeyHasher, Outlook, Seed, ShardId, Verdict, memory};

pub(crate) const KIND: Kind = Kind(&Registered {
    name: "valkey-bloom",
    keys: &[CAPACITY, ERROR_RATE, EXPANSION],
    usual: &[(EXPANSION, "2")],
    places: &[FilterPlace::Local],
    grows: true,
    // valkey-bloom answers that an item is new exactly if it counts the item.
    inserts_at_once: true,
    rules: ["valkey-bloom/hex-digits/siphash-1-3", ""],
    shards: 1,
    read: |values| Ok(Arc::new(reservation_of(values)?)),
    ..IN_REDIS
});

/// Seed of a server with `bloom-use-random-seed no`.
const SEED: [u8; 32] = [
    89, 15, 245, 34, 234, 120, 17, 218, 167, 20, 216, 9, 59, 62, 123, 217, 29, 137, 138, 115, 62,
    152, 136, 135, 48, 127, 151, 205, 40, 7, 51, 131,
];

/// Factor of the error rate from one layer to the next.
const TIGHTENING: f64 = 0.5;

/// Capacity, length and hashes of a layer.
#[derive(Debug, Clone, Copy)]
struct LayerSize {
    capacity: u64,
    bytes: u64,
    hashes: u32,
}

/// Returns the sizes of all possible layers.
fn sizes(size: Reservation) -> impl Iterator<Item = LayerSize> {
    let next = move |&(capacity, rate): &(u64, f64)| {
        let capacity = capacity.checked_mul(size.expansion.into()).filter(|&it| it > 0)?;
        Some((capacity, rate * TIGHTENING))
    };
    let sizes = iter::successors(Some((size.capacity.get(), size.error_rate.get())), next);
    sizes.map(|(capacity, rate)| {
        let ln2 = std::f64::consts::LN_2;
        let bytes = whole((capacity as f64 * rate.ln() / (-8.0 * (ln2 * ln2))).ceil()).max(1);
        let hashes = whole(((bytes * 8) as f64 / capacity as f64 * ln2).round()).max(1);
        // An error rate takes at most 1,074 bits.
        LayerSize { capacity, bytes, hashes: u32::try_from(hashes).unwrap_or(u32::MAX) }
    })
}

/// Computes both hashes of a text, from which its bit positions are computed.
fn key_hash(text: &[u8]) -> KeyHash {
    let [h1, h2] = [&SEED[..16], &SEED[16..]].map(|key| sip_hash_1_3(key, text));
    KeyHash { h1, h2, shard: ShardId::WHOLE, kept: None }
}

impl KindParameters for Reservation {
    fn fields(&self) -> Vec<(&'static str, String)> {
        fields_of(*self)
    }

    fn shape(&self) -> String {
        shape_of(self.expansion)
    }

    fn outlook(&self, keys: u64) -> Result<Outlook, SpecError> {
        let (mut left, mut hashes, mut bits, mut pass) = (keys, 0, Vec::new(), 0.0);
        for size in sizes(*self) {
            let held = left.min(size.capacity);
            left -= held;
            hashes = size.hashes;
            bits.push(size.bytes * 8);
            pass += (-rate(held as f64, hashes, (size.bytes * 8) as f64)).ln_1p();
            if left == 0 {
                break;
            }
        }
        let outlook = Outlook::of_strings(&bits, hashes, -f64::exp_m1(pass));
        Ok(Outlook { bytes: [outlook.bits / 8; 2], ..outlook })
    }

    fn hasher(&self, _: Seed) -> KeyHasher {
        KeyHasher::by(|_, key| key_hash(key.text(&mut [0; 64])))
    }

    fn build(&self, _: Seed) -> Option<Result<Box<dyn FilterKind>, BuildError>> {
        let mut filter = ValkeyFilter { size: *self, layers: Vec::new(), gauge: Arc::default() };
        filter.show();
        Some(filter.make_room(1).map(|()| Box::new(filter) as _).map_err(BuildError::from))
    }
}

#[derive(Debug, Clone)]
struct ValkeyLayer {
    size: LayerSize,
    keys: u64,
    /// Bits of the layer, which a snapshot shares.
    bytes: Arc<Vec<u8>>,
}

impl ValkeyLayer {
    /// Returns the byte and the bit of each position of a key.
    fn places(&self, key_hash: KeyHash) -> impl Iterator<Item = (usize, u8)> + use<> {
        let (KeyHash { h1, h2, .. }, LayerSize { bytes, hashes, .. }) = (key_hash, self.size);
        (0..u64::from(hashes)).map(move |index| {
            let hash = match index {
                0 => h1,
                1 => h2,
                // The largest prime below 2^64.
                _ => h1.wrapping_add(index.wrapping_mul(h2)) % 0xffff_ffff_ffff_ffc5,
            };
            let bit = hash % (bytes * 8);
            (usize::try_from(bit / 8).expect("bytes in memory"), 1 << (bit % 8))
        })
    }

    /// Returns the bytes of the payload that come before the bits.
    fn start(&self) -> Vec<u8> {
        let LayerSize { bytes, hashes, .. } = self.size;
        let [len, bytes] = [bytes + 45, bytes].map(u64::to_le_bytes);
        [&len[..], &[1], &bytes, &hashes.to_le_bytes(), &SEED].concat()
    }
}

/// Filter of valkey-bloom. All keys are in one shard. The last layers are empty if room was made
/// for keys that have not come yet.
#[derive(Debug, Clone)]
struct ValkeyFilter {
    size: Reservation,
    layers: Vec<ValkeyLayer>,
    gauge: Arc<LayersGauge>,
}

impl ValkeyFilter {
    fn has(&self, key_hash: KeyHash) -> bool {
        let mut layers = self.layers.iter();
        layers.any(|it| it.places(key_hash).all(|(byte, bit)| it.bytes[byte] & bit != 0))
    }

    fn used(&self) -> impl Iterator<Item = &ValkeyLayer> {
        self.layers.iter().filter(|layer| layer.keys > 0)
    }

    /// Adds an empty layer, and returns it.
    fn grow(&mut self) -> Result<&mut ValkeyLayer, Full> {
        // A copy of the newest layer takes memory, too, while a snapshot is taken.
        let limit = memory::available().map_or(u64::MAX, |available| available.bytes / 2);
        let size = sizes(self.size).nth(self.layers.len()).filter(|it| it.bytes <= limit);
        let mut bytes = Vec::new();
        let layer = size.and_then(|size| {
            let len = usize::try_from(size.bytes).ok()?;
            bytes.try_reserve_exact(len).ok()?;
            bytes.resize(len, 0);
            Some(ValkeyLayer { size, keys: 0, bytes: Arc::new(bytes) })
        });
        let reason = "the valkey-bloom filter is full and cannot grow: its expansion is 0, or \
                      there is too little memory for another layer";
        self.layers.push(layer.ok_or_else(|| Full(reason.to_owned()))?);
        Ok(self.layers.last_mut().expect("it was added"))
    }

    fn make_room(&mut self, keys: u64) -> Result<(), Full> {
        let mut room: u64 = self.layers.iter().map(|it| it.size.capacity - it.keys).sum();
        while room < keys {
            room = room.saturating_add(self.grow()?.size.capacity);
        }
        Ok(())
    }

    fn show(&self) {
        let keys = self.keys();
        let outlook = self.size.outlook(keys).unwrap_or_default();
        let fill = Fill {
            keys,
            counted: keys,
            capacity: sizes(self.size).take(outlook.strings).map(|it| it.capacity).sum(),
            bytes: outlook.bits / 8,
            layers: outlook.strings,
            expansion: self.size.expansion,
            hashes: if keys > 0 { outlook.hashes } else { 0 },
        };
        self.gauge.show(fill, outlook.error_rate);
    }

    /// Returns the bytes of the payload that come before the number of layers.
    fn start(&self) -> Vec<u8> {
        let Reservation { error_rate, expansion, .. } = self.size;
        let rates = [error_rate.get(), TIGHTENING].map(f64::to_le_bytes);
        [&[1][..], &expansion.to_le_bytes(), &rates[0], &rates[1], &[0]].concat()
    }

    /// Reads the layers of a payload, which have this number of keys.
    fn read(&mut self, keys: u64, from: &mut dyn Read) -> io::Result<()> {
        let expect = |bytes: &[u8], from: &mut dyn Read| {
            let mut found = vec![0; bytes.len()];
            from.read_exact(&mut found)?;
            if found == bytes { Ok(()) } else { Err(io::Error::from(io::ErrorKind::InvalidData)) }
        };
        let mut number = [0; 8];
        expect(&self.start(), from)?;
        from.read_exact(&mut number)?;
        for _ in 0..u64::from_le_bytes(number) {
            let layer = self.grow().map_err(out_of_memory)?;
            expect(&layer.start(), from)?;
            let bits: &mut Vec<u8> = Arc::make_mut(&mut layer.bytes);
            from.read_exact(bits)?;
            from.read_exact(&mut number)?;
            layer.keys = u64::from_le_bytes(number).min(layer.size.capacity);
            expect(&layer.size.capacity.to_le_bytes(), from)?;
        }
        if self.keys() == keys { Ok(()) } else { Err(io::ErrorKind::InvalidData.into()) }
    }
}

impl FilterKind for ValkeyFilter {
    fn test(&self, key_hashes: &[KeyHash], verdicts: &mut Vec<Verdict>) {
        verdicts.extend(key_hashes.iter().map(|&key_hash| Verdict::of(self.has(key_hash))));
    }

    /// An insertion copies the newest layer if a snapshot shares it, which takes long.
    fn reserve(&mut self, _: ShardId, keys: u64, effort: Effort) -> Result<bool, Full> {
        let made = (effort == Effort::Any).then(|| self.make_room(keys)).transpose()?;
        Ok(made.is_some())
    }

    fn insert(&mut self, key_hashes: &[KeyHash]) -> Result<(), Full> {
        for &key_hash in key_hashes {
            if !self.has(key_hash) {
                self.make_room(1)?;
                let layer = self.layers.iter_mut().find(|it| it.keys < it.size.capacity);
                let layer = layer.expect("room was made");
                let places = layer.places(key_hash);
                let bytes = Arc::make_mut(&mut layer.bytes);
                places.for_each(|(byte, bit)| bytes[byte] |= bit);
                layer.keys += 1;
            }
        }
        self.show();
        Ok(())
    }

    fn gauge(&self) -> Arc<dyn Gauge> {
        Arc::clone(&self.gauge) as Arc<dyn Gauge>
    }

    fn save(&self, _: ShardId, _: Vec<u8>) -> Box<dyn Blob> {
        if self.keys() > 0 { Box::new(self.clone()) } else { Box::new(Saved::default()) }
    }

    fn load(&mut self, _: ShardId, keys: u64, len: u64, from: &mut dyn Read) -> io::Result<()> {
        self.layers.clear();
        let read = if len == 0 { Ok(()) } else { self.read(keys, from) };
        let read = read.inspect_err(|_| self.layers.clear());
        self.show();
        read
    }

    fn clear(&mut self) {
        self.layers.clear();
        self.show();
    }
}

impl Blob for ValkeyFilter {
    fn keys(&self) -> u64 {
        self.used().map(|layer| layer.keys).sum()
    }

    fn len(&self) -> u64 {
        let layers = self.used().map(|it| it.start().len() as u64 + it.size.bytes + 16);
        let layers: u64 = layers.sum();
        if layers == 0 { 0 } else { self.start().len() as u64 + 8 + layers }
    }

    fn write(&self, to: &mut dyn Write) -> io::Result<()> {
        to.write_all(&self.start())?;
        to.write_all(&(self.used().count() as u64).to_le_bytes())?;
        self.used().try_for_each(|layer| {
            to.write_all(&layer.start())?;
            to.write_all(&layer.bytes)?;
            to.write_all(&layer.keys.to_le_bytes())?;
            to.write_all(&layer.size.capacity.to_le_bytes())
        })
    }
}

#[cfg(test)]
#[path = "valkey_bloom_tests.rs"]
mod tests;
