//! Conversion of a native filter in a storage folder: a filter that grows, over the frozen native
//! filter.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
use indicatif::HumanCount;
use urlseen_core::filter::choice::FilterPlace;
use urlseen_core::filter::kinds::NATIVE;
use urlseen_core::filter::native::KeyHash;
use urlseen_core::filter::{FilterSpec, Kind, OverFrozen, SHARDS, ShardId};
use urlseen_core::fingerprint::FingerprintSpec;
use urlseen_core::storage::{Folder, LiveFilter as _, StorageSpec};
use urlseen_engine::config::Config;
use urlseen_engine::engine::store::{Local, Recovery};
use urlseen_engine::engine::{EngineError, Threads};

use super::super::bar::Bar;
use super::super::context::runtime;
use super::super::moving::NewFolder;
use super::super::start::{self, usage};
use super::Outcome;
use crate::admin::printable::stdout;

/// Lets the filter in the configured storage folder go on with the configured rules by which URLs
/// are the same. A native filter is converted, too, if the configuration has the kind two-choice.
pub(super) fn convert_rules(config: &Config) -> anyhow::Result<Outcome> {
    if config.filter.place != FilterPlace::Local {
        return Err(usage(
            "only a filter in a storage folder can go on with other rules: with a filter in Redis, \
             use urlseen storage reset",
        ));
    }
    let (mut folder, found) = open(config)?;
    let (at, wanted) = (config.storage.dir.display(), config.fingerprint_spec());
    let with_rules = FingerprintSpec {
        drop_tracking: wanted.drop_tracking,
        same: wanted.same,
        ..found.fingerprint
    };
    if with_rules != wanted {
        let FingerprintSpec { algorithm, keep_fragments, .. } = found.fingerprint;
        return Err(usage(format!(
            "the filter in {at} was made for fingerprint.algorithm = \"{algorithm}\" and \
             fingerprint.keep_fragments = {keep_fragments}, which are no rules and cannot change: \
             set them back"
        )));
    }
    if found.kind() == NATIVE && config.filter.kind == Kind::TWO_CHOICE {
        drop(folder);
        return over_frozen(config, Some(found.fingerprint));
    }
    if found.fingerprint == wanted {
        writeln!(stdout(), "{at} already has these rules")?;
        return Ok(Outcome::Done);
    }
    folder.compute_by(wanted)?;
    writeln!(
        stdout(),
        "{at} has the rules of the configuration now. URLs that the rules change pass once more, \
         and all others stay seen"
    )?;
    Ok(Outcome::Done)
}

/// Converts the filter in the configured storage folder into the configured kind.
pub(super) fn convert(config: &Config) -> anyhow::Result<Outcome> {
    over_frozen(config, None)
}

/// Puts a filter of the configured kind over the native filter in the storage folder. `recorded`
/// is the spec of the fingerprints in the folder, if the configuration may have another one.
fn over_frozen(config: &Config, recorded: Option<FingerprintSpec>) -> anyhow::Result<Outcome> {
    if config.filter.place != FilterPlace::Local || config.filter.kind != Kind::TWO_CHOICE {
        return Err(usage(
            "only a filter in a storage folder can be converted, and only into the kind \
             two-choice: set filter.place = \"local\" and filter.kind = \"two-choice\"",
        ));
    }
    let (mut folder, frozen) = open(config)?;
    let (dir, kind) = (&config.storage.dir, frozen.kind());
    let (at, earlier) = (dir.display(), beside(dir, ".native"));
    if kind == Kind::TWO_CHOICE {
        writeln!(stdout(), "{at} already holds a filter of the kind two-choice")?;
        return Ok(Outcome::Done);
    }
    if kind != NATIVE {
        return Err(usage(format!(
            "the filter in {at} has the kind {kind}, and only a native filter can be converted"
        )));
    }
    if earlier.exists() {
        return Err(usage(format!(
            "{} already exists, and the native filter would stay there: rename or remove it",
            earlier.display()
        )));
    }
    let mut keeping = start::keeping(config)?;
    let over = keeping.spec.filter.parameters.over(&frozen.parameters);
    let spec = StorageSpec {
        filter: FilterSpec {
            parameters: over.expect("native"),
            fingerprint: keeping.spec.filter.fingerprint,
        },
        ..keeping.spec.clone()
    };
    keeping.spec.filter.parameters = frozen.parameters;
    keeping.spec.filter.fingerprint = recorded.unwrap_or(keeping.spec.filter.fingerprint);
    let upkeep = runtime()?.block_on(start::lease(config, Some(&mut folder)))?;
    let threads = Threads::start(config.filter.threads)?;
    let mut store = start::kept(folder, keeping, start::items(config), threads)?;
    let standing = upkeep.standing();
    let recovered = store.recover_to(standing.head, standing.filter)?;
    let (new, folder) = NewFolder::begin(dir, ".converting")?;
    write(&store, folder, &spec, &recovered)?;
    let keys = store.engine.gauges().fill().counted;
    store.rest(recovered.head)?;
    drop(store);
    renamed(dir, &earlier)?;
    new.finish()?;
    runtime()?.block_on(upkeep.tie(recovered.filter, recovered.head))?;
    let (keys, kept) = (HumanCount(keys), earlier.display());
    writeln!(
        stdout(),
        "{at} holds a filter of the kind two-choice now, over a frozen native filter with {keys} \
         fingerprints. The earlier folder is {kept}, and is no longer needed"
    )?;
    Ok(Outcome::Done)
}

/// Writes the filter with this spec to a new folder: each shard is the recovered one, frozen, below
/// an empty one.
fn write(
    store: &Local,
    mut folder: Folder,
    spec: &StorageSpec,
    recovered: &Recovery,
) -> anyhow::Result<()> {
    folder.begin(spec, recovered.filter.get(), recovered.head)?;
    let mut rebase = folder.rebase(recovered.head)?;
    let (handle, hasher) = (store.engine.handle(), spec.filter.parameters.hasher());
    let (mut memory, bar) = (Vec::new(), Bar::counting("shards"));
    for (done, shard) in (1..).zip(ShardId::all()) {
        let copied = handle.copy(shard, memory).ok_or(EngineError::Panicked)?;
        let blob = OverFrozen::over(copied.blob);
        rebase.write(shard, &*blob)?;
        memory = blob.into_buffer();
        // The new filter keeps fewer bits of a key.
        let forgotten = copied.tombstones.into_iter().map(|id| KeyHash::named(shard, id));
        let forgotten: Vec<u128> = forgotten.map(|it| hasher.narrow(it).id()).collect();
        rebase.sections.tombstones(shard, &forgotten);
        bar.show(done, SHARDS as u64);
    }
    rebase.finish()?;
    Ok(())
}

/// Opens the configured folder, and returns the spec of its filter. Completes a conversion that was
/// killed after the earlier folder was renamed.
fn open(config: &Config) -> anyhow::Result<(Folder, FilterSpec)> {
    let dir = &config.storage.dir;
    let [earlier, aside] = [".native", ".converting"].map(|ending| beside(dir, ending));
    if !dir.exists() && earlier.exists() && aside.exists() {
        renamed(&aside, dir)?;
    }
    let folder = Folder::open(dir)?;
    let filter = start::spec_of(folder.header(), dir)?.filter.clone();
    Ok((folder, filter))
}

fn beside(dir: &Path, ending: &str) -> PathBuf {
    let mut name = dir.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

fn renamed(from: &Path, to: &Path) -> anyhow::Result<()> {
    let failed = || format!("{} cannot be renamed to {}", from.display(), to.display());
    fs::rename(from, to).with_context(failed)
}
