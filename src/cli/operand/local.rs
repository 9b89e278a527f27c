//! Filters in storage folders and files.

use std::any::Any;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use indicatif::BinaryBytes;
use urlseen_core::filter::redisbloom::Filter;
use urlseen_core::filter::redisbloom::dump::MAGIC;
use urlseen_core::filter::{FilterKind, FilterSpec, Parameters, RedisBloomFilter, ShardId, memory};
use urlseen_core::storage::{AtRest, Beside, ShardReader, look};
use urlseen_engine::config::Config;

use super::super::bar::Bar;
use super::super::settings::Settings;
use super::super::start::usage;
use super::{Operand, Shards, Source};
use crate::cli::migrate;

pub(super) fn open(path: &Path, settings: &Settings) -> anyhow::Result<Operand> {
    if path.is_dir() {
        return folder(path);
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if name.starts_with("snapshot-") {
        let reader = ShardReader::of_snapshot(path)?;
        return read(format!("the snapshot {}", path.display()), reader);
    }
    let mut begin = [0; MAGIC.len()];
    let mut file = File::open(path)
        .map_err(|error| anyhow::anyhow!("{} cannot be read: {error}", path.display()))?;
    if file.read_exact(&mut begin).is_ok() && begin == *MAGIC {
        let filter = migrate::read(path, memory_limit(), &Bar::hidden())?;
        return of_redisbloom(
            format!("the dump {}", path.display()),
            filter,
            settings.load_crawl()?,
        );
    }
    Err(usage(format!(
        "{} is neither a storage folder, nor a snapshot in one, nor a dump of RedisBloom",
        path.display()
    )))
}

fn folder(path: &Path) -> anyhow::Result<Operand> {
    let (folder, beside) = AtRest::open_beside(path)?;
    let at = path.display();
    let Some(header) = folder.header() else {
        anyhow::bail!("the storage folder {at} is new: it holds no filter");
    };
    if header.shards() == 1 {
        let newest = look(path)?.snapshots.last().map_or(0, |snapshot| snapshot.summary.bytes);
        if let Some(available) = memory::available().filter(|it| it.bytes < newest) {
            anyhow::bail!(
                "the filter in {at} takes {} of memory, and {} are available: a filter of its kind \
                 must be read completely. Give the process more memory",
                BinaryBytes(newest),
                BinaryBytes(available.bytes)
            );
        }
    }
    let used = match beside {
        None => String::new(),
        Some(Beside { holder: Some(holder) }) => format!(" (in use by {holder}, which continues)"),
        Some(Beside { holder: None }) => " (in use by a process, which continues)".to_owned(),
    };
    let reader = ShardReader::of_folder(folder)?;
    read(
        format!("the storage folder {at}{used}: {} and the log after it", reader.snapshot()),
        reader,
    )
}

fn read(what: String, mut reader: ShardReader) -> anyhow::Result<Operand> {
    let (header, mut config) = (reader.header().clone(), Config::default());
    let spec = header.spec();
    config.crawl.name.clone_from(&spec.crawl);
    config.made_for(&spec.filter);
    let tombstones = reader.tombstones().clone();
    let read = Box::new(move |shard| Ok(reader.read(shard)?));
    Ok(Operand {
        what,
        spec: spec.filter.clone(),
        rules: Some(header.rules().map(str::to_owned)),
        config,
        source: Source::Shards(Shards::new(header.shards(), tombstones, read)?),
    })
}

/// Returns the operand for a filter of RedisBloom, which records only its layers.
pub(super) fn of_redisbloom(
    what: String,
    filter: Filter,
    mut config: Config,
) -> anyhow::Result<Operand> {
    let parameters = Parameters::imported();
    config.filter.kind = parameters.kind();
    let spec = FilterSpec { fingerprint: config.fingerprint_spec(), parameters };
    let mut filter = Some(filter);
    let read = Box::new(move |_| {
        let filter = filter.take().ok_or_else(|| anyhow::anyhow!("the filter was already read"))?;
        Ok(Box::new(RedisBloomFilter::of(filter)) as Box<dyn FilterKind>)
    });
    let source = Source::Shards(Shards::new(spec.parameters.shards(), BTreeSet::new(), read)?);
    Ok(Operand { what, spec, rules: None, config, source })
}

/// Returns the maximum size of a filter in memory, in bytes.
pub(in crate::cli) fn memory_limit() -> u64 {
    memory::available().map_or(u64::MAX, |available| available.bytes)
}

/// Reads the filter of RedisBloom in a storage folder.
pub(in crate::cli) fn redisbloom(reader: &mut ShardReader) -> anyhow::Result<Filter> {
    let filter: Box<dyn Any> = reader.read(ShardId::WHOLE)?;
    let filter = filter.downcast::<RedisBloomFilter>().map_err(|_| {
        let kind = reader.header().spec().filter.kind().name();
        anyhow::anyhow!("the filter has the kind {kind}, not redisbloom")
    })?;
    Ok(filter.into_filter()?)
}
