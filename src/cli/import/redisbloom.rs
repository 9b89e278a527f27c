//! Import of a complete filter of RedisBloom into a new storage folder.

use std::io::{self, Write};

use crate::admin::printable::{say, stdout};
use crate::cli::migrate;
use anyhow::Context;
use indicatif::{BinaryBytes, HumanCount};
use serde_json::json;
use urlseen_core::filter::id::RandomId;
use urlseen_core::filter::kinds::REDISBLOOM;
use urlseen_core::filter::redisbloom::Filter;
use urlseen_core::filter::{FilterSpec, Parameters, memory};
use urlseen_core::redis::RedisAddress;
use urlseen_core::storage::{Folder, StorageSpec};
use urlseen_engine::config::Config;

use super::super::bar::Bar;
use super::super::context::runtime;
use super::super::rows::{Rows, SUMMARY};
use super::super::start::usage;
use super::super::{Outcome, start};
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
        return Err(usage(format!(
            "the storage folder {dir} already holds a filter, and the import of a RedisBloom \
             filter needs a new folder: set another storage.dir, or delete the filter with \
             urlseen storage drop"
        )));
    }
    // If an interrupted import has left a header, the header must match this import.
    if let Err(differences) = folder.check(&spec) {
        return Err(start::mismatch(folder.dir(), &differences));
    }
    let (limit, bar) = (memory::available().map_or(u64::MAX, |it| it.bytes), Bar::new("read"));
    let filter = match from {
        From::File(path) => migrate::read(path, limit, &bar)?,
        From::Key(key, address) => {
            runtime()?.block_on(migrate::dump(&address, key, limit, &bar))?
        }
    };
    drop(bar);
    let written = folder.import(&spec, RandomId::random().get(), &filter);
    written.with_context(|| {
        format!("{} cannot be written: repeat the command", folder.dir().display())
    })?;
    print(&filter, args.json)?;
    Ok(Outcome::Done)
}

/// Returns the folder, its spec, and the place of the filter to import.
fn prepare(args: &ImportArgs) -> anyhow::Result<(Folder, StorageSpec, From<'_>)> {
    let imported = |crawl: String, fingerprint| StorageSpec {
        crawl,
        filter: FilterSpec { parameters: Parameters::imported(), fingerprint },
    };
    if let (Some(storage), Some(file)) = (&args.storage, &args.redisbloom_file) {
        let spec = imported(Config::default().crawl.name, args.shape.fingerprint());
        return Ok((Folder::open(storage)?, spec, From::File(file)));
    }
    let config = args.settings.load()?;
    super::check_algorithm(args, &config)?;
    if config.filter.kind != REDISBLOOM {
        return Err(usage(format!(
            "filter.kind is {:?}: set filter.kind = \"redisbloom\" to import a RedisBloom filter",
            config.filter.kind.name()
        )));
    }
    let folder = Folder::open(&config.storage.dir)?;
    let fingerprint = config.fingerprint_spec();
    let Config { crawl, redis, .. } = config;
    let spec = imported(crawl.name, fingerprint);
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
    let expansion = filter.expansion();
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
    let mut rows = Rows::new(out, SUMMARY);
    rows.number("keys", HumanCount(keys), "count as seen from now on")?;
    rows.number("capacity", HumanCount(capacity), format_args!("in {layers} layers"))?;
    let growth = match expansion {
        0 => "it does not grow".to_owned(),
        times => format!("it grows: each new layer has {times} times the capacity of the last"),
    };
    rows.number("memory", BinaryBytes(bytes), growth)?;
    rows.number("error rate", format_args!("{error_rate:.1e}"), "now")
}
