//! Filters that commands compare or unite: in a storage folder, a snapshot or Redis.
//! Commands only read them, part by part.

use std::any::Any;
use std::collections::BTreeSet;
use std::path::Path;

use urlseen_core::filter::kinds::NATIVE;
use urlseen_core::filter::redisbloom::Filter;
use urlseen_core::filter::{
    Cells, FilterKind, FilterSpec, Kind, RedisBloomFilter, SHARDS, ShardId, SpecDifference,
};
use urlseen_core::redis::RedisAddress;
use urlseen_core::redis_filter::opening::{self, Opened};
use urlseen_core::storage::{AtRest, Beside, ShardReader};
use urlseen_engine::config::{Config, FilterPlace};

use super::context::Context;
use super::migrate;
use super::settings::Settings;
use super::start::usage;

/// Names of the rules that decide a filter's bits, but are not keys of the configuration.
const RULES: [&str; 3] =
    ["the rule of positions", "the rule of shards", "the version of fingerprint.algorithm"];

/// Help text of the commands that take filters.
const NOTATION: &str = "\
A filter is a storage folder, a file `snapshot-…` in a storage folder, or a key in Redis. Write a \
key as the URL of Redis, `#` and the key, as in redis://127.0.0.1:6379/0#demo:filter or \
unix:///run/redis.sock#demo:filter. If urlseen made the filter in Redis, Redis also holds the \
parameters of the filter. If another project made the filter, set its parameters in the \
configuration. Set the password of Redis in URLSEEN_REDIS_PASSWORD.";

/// Adds [`NOTATION`], the text on naming a filter, to the long help of a command. The text comes
/// before the exit statuses.
pub(super) fn grammar(command: clap::Command) -> clap::Command {
    let foot = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    command.after_long_help(format!("{NOTATION}\n\n{foot}"))
}

/// Filter that a command reads.
pub(super) struct Operand {
    /// Description for people: the place of the filter, and the part that the command reads.
    pub(super) what: String,
    pub(super) spec: FilterSpec,
    rules: [String; 3],
    /// Configuration with the settings of the filter.
    pub(super) config: Config,
    /// Forgotten keys that have not passed again.
    pub(super) tombstones: BTreeSet<(ShardId, u128)>,
    /// Parts of the filter, which [`Self::read`] reads.
    pub(super) parts: Vec<PartId>,
    pub(super) read: Box<dyn FnMut(PartId) -> anyhow::Result<Part>>,
}

/// Position of a part of a filter.
#[derive(Debug, Clone, Copy)]
pub(super) struct PartId {
    /// Number of the shard, or of the string in Redis.
    pub(super) number: u32,
    /// Offset and length of a page of a string.
    pub(super) offset: u64,
    length: u64,
}

impl PartId {
    /// Returns the shard that the part is, for a kind that can be in memory.
    pub(super) fn shard(self) -> ShardId {
        ShardId::all().nth(self.number as usize).expect("the parts of such a kind are shards")
    }
}

/// Content of a part of a filter.
pub(super) enum Part {
    /// Shard of a kind that can be in memory.
    Shard(Box<dyn FilterKind>),
    /// Page of a string in Redis, and the distribution of the string's bits.
    Page(Cells, Vec<u8>),
}

impl Operand {
    /// Opens the filter that `text` names.
    pub(super) fn open(text: &str, settings: &Settings) -> anyhow::Result<Self> {
        let path = Path::new(text);
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if text.contains("://") {
            Self::in_redis(text, settings)
        } else if path.is_dir() {
            Self::folder(path)
        } else if name.starts_with("snapshot-") {
            Self::local(format!("the snapshot {text}"), ShardReader::of_snapshot(path)?)
        } else {
            Err(usage(format!("{text} is neither a storage folder nor a snapshot in one")))
        }
    }

    fn folder(path: &Path) -> anyhow::Result<Self> {
        let (folder, beside) = AtRest::open_beside(path)?;
        let at = path.display();
        if folder.header().is_none() {
            anyhow::bail!("the storage folder {at} is new: it holds no filter");
        }
        let used = match beside {
            None => String::new(),
            Some(Beside { holder: Some(holder) }) => {
                format!(" (in use by {holder}, which continues)")
            }
            Some(Beside { holder: None }) => " (in use by a process, which continues)".to_owned(),
        };
        let reader = ShardReader::of_folder(folder)?;
        let snapshot = reader.snapshot();
        let what = format!("the storage folder {at}{used}: {snapshot} and the log after it");
        Self::local(what, reader)
    }

    fn local(what: String, mut reader: ShardReader) -> anyhow::Result<Self> {
        let (header, mut config) = (reader.header().clone(), Config::default());
        let spec = header.spec();
        if spec.filter.kind() == Kind::REDISBLOOM {
            return Err(unsupported(&what, Kind::REDISBLOOM));
        }
        config.crawl.name.clone_from(&spec.crawl);
        config.made_for(&spec.filter);
        Ok(Self {
            what,
            spec: spec.filter.clone(),
            rules: header.rules().map(str::to_owned),
            config,
            tombstones: reader.tombstones().clone(),
            parts: parts(ShardId::all().map(ShardId::number), |_| 1, 1).collect(),
            read: Box::new(move |part| Ok(Part::Shard(reader.read(part.shard())?))),
        })
    }

