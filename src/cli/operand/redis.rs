//! Filters in Redis, read by pages.

use std::collections::BTreeSet;

use redis::FromRedisValue;
use tokio::runtime::Runtime;
use urlseen_analysis::{Ones, Totals};
use urlseen_core::filter::kinds::NATIVE;
use urlseen_core::filter::{Cells, FilterSpec, Kind, RedisFilterKeys, SHARDS, ShardId};
use urlseen_core::redis::link::Link;
use urlseen_core::redis_filter::opening::{self, Defined, Members};
use urlseen_engine::config::{Config, FilterPlace};

use super::super::bar::Bar;
use super::super::context::Context;
use super::super::settings::Settings;
use super::super::start::UsageError;
use super::{Counted, Operand, PAGE, Shards, Source, local};
use crate::cli::migrate;

/// Filter in Redis, and the connection to it.
pub(in crate::cli) struct RedisOperand {
    runtime: Runtime,
    link: Link,
    filter: RedisFilterKeys,
}

/// Place of a filter in Redis: a server, and a key there.
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
        let (limit, progress) = (local::memory_limit(), &mut |_, _| ());
        let dump = migrate::dump(&config.redis.url, &key, limit, progress);
        let filter = runtime.block_on(dump)?;
        return local::of_redisbloom(what, filter, config);
    }
    config.filter.key = key;
    config.filter.place = FilterPlace::Redis;
    if !config.filter.kind.is_in(FilterPlace::Redis) {
        config.filter.kind = NATIVE;
    }
    let wanted = config.redis_filter()?;
    let Defined { opened, definition } = runtime.block_on(wanted.find_as_defined(&mut link))?;
    let spec = definition.spec;
    config.made_for(&spec);
    let filter = config.redis_filter()?.filter(opened.seed)?;
    let [positions, shards] = spec.parameters.rules().map(str::to_owned);
    let rules = Some([positions, shards, spec.algorithm.version().to_owned()]);
    let redis = RedisOperand { runtime, link, filter };
    let source = if spec.kind().is_in(FilterPlace::Local) {
        Source::Shards(redis.into_shards(&spec)?)
    } else {
        redis.check(&what, spec.kind())?;
        Source::Redis(Box::new(redis))
    };
    Ok(Operand { what, spec, rules, config, source })
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
    /// Returns true if the kind's hashes are unevenly spread.
    pub(in crate::cli) fn is_uneven(&self) -> bool {
        self.parts().iter().any(|(_, cells)| cells.crowded_bytes() > 0)
    }

    /// Returns true if the filter is an exact set.
    pub(in crate::cli) fn is_set(&self) -> bool {
        self.filter.kind().is_exact()
    }

    /// Refuses a filter whose bits alone do not tell which keys it has.
    fn check(&self, what: &str, kind: Kind) -> anyhow::Result<()> {
        if self.is_set() || !self.parts().is_empty() {
            return Ok(());
        }
        let words = format!(
            "{what} has the kind {kind}: the bits of two such filters do not tell what they have \
             in common"
        );
        Err(UsageError(words).into())
    }

    /// Reads strings that are the shards of a filter, byte for byte.
    fn into_shards(self, spec: &FilterSpec) -> anyhow::Result<Shards> {
        let Self { runtime, mut link, filter } = self;
        let parameters = spec.parameters.clone();
        let read = Box::new(move |shard: ShardId| {
            let mut read = parameters.build(shard.index(), SHARDS)?;
            let length = filter.bytes_of(shard);
            let bytes = opening::get(&mut link, &filter, shard, usize::try_from(length)?);
            let bytes = runtime.block_on(bytes)?;
            read.load(shard, 0, length, &mut bytes.as_slice())?;
            Ok(read)
        });
        Shards::new(spec.parameters.shards(), BTreeSet::new(), read)
    }

    /// Numbers of the strings, with the distribution of their bits.
    fn parts(&self) -> Vec<(u32, Cells)> {
        let kind = self.filter.kind();
        let part = |number| Some((number, kind.cells(number)?));
        self.filter.used().into_iter().filter_map(part).collect()
    }

    /// Reads the strings of both filters page by page, and counts; `visit` gets each page of both,
    /// with the number of the string and the offset there.
    pub(in crate::cli) fn walk(
        a: &mut Self,
        b: &mut Self,
        mut visit: impl FnMut(u32, u64, &[u8], &[u8]) -> anyhow::Result<()>,
    ) -> anyhow::Result<Counted> {
        let (parts, mut counted, bar) = (a.parts(), Counted::default(), Bar::new("read"));
        let bytes = |number| a.filter.content(number).max_bytes().unwrap_or(0);
        let parts: Vec<_> =
            parts.iter().map(|&(number, cells)| (number, cells, bytes(number))).collect();
        let all: u64 = parts.iter().map(|(_, _, bytes)| bytes).sum();
        let mut done = 0;
        for (number, cells, bytes) in parts {
            let mut ones = Ones::default();
            for offset in (0..bytes).step_by(PAGE) {
                let length = (bytes - offset).min(PAGE as u64);
                let (of_a, of_b) =
                    (a.page(number, offset, length)?, b.page(number, offset, length)?);
                // They are within the first page.
                let crowded = if offset == 0 { cells.crowded_bytes().min(length) } else { 0 };
                let from = usize::try_from(crowded)?;
                ones.add(&of_a[from..], &of_b[from..]);
                visit(number, offset, &of_a, &of_b)?;
                done += length;
                bar.show(done, all);
            }
            counted.totals.add(&cells, ones);
            counted.ones += ones;
        }
        Ok(counted)
    }

    fn page(&mut self, string: u32, offset: u64, length: u64) -> anyhow::Result<Vec<u8>> {
        let Self { runtime, link, filter } = self;
        let page = opening::page(link, filter, string, offset, usize::try_from(length)?);
        Ok(runtime.block_on(page)?)
    }

    /// Reads all members of a set, page by page. Returns their number.
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

    /// Counts the members of two sets.
    pub(in crate::cli) fn count(a: &mut Self, b: &mut Self) -> anyhow::Result<Totals> {
        let mut common = 0;
        let of_a = a.members(|page| {
            let RedisOperand { runtime, link, filter } = &mut *b;
            common += runtime.block_on(opening::common(link, &filter.key(0), &page))?;
            Ok(())
        })?;
        let of_b = b.members(|_| Ok(()))?;
        let mut totals = Totals::default();
        totals.add_exact(of_a, of_b, common);
        Ok(totals)
    }
}
