//! New filter in Redis. It has temporary keys until it is complete.

use tokio::runtime::Runtime;
use urlseen_core::filter::{Seed, ShardId};
use urlseen_core::redis::link::Link;
use urlseen_core::redis_filter::opening::Uniting;
use urlseen_engine::config::{Config, FilterPlace, SeedChoice};

use super::super::context::Context;
use super::super::operand::{Address, PAGE};
use super::super::settings::Settings;

/// New filter in Redis, under temporary keys.
pub(super) struct RedisTarget {
    runtime: Runtime,
    link: Link,
    uniting: Uniting,
}

impl RedisTarget {
    /// Begins a filter with the settings of `like`. `text` names its place as a URL, `#` and a key.
    pub(super) fn begin(text: &str, settings: &Settings, like: &Config) -> anyhow::Result<Self> {
        let Address { config, key } = Address::parse(text, settings)?;
        let mut wanted = like.clone();
        wanted.redis = config.redis;
        wanted.filter.key = key;
        wanted.filter.place = FilterPlace::Redis;
        let seed = match wanted.filter.seed {
            SeedChoice::Fixed(seed) => Seed::new(seed),
            // The kind of this filter has no seed, so the number has no effect.
            SeedChoice::Random => Seed::new(0),
        };
        let context = Context::new(wanted)?;
        let mut link = context.runtime.block_on(context.connect())?;
        let Context { config, runtime } = context;
        let begun = config.redis_filter()?;
        let uniting = runtime.block_on(begun.begin_union(&mut link, seed))?;
        Ok(Self { runtime, link, uniting })
    }

    /// Writes a shard to its string, byte for byte.
    pub(super) fn put_shard(&mut self, shard: ShardId, bytes: &[u8]) -> anyhow::Result<()> {
        let string = u32::try_from(shard.index())?;
        for (offset, page) in (0..).step_by(PAGE).zip(bytes.chunks(PAGE)) {
            self.put(string, offset, page)?;
        }
        Ok(())
    }

    /// Writes bytes of a string.
    pub(super) fn put(&mut self, string: u32, offset: u64, bytes: &[u8]) -> anyhow::Result<()> {
        let Self { runtime, link, uniting } = self;
        Ok(runtime.block_on(uniting.put(link, string, offset, bytes))?)
    }

    /// Adds members of a set.
    pub(super) fn add(&mut self, members: &[Vec<u8>]) -> anyhow::Result<()> {
        let Self { runtime, link, uniting } = self;
        let members: Vec<&[u8]> = members.iter().map(Vec::as_slice).collect();
        Ok(runtime.block_on(uniting.add(link, &members))?)
    }

    /// Renames the filter to its key. Fails if the key exists.
    pub(super) fn finish(self) -> anyhow::Result<()> {
        let Self { runtime, mut link, uniting } = self;
        Ok(runtime.block_on(uniting.finish(&mut link))?)
    }
}
