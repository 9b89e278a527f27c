//! Filters that commands compare or unite: in a storage folder or in Redis. Commands only read
//! them, part by part.

use std::collections::BTreeSet;
use std::path::Path;

use urlseen_core::filter::kinds::NATIVE;
use urlseen_core::filter::{FilterKind, FilterSpec, ShardId};
use urlseen_core::redis::link::Link;
use urlseen_core::redis_filter::opening::{self, Opened};
use urlseen_core::storage::{AtRest, ShardReader};
use urlseen_engine::config::{Config, FilterPlace};

use super::context::{self, runtime};
use super::settings::Settings;
use super::start::usage;

/// Filter that a command reads.
pub(super) struct Operand {
    pub(super) spec: FilterSpec,
    /// Name of the filter's crawl.
    pub(super) crawl: String,
    /// Forgotten keys that have not passed again.
    pub(super) tombstones: BTreeSet<(ShardId, u128)>,
    /// Reads a part: a shard, or a string. The parts must be read in order.
    pub(super) read: Box<dyn FnMut(u32) -> anyhow::Result<Part>>,
}

/// Content of a part of a filter.
pub(super) enum Part {
    /// Shard of a kind that stores keys.
    Keys(Box<dyn FilterKind>),
    /// String of a Bloom filter: for a shard in memory, the bytes that Redis would have, or none if
    /// the shard is empty.
    Bits(Vec<u8>),
}

/// Returns the shard with this number.
pub(super) fn shard(number: u32) -> ShardId {
    ShardId::all().nth(number as usize).expect("the parts of this kind are shards")
}

impl Operand {
    /// Opens the filter that `text` names.
    pub(super) fn open(text: &str, settings: &Settings) -> anyhow::Result<Self> {
        if text.contains("://") { Self::in_redis(text, settings) } else { Self::folder(text) }
    }

    fn folder(path: &str) -> anyhow::Result<Self> {
        let (folder, _) = AtRest::open_beside(Path::new(path))?;
        let Some(header) = folder.header() else {
            anyhow::bail!("the storage folder {path} is new: it holds no filter");
        };
        let spec = header.spec().clone();
        if let Err(rules) = folder.check(&spec) {
            anyhow::bail!("{path}: {}", rules[0]);
        }
        let has_strings = spec.filter.parameters.in_redis().is_ok();
        let mut reader = ShardReader::of_folder(folder)?;
        // A kind that stores keys has removed the forgotten ones.
        let tombstones = if has_strings { reader.tombstones().clone() } else { BTreeSet::new() };
        let read = move |number| {
            let filter = reader.read(shard(number))?;
            Ok(if has_strings {
                Part::Bits(filter.save(shard(number), Vec::new()).into_buffer())
            } else {
                Part::Keys(filter)
            })
        };
        let (spec, crawl) = (spec.filter, spec.crawl);
        Ok(Self { spec, crawl, tombstones, read: Box::new(read) })
    }

    fn in_redis(text: &str, settings: &Settings) -> anyhow::Result<Self> {
        let (mut config, mut link) = connect(text, settings)?;
        if !config.filter.kind.is_in(FilterPlace::Redis) {
            config.filter.kind = NATIVE;
        }
        let wanted = config.redis_filter()?;
        let Opened { definition, filter, .. } =
            runtime()?.block_on(wanted.find_as_defined(&mut link))?;
        let read = move |number| {
            let bytes = opening::get(&mut link, &filter, number);
            Ok(Part::Bits(runtime()?.block_on(bytes)?))
        };
        let (spec, crawl, tombstones) = (definition.spec, config.crawl.name, BTreeSet::new());
        Ok(Self { spec, crawl, tombstones, read: Box::new(read) })
    }
}

/// Connects to the Redis of `URL#KEY`, the place of a filter. The other settings come from the
/// configuration.
pub(super) fn connect(text: &str, settings: &Settings) -> anyhow::Result<(Config, Link)> {
    let Some((url, key)) = text.split_once('#').filter(|(_, key)| !key.is_empty()) else {
        let words = "write a filter in Redis as the URL of Redis, # and the key: \
                     redis://127.0.0.1:6379/0#demo:filter";
        return Err(usage(words));
    };
    let mut config = settings.load_for(&[format!("redis.url={url}")], |_| None)?;
    config.redis.url = config.redis.url.for_key(key);
    key.clone_into(&mut config.filter.key);
    let link = runtime()?.block_on(context::connect(&config))?;
    Ok((config, link))
}
