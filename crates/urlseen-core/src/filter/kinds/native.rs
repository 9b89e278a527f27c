//! Native kind: shards by leading byte, the bits of a key in a few cache lines, a seed.

use std::sync::Arc;

use super::{
    CAPACITY, ERROR_RATE, IN_REDIS, Kind, KindParameters, Parameters, Registered, SEED, Values,
    partitions_field, seed_field, size_fields,
};
use crate::filter::choice::FilterPlace;
use crate::filter::layout::native::{Native, POSITION_RULE};
use crate::filter::layout::{BitPosition, PlacementError};
use crate::filter::local::NativeFilter;
use crate::filter::number::whole;
use crate::filter::redis_kind::{Asked, Content, KeyLook, Question};
use crate::filter::spec::SpecError;
use crate::filter::{
    BLOCK_BITS, BLOCK_BYTES, Blocks, BuildError, Estimate, FilterKind, Geometry, Outlook,
    RedisKind, SHARD_RULE, SHARDS, Seed, ShardId, Sizing,
};
use crate::fingerprint::{Fingerprint, PartitionCount};

/// Entry of the native kind.
pub const NATIVE: Kind = Kind(&Registered {
    name: "native",
    keys: &[CAPACITY, ERROR_RATE, SEED],
    places: &[FilterPlace::Local, FilterPlace::Redis],
    rules: [POSITION_RULE, SHARD_RULE],
    read,
    ..IN_REDIS
});

/// Time that Redis takes to read and write one block of an unseen item, in nanoseconds.
const BLOCK: usize = 12_000;

#[derive(Debug, Clone, Copy)]
struct NativeParameters {
    /// Seed of the hash. `None` until a seed is chosen.
    seed: Option<Seed>,
    sizing: Sizing,
    partitions: PartitionCount,
}

/// Names of the fields that record the geometry in the header of a storage folder.
const BLOCKS: &str = "filter.blocks";
const BITS_PER_BLOCK: &str = "filter.bits_per_block";
const BLOCKS_PER_PART: &str = "filter.blocks_per_part";

fn read(values: &Values<'_>) -> Result<Parameters, SpecError> {
    let seed = values.seed()?;
    let (capacity, error_rate) = values.size()?;
    let sizing = match geometry(values)? {
        Some(geometry) => Sizing { capacity, error_rate, geometry },
        None => Sizing::new(capacity, error_rate),
    };
    let partitions = values.partitions()?;
    Ok(Parameters::new(NativeParameters { seed, sizing, partitions }))
}

/// Reads the geometry, if it is recorded.
fn geometry(values: &Values<'_>) -> Result<Option<Geometry>, SpecError> {
    let Some(number) = values.open::<u32>(BLOCKS)? else { return Ok(None) };
    let blocks = Blocks::ALL.into_iter().find(|blocks| blocks.get() == number);
    let (bits, per_part) = (values.part(BITS_PER_BLOCK)?, values.part(BLOCKS_PER_PART)?);
    let geometry = blocks.and_then(|blocks| Geometry::new(blocks, bits, per_part));
    let found = Some(format!("{number} of {per_part} with {bits} bits"));
    geometry.map(Some).ok_or(SpecError::Unreadable { name: BLOCKS, found })
}

impl Parameters {
    /// Makes the parameters of a native filter with this sizing, for a crawl with one partition.
    pub fn native(sizing: &Sizing, seed: Option<Seed>) -> Self {
        let partitions = PartitionCount::ONE;
        Self::new(NativeParameters { seed, sizing: *sizing, partitions })
    }
}

impl NativeParameters {
    fn size_fields(&self) -> impl Iterator<Item = (&'static str, String)> + use<> {
        let fields = size_fields(self.sizing.capacity.get(), self.sizing.error_rate.get());
        fields.into_iter().chain(partitions_field(self.partitions))
    }

    fn layout(&self) -> Native {
        Native { seed: self.seed.unwrap_or(Seed::new(0)), geometry: self.sizing.geometry }
    }
}

impl KindParameters for NativeParameters {
    fn kind(&self) -> Kind {
        NATIVE
    }

    fn fields(&self) -> Vec<(&'static str, String)> {
        seed_field(self.seed).into_iter().chain(self.size_fields()).collect()
    }

    fn record(&self) -> Vec<(&'static str, String)> {
        let geometry = self.sizing.geometry;
        let derived = [
            ("filter.bits", geometry.bits()),
            ("filter.k", geometry.k().into()),
            (BLOCKS, geometry.blocks().get().into()),
            (BITS_PER_BLOCK, geometry.bits_per_block().into()),
            (BLOCKS_PER_PART, geometry.blocks_per_part().into()),
        ];
        let derived = derived.map(|(name, number)| (name, number.to_string()));
        seed_field(self.seed).into_iter().chain(derived).chain(self.size_fields()).collect()
    }

