//! Choice between a random and a fixed seed of the filter.

use super::raw::{Raw, ValueError};
use super::value::{Rule, WholeNumber};
use serde_json::Value as Json;

/// Source of the seed of the filter's hash.
///
/// Attackers who know the seed can make URLs that cause false positives for other URLs. The seed is
/// therefore random unless a user needs the same bits twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeedChoice {
    /// Random seed, drawn when the filter is created and stored with it.
    Random,
    /// Fixed seed with this value.
    Fixed(u32),
}

/// Seed of the filter's hash.
pub(super) struct Seed;

impl Rule<SeedChoice> for Seed {
    fn read(&self, raw: &Raw) -> Result<SeedChoice, ValueError> {
        match raw {
            Raw::Text(word) | Raw::String(word) if word == "random" => Ok(SeedChoice::Random),
            // The value is a number in quotes, or a misspelt word.
            Raw::String(_) => Err(ValueError::Value),
            _ => WholeNumber(0..=u64::from(u32::MAX), "").read(raw).map(SeedChoice::Fixed),
        }
    }

    fn allowed(&self) -> String {
        let numbers = WholeNumber(0..=u64::from(u32::MAX), "");
        format!("\"random\", or {} without quotes", Rule::<u32>::allowed(&numbers))
    }

    fn write(&self, value: &SeedChoice) -> Json {
        match value {
            SeedChoice::Random => "random".into(),
            SeedChoice::Fixed(seed) => (*seed).into(),
        }
    }
}
