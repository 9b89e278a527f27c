//! Native kind: shards by leading byte, the bits of a key in a few cache lines, a seed.

use std::sync::Arc;

use urlseen_fingerprint::Fingerprint;

use crate::SpecError;
use crate::choice::FilterPlace;
use crate::kinds::kind::{
    CAPACITY, ERROR_RATE, IN_REDIS, Kind, KindParameters, Registered, SEED, size_fields,
};
use crate::kinds::parameters::Parameters;
use crate::kinds::values::Values;
use crate::native::{Native, POSITION_RULE};
use crate::number::whole;
use crate::peers::bit_strings::{BitPosition, PlacementError};
use crate::redis_kind::{Asked, Content, KeyLook, KindScript, Question};
use crate::{
    BLOCK_BYTES, Blocks, BuildError, Estimate, FilterKind, Geometry, Outlook, RedisKind,
    SHARD_RULE, SHARDS, Seed, ShardId, Shards, Sizing,
};

/// Entry of the native kind.
pub(crate) const KIND: Kind = Kind(&Registered {
    name: "native",
    keys: &[CAPACITY, ERROR_RATE, SEED],
    places: &[FilterPlace::Local, FilterPlace::Redis],
    rules: [POSITION_RULE, SHARD_RULE],
    read,
    ..IN_REDIS
});

/// Time that Redis takes to read and write one block of an unseen item, in nanoseconds.
const BLOCK: usize = 12_000;

/// Parameters of a native filter: its sizing.
#[derive(Debug, Clone, Copy)]
struct NativeParameters(Sizing);

/// Names of the fields that record the geometry in the header of a storage folder.
const BLOCKS: &str = "filter.blocks";
const BITS_PER_BLOCK: &str = "filter.bits_per_block";
const BLOCKS_PER_PART: &str = "filter.blocks_per_part";
/// Name of the recorded number of bits of a key.
const K: &str = "filter.k";

fn read(values: &Values<'_>) -> Result<Arc<dyn KindParameters>, SpecError> {
    let (capacity, error_rate) = values.size()?;
    let sizing = match geometry(values)? {
        Some(geometry) => Sizing { capacity, error_rate, geometry },
        None => Sizing::new(capacity, error_rate),
    };
    Ok(Arc::new(NativeParameters(sizing)))
}

/// Reads the geometry, if it is recorded.
fn geometry(values: &Values<'_>) -> Result<Option<Geometry>, SpecError> {
    let Some(number) = values.open::<u32>(BLOCKS)? else { return Ok(None) };
    let (bits, per_part) = (values.part(BITS_PER_BLOCK)?, values.part(BLOCKS_PER_PART)?);
    let found = format!("{number} of {per_part} with {bits} bits");
    let geometry = with_blocks(number, bits, per_part);
    geometry.map(Some).ok_or_else(|| SpecError::unreadable(BLOCKS, Some(&found)))
}

fn with_blocks(number: u32, bits: u8, per_part: u32) -> Option<Geometry> {
    let blocks = Blocks::ALL.into_iter().find(|blocks| blocks.get() == number)?;
    Geometry::new(blocks, bits, per_part)
}

impl Parameters {
    /// Makes the parameters of a native filter with this sizing.
    pub fn native(sizing: &Sizing, seed: Option<Seed>) -> Self {
        Self::new(KIND, seed, NativeParameters(*sizing))
    }

    /// Returns the native layout; `None` for all other kinds. A seed that is not set yet counts as
    /// 0.
    pub fn layout(&self) -> Option<Native> {
        let (blocks, bits) = (self.recorded(BLOCKS)?, self.recorded(BITS_PER_BLOCK)?);
        let geometry = with_blocks(blocks, bits, self.recorded(BLOCKS_PER_PART)?)?;
        Some(Native::new(self.seed_or_0(), geometry))
    }

    /// Returns named numbers that describe the shape of a filter in memory.
    pub fn figures(&self) -> Vec<(&'static str, u64)> {
        let figure = |(name, recorded)| Some((name, self.recorded(recorded)?));
        [("k", K), ("blocks", BLOCKS)].into_iter().filter_map(figure).collect()
    }

    /// Describes the division of the bits into blocks, if the configuration alone does not
    /// determine this division.
    pub(crate) fn division(&self) -> Option<String> {
        let part = |name| self.recorded::<u32>(name);
        let (blocks, bits) = (part(BLOCKS)?, part(BITS_PER_BLOCK)?);
        Some(format!("{blocks} blocks of {} with {bits} bits", part(BLOCKS_PER_PART)?))
    }

    /// Returns the name of the kind's variant. Each variant divides the bits into blocks in its own
    /// way. `None` if the kind has only one variant.
    pub fn variant(&self) -> Option<String> {
        let blocks: u32 = self.recorded(BLOCKS)?;
        Some(if blocks == 1 { "1 block".to_owned() } else { format!("{blocks} blocks") })
    }

    /// Returns the parameters of all variants with the same capacity and error rate. Empty if the
    /// kind has only one variant.
    pub fn variants(&self) -> Vec<Self> {
        let (Some(capacity), Some(error_rate)) = (self.field(CAPACITY), self.field(ERROR_RATE))
        else {
            return Vec::new();
        };
        let variant = |blocks| {
            self.with_own(NativeParameters(Sizing::with_blocks(capacity, error_rate, blocks)))
        };
        if self.variant().is_some() { Blocks::ALL.map(variant).into() } else { Vec::new() }
    }
}

