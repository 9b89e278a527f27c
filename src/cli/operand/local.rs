//! Filters in folders and files.

use std::any::Any;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::cli::migrate;
use urlseen_analysis::Form;
use urlseen_core::filter::kinds::REDISBLOOM;
use urlseen_core::filter::redisbloom::Filter;
use urlseen_core::filter::redisbloom::dump::MAGIC;
use urlseen_core::filter::{Parameters, RedisBloomFilter, ShardId, memory};
use urlseen_core::storage::{AtRest, Beside, Header, ShardReader, StorageSpec, look};
use urlseen_engine::config::Config;

use super::super::settings::Settings;
use super::super::start::UsageError;
use super::{Operand, Source, check_memory, divide, layers};

pub(super) fn open(path: &Path, settings: &Settings) -> anyhow::Result<Operand> {
    if path.is_dir() {
        return folder(path);
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if name.starts_with("snapshot-") {
        return snapshot(path);
    }
    let mut begin = [0; MAGIC.len()];
    let mut file = File::open(path)
        .map_err(|error| anyhow::anyhow!("{} cannot be read: {error}", path.display()))?;
    if file.read_exact(&mut begin).is_ok() && begin == *MAGIC {
        return dump(path, settings);
    }
    Err(UsageError(format!(
        "{} is neither a storage folder, nor a snapshot in one, nor a dump of RedisBloom",
        path.display()
    ))
    .into())
}

fn folder(path: &Path) -> anyhow::Result<Operand> {
    let (folder, beside) = AtRest::open_beside(path)?;
    let Some(header) = folder.header().cloned() else {
        anyhow::bail!("the storage folder {} is new: it holds no filter", path.display());
    };
    let at = path.display();
    let used = match beside {
        None => String::new(),
        Some(Beside { holder: Some(holder) }) => format!(" (in use by {holder}; it goes on)"),
        Some(Beside { holder: None }) => " (in use by a process; it goes on)".to_owned(),
    };
    let newest = look(path)?.snapshots.last().map_or(0, |snapshot| snapshot.bytes);
    let mut reader = ShardReader::of_folder(folder)?;
    if header.native().is_some() {
        let what =
            format!("the storage folder {at}{used}: {} and the log after it", reader.snapshot());
        return Ok(native(what, &header, reader));
    }
    check_memory(newest, &format!("the filter in {at}"))?;
    let filter = redisbloom(&mut reader)?;
    let tombstones = reader.tombstones().iter().map(|&(_, id)| id).collect();
    let (mut form, mut config) = (Form::default(), Config::default());
    recorded(&mut form, &mut config, &header);
    layers(&mut form, &filter);
    Ok(Operand {
        what: format!("the storage folder {at}{used}"),
        form,
        made: Some(header.spec().filter.parameters.clone()),
        config,
        source: Source::Whole(Box::new(filter), tombstones),
    })
}

/// The filter of RedisBloom that a folder has.
pub(in crate::cli) fn redisbloom(reader: &mut ShardReader) -> anyhow::Result<Filter> {
    let filter: Box<dyn Any> = reader.read(ShardId::WHOLE)?;
    let filter = filter.downcast::<RedisBloomFilter>().map_err(|_| {
        let kind = reader.header().spec().filter.kind().name();
        anyhow::anyhow!("the filter has the kind {kind}, and is none of RedisBloom")
    })?;
    Ok(filter.into_filter()?)
}

fn snapshot(path: &Path) -> anyhow::Result<Operand> {
    let reader = ShardReader::of_snapshot(path)?;
    let header = reader.header().clone();
    Ok(native(format!("the snapshot {}", path.display()), &header, reader))
}

fn native(what: String, header: &Header, reader: ShardReader) -> Operand {
    let (mut form, mut config) = (Form::default(), Config::default());
    recorded(&mut form, &mut config, header);
    if let Some(native) = header.native() {
        divide(&mut form, native.geometry());
    }
    let [positions, shards, _] = header.rules();
    form.set("the rule of positions", positions);
    form.set("the rule of shards", shards);
    let made = Some(header.spec().filter.parameters.clone());
    Operand { what, form, made, config, source: Source::Shards(Box::new(reader), None) }
}

/// Takes over what a folder was made for. What a filter of RedisBloom was reserved for moves no
/// bit of it: its layers say what does.
fn recorded(form: &mut Form, config: &mut Config, header: &Header) {
    let StorageSpec { crawl, filter } = header.spec();
    config.crawl.name.clone_from(crawl);
    config.made_for(filter);
    form.set("the version of fingerprint.algorithm", header.rules()[2]);
    let is_native = header.native().is_some();
    for (name, value) in filter.fields() {
        if is_native || !name.starts_with("filter.") {
            form.set(name, value);
        }
    }
}

fn dump(path: &Path, settings: &Settings) -> anyhow::Result<Operand> {
    let limit = memory::available().map_or(u64::MAX, |available| available.bytes);
    let filter = migrate::read(path, limit, &mut |_, _| ())?;
    let mut form = Form::default();
    layers(&mut form, &filter);
    let mut config = settings.load()?;
    config.filter.kind = REDISBLOOM;
    Ok(Operand {
        what: format!("the dump {}", path.display()),
        form,
        made: Some(Parameters::imported()),
        config,
        source: Source::Whole(Box::new(filter), Vec::new()),
    })
}
