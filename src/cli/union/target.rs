//! A new filter in Redis, which is there once all of it is.

use crate::cli::migrate;
use redis::FromRedisValue;
use tokio::runtime::Runtime;
use urlseen_core::filter::Seed;
use urlseen_core::filter::redisbloom::Filter;
use urlseen_core::redis::link::Link;
use urlseen_core::redis_filter::opening::Uniting;
use urlseen_engine::config::{FilterPlace, SeedChoice};

use super::super::context::Context;
use super::super::operand::{Address, Operand};
use super::super::settings::Settings;

/// A filter that is put together aside.
pub(super) struct RedisTarget {
    runtime: Runtime,
    link: Link,
    uniting: Uniting,
}

impl RedisTarget {
    /// Begins a filter of what `a` is one of at `text`: a URL, `#` and a key.
    pub(super) fn begin(text: &str, settings: &Settings, a: &Operand) -> anyhow::Result<Self> {
        let Address { config, key } = Address::parse(text, settings)?;
        let mut wanted = a.config.clone();
        wanted.redis = config.redis;
        wanted.filter.key = key;
        wanted.filter.place = FilterPlace::Redis;
        let seed = match wanted.filter.seed {
            SeedChoice::Fixed(seed) => Seed::new(seed),
            // No kind but native has one.
            SeedChoice::Random => Seed::new(0),
        };
        let context = Context::new(wanted)?;
        let mut link = context.runtime.block_on(context.connect())?;
        let Context { config, runtime } = context;
        let begun = config.redis_filter()?;
        let uniting = runtime.block_on(begun.begin_union(&mut link, seed))?;
        Ok(Self { runtime, link, uniting })
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

    /// How many members the set has so far.
    pub(super) fn members(&mut self) -> anyhow::Result<u64> {
        let Self { runtime, link, uniting } = self;
        let mut count = redis::cmd("SCARD");
        let count = runtime.block_on(link.call(count.arg(uniting.aside_key())))?;
        Ok(u64::from_redis_value(count)?)
    }

    /// Puts it in its place, where nothing may be.
    pub(super) fn finish(self) -> anyhow::Result<()> {
        let Self { runtime, mut link, uniting } = self;
        Ok(runtime.block_on(uniting.finish(&mut link))?)
    }
}

/// Loads a filter of RedisBloom into a new key of a server with the module.
pub(super) fn load(text: &str, settings: &Settings, filter: &Filter) -> anyhow::Result<()> {
    let Address { config, key } = Address::parse(text, settings)?;
    let Context { config, runtime } = Context::new(config)?;
    let progress = &mut |_, _| ();
    let load = migrate::load(&config.redis.url, &key, filter, progress);
    Ok(runtime.block_on(load)?)
}
