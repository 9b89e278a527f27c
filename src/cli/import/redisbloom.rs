//! A filter of RedisBloom as a whole, into a new storage folder.

use std::io::{self, Write};

use crate::admin::printable::{say, stdout};
use crate::cli::migrate;
use anyhow::Context;
use indicatif::{BinaryBytes, HumanCount};
use serde_json::json;
use urlseen_core::filter::id::RandomId;
use urlseen_core::filter::kinds::REDISBLOOM;
use urlseen_core::filter::memory;
use urlseen_core::filter::redisbloom::{Filter, Growth};
use urlseen_core::filter::{FilterSpec, Parameters};
use urlseen_core::redis::RedisAddress;
use urlseen_core::storage::{Folder, StorageSpec};
use urlseen_engine::config::Config;

use super::super::Outcome;
use super::super::bar::Bar;
use super::super::context::runtime;
use super::super::start::{FolderMismatchError, UsageError};
use super::ImportArgs;

/// Place of the filter to import.
enum From<'a> {
    File(&'a std::path::Path),
    Key(&'a str, RedisAddress),
}

pub(super) fn run(args: &ImportArgs) -> anyhow::Result<Outcome> {
    let (mut folder, spec, from) = prepare(args)?;
    if !folder.awaits_import()? {
        let dir = folder.dir().display();
        return Err(UsageError(format!(
            "the storage folder {dir} holds a filter already, and a filter of RedisBloom is \
             imported as a whole: set another storage.dir, or give up what is there with urlseen \
             storage drop"
        ))
        .into());
    }
    // Where an import was broken off.
    if let Err(differences) = folder.check(&spec) {
        return Err(FolderMismatchError::new(folder.dir(), &differences).into());
    }
    let limit = memory::available().map_or(u64::MAX, |available| available.bytes);
    let bar = Bar::new("read");
    let filter = match from {
        From::File(path) => migrate::read(path, limit, &mut |done, all| bar.show(done, all))?,
        From::Key(key, address) => {
            let runtime = runtime()?;
            let progress = &mut |done, all| bar.show(done, all);
            runtime.block_on(migrate::dump(&address, key, limit, progress))?
        }
    };
    drop(bar);
    let written = folder.import(&spec, RandomId::random().get(), &filter);
    written.with_context(|| {
        format!("{} cannot be written; give the same command again", folder.dir().display())
    })?;
    print(&filter, args.json)?;
    Ok(Outcome::Done)
}

/// The folder, what it is to be made for, and where the filter is.
fn prepare(args: &ImportArgs) -> anyhow::Result<(Folder, StorageSpec, From<'_>)> {
    let imported = |crawl: String, algorithm, keep_fragments| StorageSpec {
        crawl,
        filter: FilterSpec { parameters: Parameters::imported(), algorithm, keep_fragments },
    };
    if let (Some(storage), Some(file)) = (&args.storage, &args.redisbloom_file) {
        let Config { crawl, fingerprint, .. } = Config::default();
        let (algorithm, keep) = args.shape.fingerprints();
        let algorithm = algorithm.unwrap_or(fingerprint.algorithm);
        let spec = imported(crawl.name, algorithm, keep);
        return Ok((Folder::open(storage)?, spec, From::File(file)));
    }
    let config = args.settings.load()?;
    super::check_algorithm(args, &config)?;
    if config.filter.kind != REDISBLOOM {
        return Err(UsageError(format!(
            "filter.kind is {:?}, and a filter of RedisBloom goes into a crawl whose \
             filter.kind is \"redisbloom\": set that first",
            config.filter.kind.name()
        ))
        .into());
    }
    let folder = Folder::open(&config.storage.dir)?;
    let Config { crawl, fingerprint, redis, .. } = config;
    let spec = imported(crawl.name, fingerprint.algorithm, fingerprint.keep_fragments);
    let from = match (&args.redisbloom_file, &args.redisbloom) {
        (Some(file), _) => From::File(file),
        (None, key) => From::Key(key.as_deref().unwrap_or_default(), redis.url),
    };
    Ok((folder, spec, from))
}

/// Prints the size, capacity and error rate of the filter.
fn print(filter: &Filter, as_json: bool) -> io::Result<()> {
    let (keys, capacity, layers) = (filter.size(), filter.capacity(), filter.layers().len());
    let (bytes, error_rate) = (filter.bytes(), filter.error_rate_now());
    let expansion = match filter.growth() {
        Growth::Expansion(times) => times,
        Growth::None => 0,
    };
    if let Some(warning) = filter.rate_when_full().warning() {
        say(format_args!("urlseen: {warning}"));
    }
    let mut out = stdout();
    if as_json {
        let value = json!({
            "keys": keys, "capacity": capacity, "layers": layers, "bytes": bytes,
            "error_rate": error_rate, "expansion": expansion,
        });
        return writeln!(out, "{value}");
    }
    writeln!(out, "keys       {:>12}   count as seen from now on", HumanCount(keys))?;
    writeln!(out, "capacity   {:>12}   in {layers} layers", HumanCount(capacity))?;
    let growth = match expansion {
        0 => "it does not grow".to_owned(),
        times => format!("it grows by layers of {times} times the last"),
    };
    writeln!(out, "memory     {:>12}   {growth}", BinaryBytes(bytes).to_string())?;
    writeln!(out, "error rate {error_rate:>12.1e}   now")
}
