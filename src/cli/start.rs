//! How commands start an engine.

use anyhow::Context;
use urlseen::config::SeedChoice;
use urlseen::engine::{Engine, Parts};
use urlseen::filter::native::Native;
use urlseen::filter::{Seed, Sizing, memory};
use urlseen::item::Options;

/// Starts an engine with an empty filter, if the machine has the memory for it.
pub(super) fn engine(
    sizing: &Sizing,
    seed: SeedChoice,
    items: Options,
    threads: usize,
) -> anyhow::Result<Engine> {
    memory::check(sizing)?;
    let seed = Seed::new(match seed {
        SeedChoice::Fixed(seed) => seed,
        SeedChoice::Random => getrandom::u32().context("the system gives no random numbers")?,
    });
    let layout = Native::new(seed, sizing.geometry());
    Ok(Engine::start(&Parts { layout, items, threads })?)
}
