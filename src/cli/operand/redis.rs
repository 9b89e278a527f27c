//! Filters in Redis.

use crate::cli::migrate;
use redis::FromRedisValue;
use tokio::runtime::Runtime;
use urlseen_analysis::{Cells, ExactOverlap, Form};
use urlseen_core::filter::kinds::{NATIVE, REDISBLOOM};
use urlseen_core::filter::{Parameters, RedisFilterKeys, memory};
use urlseen_core::redis::RedisAddress;
use urlseen_core::redis::link::Link;
use urlseen_core::redis_filter::opening::{self, Defined, Members};
use urlseen_engine::config::{Config, FilterPlace};

use super::super::context::Context;
use super::super::settings::Settings;
use super::super::start::UsageError;
use super::{Operand, Part, Source, divide, layers, shards};

/// A filter in Redis, and the way to it.
pub(in crate::cli) struct RedisOperand {
    runtime: Runtime,
    link: Link,
    filter: RedisFilterKeys,
}

/// Where a filter in Redis is: a server, and a key there.
pub(in crate::cli) struct Address {
    pub(in crate::cli) config: Config,
    pub(in crate::cli) key: String,
}

impl Address {
    /// Reads `URL#KEY`; the rest is as configured.
    pub(in crate::cli) fn parse(text: &str, settings: &Settings) -> anyhow::Result<Self> {
        let Some((url, key)) = text.split_once('#').filter(|(_, key)| !key.is_empty()) else {
            let words = "a filter in Redis is named by its URL, # and its key, as in \
                         redis://127.0.0.1:6379/0#demo:filter";
            return Err(UsageError(words.to_owned()).into());
        };
        let config = settings.load_with(&[format!("redis.url={url}")])?;
        Ok(Self { config, key: key.to_owned() })
    }
}

pub(super) fn open(text: &str, settings: &Settings) -> anyhow::Result<Operand> {
    let Address { config, key } = Address::parse(text, settings)?;
    let context = Context::new(config)?;
    let mut link = context.runtime.block_on(context.connect())?;
    let Context { mut config, runtime } = context;
    let what = format!("the filter {key} at {}", config.redis.url);
    if type_of(&runtime, &mut link, &key)? == "MBbloom--" {
        return module(&runtime, config, &key, what);
    }
    config.filter.key = key;
    config.filter.place = FilterPlace::Redis;
    if !config.filter.kind.is_in(FilterPlace::Redis) {
        config.filter.kind = NATIVE;
    }
    let wanted = config.redis_filter()?;
    let found = runtime.block_on(wanted.find_as_defined(&mut link))?;
    let Defined { opened, definition } = found;
    let kind = opened.filter.kind();
    if kind.native().is_none() && kind.strings().is_none() && !kind.is_exact() {
        let name = definition.spec.kind();
        let words = format!(
            "{what} has the kind {name}, whose layers grow: what two such filters have in common \
             cannot be told from their bits"
        );
        return Err(UsageError(words).into());
    }
    config.made_for(&definition.spec);
    let mut form = Form::default();
    for (name, value) in definition.spec.fields() {
        form.set(name, value);
    }
    let (seed, mut made) = (opened.native.seed(), None);
    if opened.filter.kind().native().is_some() {
        let [positions, shards] = definition.spec.parameters.rules();
        form.set("the rule of positions", positions);
        form.set("the rule of shards", shards);
        divide(&mut form, opened.native.geometry());
        made = Some(definition.spec.parameters.clone());
    }
    let filter = wanted_of(&config, seed)?;
    let source = Source::Redis(Box::new(RedisOperand { runtime, link, filter }));
    Ok(Operand { what, form, made, config, source })
}

fn wanted_of(config: &Config, seed: urlseen_core::filter::Seed) -> anyhow::Result<RedisFilterKeys> {
    Ok(config.redis_filter()?.filter(seed)?)
}

/// A filter on a server with the module of RedisBloom.
fn module(
    runtime: &Runtime,
    mut config: Config,
    key: &str,
    what: String,
) -> anyhow::Result<Operand> {
    let limit = memory::available().map_or(u64::MAX, |available| available.bytes);
    let address: &RedisAddress = &config.redis.url;
    let filter = runtime.block_on(migrate::dump(address, key, limit, &mut |_, _| ()))?;
    let mut form = Form::default();
    layers(&mut form, &filter);
    config.filter.kind = REDISBLOOM;
    let source = Source::Whole(Box::new(filter), Vec::new());
    Ok(Operand { what, form, made: Some(Parameters::imported()), config, source })
}

pub(in crate::cli) fn type_of(
    runtime: &Runtime,
    link: &mut Link,
    key: &str,
) -> anyhow::Result<String> {
    let found = runtime.block_on(link.call(redis::cmd("TYPE").arg(key)))?;
    Ok(String::from_redis_value(found)?)
}

impl RedisOperand {
    /// Whether the kind's hashes are not evenly spread.
    pub(in crate::cli) fn is_uneven(&self) -> bool {
        self.filter.kind().strings().is_some_and(|strings| strings.crowded_bits(0) > 0)
    }

    /// Whether it is an exact set.
    pub(in crate::cli) fn is_set(&self) -> bool {
        self.filter.kind().is_exact()
    }

    pub(super) fn parts(&self) -> Vec<Part> {
        if let Some(native) = self.filter.kind().native() {
            return shards(native);
        }
        let Some(strings) = self.filter.kind().strings() else { return Vec::new() };
        let part = |number| {
            let (bits, crowded) = (strings.bits(number), strings.crowded_bits(number));
            let cells = Cells::crowded_string(bits, crowded, strings.spread_hashes());
            Part { number, bytes: bits.div_ceil(8), crowded: crowded / 8, cells }
        };
        self.filter.used().into_iter().map(part).collect()
    }

    pub(super) fn read(
        &mut self,
        string: u32,
        offset: u64,
        length: usize,
    ) -> anyhow::Result<Vec<u8>> {
        let Self { runtime, link, filter } = self;
        Ok(runtime.block_on(opening::page(link, filter, string, offset, length))?)
    }

    /// All members of a set, page by page.
    pub(in crate::cli) fn members(
        &mut self,
        mut visit: impl FnMut(Vec<Vec<u8>>) -> anyhow::Result<()>,
    ) -> anyhow::Result<u64> {
        let Self { runtime, link, filter } = self;
        let mut members = runtime.block_on(Members::new(link, &filter.key(0)))?;
        while let Some(page) = runtime.block_on(members.next(link))? {
            visit(page)?;
        }
        Ok(members.size())
    }

    /// How many of these are members of a set.
    fn common(&mut self, members: &[Vec<u8>]) -> anyhow::Result<u64> {
        let Self { runtime, link, filter } = self;
        Ok(runtime.block_on(opening::common(link, &filter.key(0), members))?)
    }
}

/// Counts two exact sets.
pub(in crate::cli) fn exact(
    a: &mut RedisOperand,
    b: &mut RedisOperand,
) -> anyhow::Result<ExactOverlap> {
    let mut intersection = 0;
    let of_a = a.members(|page| {
        intersection += b.common(&page)?;
        Ok(())
    })?;
    let of_b = b.members(|_| Ok(()))?;
    Ok(ExactOverlap { a: of_a, b: of_b, intersection })
}
