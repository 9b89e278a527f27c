//! urlseen's own kind: shards by leading byte, bits confined to a few cache lines, a seed.

use super::{
    CAPACITY, ERROR_RATE, Kind, KindParameters, Parameters, Registered, SEED, Values,
    capacity_field, error_rate_field,
};
use crate::filter::choice::FilterPlace;
use crate::filter::layout::native::{Native, POSITION_RULE};
use crate::filter::spec::SpecError;
use crate::filter::{Capacity, ErrorRate, Placing, SHARD_RULE, Seed, Sizing};

/// urlseen's own kind.
pub const NATIVE: Kind = Kind(&Registered {
    name: "native",
    short: "native",
    summary: "urlseen's own: shards by leading byte, bits confined to a few cache lines",
    keys: &[CAPACITY, ERROR_RATE, SEED],
    places: &[FilterPlace::Local, FilterPlace::Redis],
    read,
});

#[derive(Debug, Clone, Copy)]
struct NativeParameters {
    /// The seed of the hash; `None` where any will do.
    seed: Option<Seed>,
    sizing: Sizing,
}

fn read(values: &Values<'_>) -> Result<Parameters, SpecError> {
    let seed = values.open(SEED)?;
    let (capacity, error_rate) = values.size()?;
    Ok(Parameters::native(&Sizing::new(capacity, error_rate), seed.map(Seed::new)))
}

impl Parameters {
    /// A filter of urlseen's own kind of that size.
    pub fn native(sizing: &Sizing, seed: Option<Seed>) -> Self {
        Self::new(NativeParameters { seed, sizing: *sizing })
    }
}

impl KindParameters for NativeParameters {
    fn kind(&self) -> Kind {
        NATIVE
    }

    fn fields(&self) -> Vec<(&'static str, String)> {
        let seed = self.seed.map(|seed| (SEED, seed.get().to_string()));
        let size = [
            capacity_field(self.sizing.capacity().get()),
            error_rate_field(self.sizing.error_rate().get()),
        ];
        seed.into_iter().chain(size).collect()
    }

    fn size(&self) -> Option<(Capacity, ErrorRate)> {
        Some((self.sizing.capacity(), self.sizing.error_rate()))
    }

    fn sizing(&self) -> Option<Sizing> {
        Some(self.sizing)
    }

    fn seed(&self) -> Option<Seed> {
        self.seed
    }

    fn with_seed(&self, seed: Seed) -> Option<Parameters> {
        Some(Parameters::native(&self.sizing, Some(seed)))
    }

    fn rules(&self) -> [&'static str; 2] {
        [POSITION_RULE, SHARD_RULE]
    }

    fn division(&self) -> Option<String> {
        let geometry = self.sizing.geometry();
        let (blocks, bits) = (geometry.blocks().get(), geometry.bits_per_block());
        Some(format!("{blocks} blocks of {} with {bits} bits", geometry.blocks_per_part()))
    }

    fn placing(&self) -> Result<Placing, SpecError> {
        let seed = self.seed.unwrap_or(Seed::new(0));
        Ok(Placing::Blocks(Native::new(seed, self.sizing.geometry())))
    }
}