impl NativeParameters {
    fn layout(&self, seed: Seed) -> Native {
        Native { seed, geometry: self.0.geometry }
    }
}

impl KindParameters for NativeParameters {
    fn fields(&self) -> Vec<(&'static str, String)> {
        size_fields(self.0.capacity.get(), self.0.error_rate.get()).into()
    }

    fn derived(&self) -> Vec<(&'static str, String)> {
        let geometry = self.0.geometry;
        let derived = [
            ("filter.bits", geometry.bits()),
            (K, geometry.k().into()),
            (BLOCKS, geometry.blocks.get().into()),
            (BITS_PER_BLOCK, geometry.bits_per_block.into()),
            (BLOCKS_PER_PART, geometry.blocks_per_part.into()),
        ];
        derived.map(|(name, number)| (name, number.to_string())).into()
    }

    fn shape(&self) -> String {
        let geometry = self.0.geometry;
        format!("{} blocks of {} bits each", geometry.blocks.get(), geometry.bits_per_block)
    }

    fn outlook(&self, keys: u64) -> Result<Outlook, SpecError> {
        Ok(self.layout(Seed::new(0)).outlook(keys))
    }

    fn build(&self, seed: Seed) -> Option<Result<Box<dyn FilterKind>, BuildError>> {
        let filter = Shards::allocate(self.layout(seed), self.0.capacity.get());
        Some(filter.map(|filter| Box::new(filter) as _).map_err(BuildError::from))
    }

    fn in_redis(&self, seed: Seed) -> Option<Result<Arc<dyn RedisKind>, SpecError>> {
        Some(Ok(Arc::new(self.layout(seed))))
    }
}

/// Filter with one string of blocks for each shard. The string has the same bytes as
/// a saved shard in memory.
impl RedisKind for Native {
    fn keys(&self) -> Vec<(u32, Content)> {
        let bits = self.geometry.shard_bits();
        let content = Content::Bits { bits, is_reserved: true, crowded: Some(0) };
        ShardId::all().map(|shard| (shard.number(), content)).collect()
    }

    fn key(&self, base: &str, number: u32) -> String {
        format!("{base}:{number:02x}")
    }

    fn check(&self, _: &Fingerprint) -> Result<(), PlacementError> {
        Ok(())
    }

    fn positions(&self, fingerprint: &Fingerprint) -> Result<Vec<BitPosition>, PlacementError> {
        let key_hash = self.key_hash(fingerprint);
        let string = key_hash.shard().number();
        // Redis numbers the bits of a byte from the highest bit, and a block numbers them from the
        // lowest. A string has at most 2^32 bits.
        #[allow(clippy::cast_possible_truncation)]
        let place = |bit| BitPosition { string, bit: (bit ^ 7) as u32 };
        Ok(Native::positions(self, key_hash).into_iter().map(place).collect())
    }

    fn estimate(&self, looks: &[KeyLook]) -> Estimate {
        let geometry = self.geometry;
        let bits = geometry.shard_bits() as f64;
        let mut keys = [0; SHARDS];
        for (keys, look) in keys.iter_mut().zip(looks) {
            *keys = geometry.keys_from_ones(whole(look.fill * bits));
        }
        Estimate { keys: keys.iter().sum(), error_rate: geometry.error_rate_of(&keys) }
    }

    fn outlook(&self, keys: u64) -> Outlook {
        let geometry = self.geometry;
        Outlook {
            strings: SHARDS,
            bits: geometry.bits(),
            hashes: geometry.k(),
            bytes: [geometry.bytes(); 2],
            error_rate: geometry.error_rate_at(keys),
            warning: None,
        }
    }

    fn script(&self) -> KindScript {
        let geometry = self.geometry;
        let (blocks, width) = (geometry.blocks.get(), geometry.bits_per_block);
        KindScript {
            lua: format!("local BLOCKS, WIDTH = {blocks}, {width}\n{}", include_str!("blocks.lua")),
            cost: BLOCK * blocks as usize,
            commands: &[&["GETRANGE", "0", "1"], &["SETRANGE", "0", ""], &["BITCOUNT"]],
        }
    }

    fn question(&self, base: &str, fingerprints: &[Option<&Fingerprint>]) -> Question {
        let geometry = self.geometry;
        let blocks = geometry.blocks.get() as usize;
        let width = usize::from(geometry.bits_per_block);
        let mut asked = Asked::new(|number| self.key(base, number));
        for fingerprint in fingerprints {
            let Some(fingerprint) = fingerprint else {
                asked.skip(blocks * (2 + 5 * width), 2 * blocks);
                continue;
            };
            let key_hash = self.key_hash(fingerprint);
            for part in 0..blocks {
                // A string has at most 512 MiB.
                #[allow(clippy::cast_possible_truncation)]
                let offset = self.block(key_hash, part) as u32 * BLOCK_BYTES;
                asked.string(key_hash.shard().number());
                asked.number(offset);
                asked.number(offset + BLOCK_BYTES - 1);
                self.draw(key_hash, part).for_each_bit(|bit| {
                    // The word's number is below 16.
                    #[allow(clippy::cast_possible_truncation)]
                    asked.question.places.push((bit / u32::BITS) as u8 + 1);
                    asked.question.places.extend((1_u32 << (bit % u32::BITS)).to_be_bytes());
                });
            }
        }
        asked.question
    }
}
