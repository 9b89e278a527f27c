//! Filters in Redis, which commands read page by page.

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio::runtime::Runtime;
use urlseen_analysis::{Ones, Totals};
use urlseen_core::filter::kinds::NATIVE;
use urlseen_core::filter::{Cells, FilterSpec, Kind, RedisFilterKeys, SHARDS, ShardId};
use urlseen_core::redis::RedisAddress;
use urlseen_core::redis::link::Link;
use urlseen_core::redis_filter::definition::Definition;
use urlseen_core::redis_filter::opening::{self, Members, Opened};
use urlseen_engine::config::{Config, FilterPlace};

use super::super::bar::Bar;
use super::super::context::Context;
use super::super::settings::Settings;
use super::super::start::usage;
use super::{Operand, PAGE, Shards, Source, layered};
use crate::cli::migrate;

/// Filter in Redis, and a connection to its server.
pub(in crate::cli) struct RedisOperand {
    runtime: Runtime,
    link: Link,
    filter: Arc<RedisFilterKeys>,
}

/// Place of a filter in Redis: a server and a key.
pub(in crate::cli) struct Address {
    pub(in crate::cli) config: Config,
    pub(in crate::cli) key: String,
}

impl Address {
    /// Parses `URL#KEY`. The other settings come from the configuration.
    pub(in crate::cli) fn parse(text: &str, settings: &Settings) -> anyhow::Result<Self> {
        let Some((url, key)) = text.split_once('#').filter(|(_, key)| !key.is_empty()) else {
            let words = "write a filter in Redis as the URL of Redis, # and the key: \
                         redis://127.0.0.1:6379/0#demo:filter";
            return Err(usage(words));
        };
        let mut more = vec![format!("redis.url={url}")];
        if RedisAddress::parse(url).is_ok_and(|address| !address.is_tls()) {
            // The configured TLS files belong to the configured server. A server without TLS needs
            // none.
            more.extend(["ca", "cert", "key"].map(|file| format!("redis.tls_{file}=")));
        }
        let mut config = settings.load_for(&more, |_| None)?;
        config.redis.url = config.redis.url.for_key(key);
        Ok(Self { config, key: key.to_owned() })
    }
}

pub(super) fn open(text: &str, settings: &Settings) -> anyhow::Result<Operand> {
    let Address { config, key } = Address::parse(text, settings)?;
    let context = Context::new(config)?;
    let mut link = context.runtime.block_on(context.connect())?;
    let Context { mut config, runtime } = context;
    let what = format!("the filter {key} at {}", config.redis.url);
    if runtime.block_on(migrate::type_of(&mut link, &key))? == migrate::TYPE {
        return Err(layered(&what, Kind::REDISBLOOM));
    }
    config.filter.key = key;
    config.filter.place = FilterPlace::Redis;
    if !config.filter.kind.is_in(FilterPlace::Redis) {
        config.filter.kind = NATIVE;
    }
    let wanted = config.redis_filter()?;
    let opened = runtime.block_on(wanted.find_as_defined(&mut link))?;
    let Opened { definition: Definition { spec, .. }, filter, .. } = opened;
    config.made_for(&spec);
    let [positions, shards] = spec.parameters.rules();
    let rules = [positions, shards, spec.fingerprint.algorithm.version().to_owned()];
    let redis = RedisOperand { runtime, link, filter };
    let source = if spec.kind().is_in(FilterPlace::Local) {
        Source::Shards(redis.into_shards(&spec))
    } else {
        if !redis.is_set() && redis.parts().is_empty() {
            return Err(layered(&what, spec.kind()));
        }
        Source::Redis(Box::new(redis))
    };
    Ok(Operand { what, spec, rules, config, source })
}

impl RedisOperand {
    /// Returns true if the filter is an exact set.
    pub(in crate::cli) fn is_set(&self) -> bool {
        self.filter.kind().is_exact()
    }

    /// Returns the shards of a filter. Each string of the filter in Redis is one shard, byte for
    /// byte.
    fn into_shards(self, spec: &FilterSpec) -> Shards {
        let Self { runtime, mut link, filter } = self;
        let parameters = spec.parameters.clone();
        let read = Box::new(move |shard: ShardId| {
            let mut read = parameters.build(shard.index(), SHARDS)?;
            let length = filter.kind().content(shard.number()).max_bytes().unwrap_or(0);
            let bytes = opening::get(&mut link, &filter, shard, usize::try_from(length)?);
            let bytes = runtime.block_on(bytes)?;
            read.load(shard, 0, length, &mut bytes.as_slice())?;
            Ok(read)
        });
        Shards::new(BTreeSet::new(), read)
    }

    /// For each string, returns the string's number, the distribution of its bits, and its length
    /// in bytes.
    fn parts(&self) -> Vec<(u32, Cells, u64)> {
        let kind = self.filter.kind();
        let bytes = |number| kind.content(number).max_bytes().unwrap_or(0);
        let part = |number| Some((number, kind.cells(number)?, bytes(number)));
        kind.used().into_iter().filter_map(part).collect()
    }

    /// Reads the strings of two filters page by page, and counts their bits. Passes each page of
    /// both filters to `visit`, with the number of the string and the offset of the page.
    pub(in crate::cli) fn walk(
        a: &mut Self,
        b: &mut Self,
        mut visit: impl FnMut(u32, u64, &[u8], &[u8]) -> anyhow::Result<()>,
    ) -> anyhow::Result<Totals> {
        let (parts, mut totals, bar) = (a.parts(), Totals::default(), Bar::new("read"));
        let all: u64 = parts.iter().map(|(_, _, bytes)| bytes).sum();
        let mut done = 0;
        for (number, cells, bytes) in parts {
            let mut ones = Ones::default();
            for offset in (0..bytes).step_by(PAGE) {
                let length = (bytes - offset).min(PAGE as u64);
                let (of_a, of_b) =
                    (a.page(number, offset, length)?, b.page(number, offset, length)?);
                // Bytes that the estimate must skip are at the start of the string, in its first
                // page.
                let crowded = if offset == 0 { cells.crowded_bytes().min(length) } else { 0 };
                let from = usize::try_from(crowded)?;
                ones.add(&of_a[from..], &of_b[from..]);
                visit(number, offset, &of_a, &of_b)?;
                done += length;
                bar.show(done, all);
            }
            totals.add(&cells, ones);
        }
        Ok(totals)
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