    fn shape(&self) -> String {
        let geometry = self.sizing.geometry;
        format!("{} blocks of {} bits each", geometry.blocks().get(), geometry.bits_per_block())
    }

    fn figures(&self) -> Vec<(&'static str, u64)> {
        let geometry = self.sizing.geometry;
        vec![("k", geometry.k().into()), ("blocks", geometry.blocks().get().into())]
    }

    fn seed(&self) -> Option<Seed> {
        self.seed
    }

    fn with_seed(&self, seed: Seed) -> Option<Parameters> {
        Some(Parameters::new(Self { seed: Some(seed), ..*self }))
    }

    fn partitions(&self) -> PartitionCount {
        self.partitions
    }

    fn division(&self) -> Option<String> {
        let geometry = self.sizing.geometry;
        let (blocks, bits) = (geometry.blocks().get(), geometry.bits_per_block());
        Some(format!("{blocks} blocks of {} with {bits} bits", geometry.blocks_per_part()))
    }

    fn variant(&self) -> Option<String> {
        let blocks = self.sizing.geometry.blocks().get();
        Some(if blocks == 1 { "1 block".to_owned() } else { format!("{blocks} blocks") })
    }

    fn variants(&self) -> Vec<Parameters> {
        let (capacity, error_rate) = (self.sizing.capacity, self.sizing.error_rate);
        let variant = |blocks| {
            let sizing = Sizing::with_blocks(capacity, error_rate, blocks);
            Parameters::new(Self { sizing, ..*self })
        };
        Blocks::ALL.map(variant).into()
    }

    fn build(&self) -> Result<Box<dyn FilterKind>, BuildError> {
        Ok(Box::new(NativeFilter::allocate(&self.sizing, self.layout())?))
    }

    fn in_redis(&self) -> Result<Arc<dyn RedisKind>, SpecError> {
        Ok(Arc::new(self.layout()))
    }
}

/// Filter with one string of blocks for each shard. The string has the same bytes as
/// [`Shards::bytes`](crate::filter::Shards::bytes).
impl RedisKind for Native {
    fn used(&self) -> Vec<u32> {
        ShardId::all().map(ShardId::number).collect()
    }

    fn key(&self, base: &str, number: u32) -> String {
        format!("{base}:{number:02x}")
    }

    fn content(&self, _number: u32) -> Content {
        Content::Bits { bits: self.geometry.shard_bits(), is_reserved: true }
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
        Ok(Native::positions(self, key_hash).map(place).collect())
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

    fn crowded_bits(&self) -> Option<u64> {
        Some(0)
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

    fn lua(&self) -> String {
        let geometry = self.geometry;
        let (blocks, width) = (geometry.blocks().get(), geometry.bits_per_block());
        format!("local BLOCKS, WIDTH = {blocks}, {width}\n{}", include_str!("blocks.lua"))
    }

    fn cost(&self) -> usize {
        BLOCK * self.geometry.blocks().get() as usize
    }

    fn question(&self, base: &str, fingerprints: &[Option<&Fingerprint>]) -> Question {
        let geometry = self.geometry;
        let (blocks, width) = (geometry.blocks().get() as usize, geometry.bits_per_block().into());
        let mut asked = Asked::new(|number| self.key(base, number));
        let mut positions: Vec<u64> = Vec::with_capacity(blocks * width);
        for fingerprint in fingerprints {
            let Some(fingerprint) = fingerprint else {
                asked.skip(blocks * (2 + 5 * width), 2 * blocks);
                continue;
            };
            let key_hash = self.key_hash(fingerprint);
            positions.clear();
            positions.extend(Native::positions(self, key_hash));
            for block in positions.chunks(width) {
                // A string has at most 512 MiB.
                #[allow(clippy::cast_possible_truncation)]
                let offset = (block[0] / u64::from(BLOCK_BITS)) as u32 * BLOCK_BYTES;
                asked.string(key_hash.shard().number());
                asked.number(offset);
                asked.number(offset + BLOCK_BYTES - 1);
                for position in block {
                    // The bit's number is below 512.
                    #[allow(clippy::cast_possible_truncation)]
                    let bit = (position % u64::from(BLOCK_BITS)) as u32;
                    // The word's number is below 16.
                    #[allow(clippy::cast_possible_truncation)]
                    asked.question.places.push((bit / u32::BITS) as u8 + 1);
                    asked.question.places.extend((1_u32 << (bit % u32::BITS)).to_be_bytes());
                }
            }
        }
        asked.question
    }

    fn commands(&self) -> &'static [&'static [&'static str]] {
        &[&["GETRANGE", "0", "1"], &["SETRANGE", "0", ""], &["BITCOUNT"]]
    }

    fn native(&self) -> Option<Native> {
        Some(*self)
    }
}
