//! Filters in storage folders and files.

use std::any::Any;
use std::path::Path;

use urlseen_core::filter::redisbloom::Filter;
use urlseen_core::filter::{Kind, RedisBloomFilter, ShardId, memory};
use urlseen_core::storage::{AtRest, Beside, ShardReader};
use urlseen_engine::config::Config;

use super::super::start::usage;
use super::{Operand, Shards, Source, layered};

pub(super) fn open(path: &Path) -> anyhow::Result<Operand> {
    if path.is_dir() {
        return folder(path);
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if name.starts_with("snapshot-") {
        let reader = ShardReader::of_snapshot(path)?;
        return read(format!("the snapshot {}", path.display()), reader);
    }
    Err(usage(format!("{} is neither a storage folder nor a snapshot in one", path.display())))
}

fn folder(path: &Path) -> anyhow::Result<Operand> {
    let (folder, beside) = AtRest::open_beside(path)?;
    let at = path.display();
    if folder.header().is_none() {
        anyhow::bail!("the storage folder {at} is new: it holds no filter");
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
    if spec.filter.kind() == Kind::REDISBLOOM {
        return Err(layered(&what, Kind::REDISBLOOM));
    }
    config.crawl.name.clone_from(&spec.crawl);
    config.made_for(&spec.filter);
    let tombstones = reader.tombstones().clone();
    let read = Box::new(move |shard| Ok(reader.read(shard)?));
    Ok(Operand {
        what,
        spec: spec.filter.clone(),
        rules: header.rules().map(str::to_owned),
        config,
        source: Source::Shards(Shards::new(tombstones, read)),
    })
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