    fn in_redis(text: &str, settings: &Settings) -> anyhow::Result<Self> {
        let context = Context::new(address(text, settings)?)?;
        let mut link = context.runtime.block_on(context.connect())?;
        let Context { mut config, runtime } = context;
        let what = format!("the filter {} at {}", config.filter.key, config.redis.url);
        if runtime.block_on(migrate::type_of(&mut link, &config.filter.key))? == migrate::TYPE {
            return Err(unsupported(&what, Kind::REDISBLOOM));
        }
        config.filter.place = FilterPlace::Redis;
        if !config.filter.kind.is_in(FilterPlace::Redis) {
            config.filter.kind = NATIVE;
        }
        let wanted = config.redis_filter()?;
        let Opened { definition, filter, .. } =
            runtime.block_on(wanted.find_as_defined(&mut link))?;
        let spec = definition.spec;
        config.made_for(&spec);
        let [positions, shards] = spec.parameters.rules();
        let length = |number| filter.kind().content(number).max_bytes().unwrap_or(0);
        let used = filter.kind().used().into_iter();
        // Each string of a native filter is a shard, byte for byte.
        let is_native = spec.kind().is_in(FilterPlace::Local);
        let parts: Vec<_> = if is_native {
            parts(used, length, u64::MAX).collect()
        } else {
            let used = used.filter(|&number| filter.kind().cells(number).is_some());
            parts(used, length, opening::PAGE as u64).collect()
        };
        if parts.is_empty() {
            return Err(unsupported(&what, spec.kind()));
        }
        let (rules, parameters) = (
            [positions, shards, spec.fingerprint.algorithm.version().to_owned()],
            spec.parameters.clone(),
        );
        let read = move |part: PartId| {
            let PartId { number, offset, length } = part;
            let (link, size) = (&mut link, usize::try_from(length)?);
            if let Some(cells) = filter.kind().cells(number) {
                let page = opening::page(link, &filter, number, offset, size);
                return Ok(Part::Page(cells, runtime.block_on(page)?));
            }
            let bytes = runtime.block_on(opening::get(link, &filter, part.shard(), size))?;
            let mut read = parameters.build(number as usize, SHARDS)?;
            read.load(part.shard(), 0, length, &mut bytes.as_slice())?;
            Ok(Part::Shard(read))
        };
        let (tombstones, read) = (BTreeSet::new(), Box::new(read));
        Ok(Self { what, spec, rules, config, tombstones, parts, read })
    }

    /// Refuses two filters if their bits have different meanings.
    pub(super) fn check(&self, other: &Self) -> anyhow::Result<()> {
        let rules = self.rules.iter().zip(&other.rules).zip(RULES);
        let rules = rules.filter(|((a, b), _)| a != b);
        let rules = rules.map(|((a, b), what)| format!("* {what}: {a} in A, {b} in B"));
        let spec = self.spec.differences(&other.spec).into_iter();
        let spec = spec.map(|SpecDifference { what, found, wanted }| {
            format!("* {what}: {found} in A, {wanted} in B")
        });
        let lines: Vec<_> = rules.chain(spec).collect();
        if lines.is_empty() {
            return Ok(());
        }
        Err(usage(format!(
            "the filters have different settings, so their bits have different meanings. A is {}, \
             B is {}:\n{}\nBy default, each filter has its own random seed. To compare filters, \
             make them with the same filter.seed or --seed",
            self.what,
            other.what,
            lines.join("\n")
        )))
    }
}

/// Divides strings, or shards, into parts of at most `page` bytes.
fn parts(
    numbers: impl IntoIterator<Item = u32>,
    length: impl Fn(u32) -> u64,
    page: u64,
) -> impl Iterator<Item = PartId> {
    numbers.into_iter().flat_map(move |number| {
        let all = length(number);
        let step = usize::try_from(page).unwrap_or(usize::MAX);
        (0..all).step_by(step).map(move |offset| {
            let length = page.min(all - offset);
            PartId { number, offset, length }
        })
    })
}

/// Parses `URL#KEY`, the place of a filter in Redis. The other settings come from the
/// configuration.
pub(super) fn address(text: &str, settings: &Settings) -> anyhow::Result<Config> {
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
    key.clone_into(&mut config.filter.key);
    Ok(config)
}

/// Returns the error for a filter that can be neither compared nor united.
fn unsupported(what: &str, kind: Kind) -> anyhow::Error {
    if kind == Kind::SCRAPY_REDIS {
        return usage(format!(
            "{what} is a set: Redis itself counts and unites sets, with SINTERCARD and SUNIONSTORE"
        ));
    }
    usage(format!(
        "{what} has the kind {kind}, which grows by layers: a fingerprint can be in different \
         layers of two filters, so they can be neither compared nor united"
    ))
}

/// Reads the filter of RedisBloom in a storage folder.
pub(super) fn redisbloom(reader: &mut ShardReader) -> anyhow::Result<Filter> {
    let filter: Box<dyn Any> = reader.read(ShardId::WHOLE)?;
    let filter = filter.downcast::<RedisBloomFilter>().map_err(|_| {
        let kind = reader.header().spec().filter.kind().name();
        anyhow::anyhow!("the filter has the kind {kind}, not redisbloom")
    })?;
    Ok(filter.into_filter()?)
}
