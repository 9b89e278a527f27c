//! Commands that copy a native filter from the storage folder to Redis (`export --to-redis`), or
//! from Redis to the storage folder (`import --from-redis`).

use urlseen_engine::engine::store::Recovery;
use urlseen_filter::Native;
use urlseen_filter::Saved;

use crate::cli::prelude::*;

/// Copies the filter of the configured storage folder to the configured `filter.key`.
pub(super) fn to_redis(config: &Config, as_json: bool) -> anyhow::Result<Outcome> {
    let (wanted, runtime) = (begin(config)?, runtime()?);
    let folder = Folder::open(&config.storage.dir)?;
    let dir = folder.dir().display().to_string();
    let filter = &start::spec_of(folder.header(), folder.dir())?.filter;
    let Some(seed) = filter.parameters.layout().map(|native| native.seed) else {
        return Err(usage(format!(
            "the filter in {dir} has the kind {}, and only a native filter can be moved to Redis",
            filter.kind()
        )));
    };
    let (mut upkeep, store, recovered) = recovered(config, folder, start::keeping(config)?)?;
    let bar = Bar::new("written");
    let (handle, all) = (store.engine.handle.clone(), config.filter_spec()?.parameters.bytes());
    runtime.block_on(async {
        let link = &mut upkeep.link;
        let new = wanted.begin_new(link, recovered.filter, seed).await?;
        let (mut done, mut memory) = (0, Vec::new());
        for shard in ShardId::all() {
            let copied = handle.copy(shard, memory).ok_or(EngineError::Panicked)?;
            memory = copied.blob.into_buffer();
            new.put(link, shard.number(), &memory).await?;
            done += all / SHARDS as u64;
            bar.show(done, all);
        }
        new.finish(link).await?;
        anyhow::Ok(upkeep.tie(recovered.filter, recovered.head).await?)
    })?;
    drop(bar);
    let keys = store.engine.handle.gauge.fill().counted;
    let place = format!("{} at {}", config.filter.key, config.redis.url);
    let words = format!(
        "{place} holds the filter of {dir} now. Set filter.place = \"redis\" to continue with it; \
         then the folder is no longer needed"
    );
    tell(as_json, keys, all, &words)
}

/// Takes the lease of a crawl, and recovers the filter in its folder to the state that Redis
/// records.
pub(super) fn recovered(
    config: &Config,
    mut folder: Folder,
    keeping: Keeping,
) -> anyhow::Result<(Leased, Local, Recovery)> {
    let upkeep = runtime()?.block_on(start::lease(config, Some(&mut folder)))?;
    let threads = Threads::start(config.filter.threads)?;
    let mut store = start::kept(folder, keeping, start::items(config), threads)?;
    let crawl_state = upkeep.crawl_state;
    let recovered = store.recover_to(crawl_state.head, crawl_state.filter)?;
    Ok((upkeep, store, recovered))
}

/// Copies the filter at the configured `filter.key` to the configured storage folder, which must be
/// new.
pub(super) fn from_redis(config: &Config, as_json: bool) -> anyhow::Result<Outcome> {
    let (wanted, runtime) = (begin(config)?, runtime()?);
    let dir = &config.storage.dir;
    refuse_if!(
        Folder::open(dir)?.header().is_some(),
        "the storage folder {} already holds a filter: set another storage.dir, or remove the \
         folder (a crawl with filter.place = \"redis\" does not use it)",
        dir.display()
    );
    let mut upkeep = runtime.block_on(start::lease(config, None))?;
    let opened = runtime.block_on(wanted.find(&mut upkeep.link))?;
    let crawl_state = upkeep.crawl_state;
    let head = crawl_state.head.unwrap_or(Head::START);
    if head != Head::START && crawl_state.filter != Some(opened.definition.id) {
        anyhow::bail!(
            "the crawl belongs to another filter than {}: to tie the crawl to this filter, use \
             urlseen storage adopt with filter.place = \"redis\"",
            config.filter.key
        );
    }
    let mut spec = start::keeping(config)?.spec;
    let parameters = &mut spec.filter.parameters;
    *parameters = parameters.reseeded(opened.seed);
    let (native, all) = (parameters.layout(), parameters.bytes());
    let (bar, id, mut keys, mut done) = (Bar::new("read"), opened.definition.id, 0, 0);
    let (new, ()) = NewFolder::write(dir, ".importing", &spec, id, head, |rebase| {
        for shard in ShardId::all() {
            let get = opening::get(&mut upkeep.link, &opened.filter, shard.number());
            let saved = saved(runtime.block_on(get)?, native);
            keys += saved.keys;
            done += saved.bytes.len() as u64;
            rebase.write(shard, &saved)?;
            bar.show(done, all);
        }
        Ok(())
    })?;
    drop(bar);
    new.finish()?;
    runtime.block_on(upkeep.tie(id, head))?;
    let words = format!(
        "{} holds the filter {} now. Set filter.place = \"local\" to continue with it. urlseen \
         storage drop with filter.place = \"redis\" deletes the filter in Redis",
        dir.display(),
        config.filter.key
    );
    tell(as_json, keys, all, &words)
}

/// Returns a shard with the bits of a Bloom filter, as a folder saves it.
pub(super) fn saved(bytes: Vec<u8>, native: Option<Native>) -> Saved {
    let ones = bytes.iter().map(|byte| u64::from(byte.count_ones())).sum();
    let keys = native.map_or(0, |native| native.geometry.keys_from_ones(ones));
    Saved::bits(keys, bytes)
}

fn begin(config: &Config) -> anyhow::Result<Wanted> {
    refuse_if!(
        config.filter.kind != Kind::NATIVE,
        "filter.kind is {:?}, and only a native filter can be moved",
        config.filter.kind.name()
    );
    Ok(config.redis_filter()?)
}

fn tell(as_json: bool, keys: u64, bytes: u64, words: &str) -> anyhow::Result<Outcome> {
    answer(as_json.then(|| json!({ "keys": keys, "bytes": bytes }).to_string()), |mut out| {
        writeln!(out, "{words} ({} fingerprints, {})", HumanCount(keys), BinaryBytes(bytes))
    })
}

/// New storage folder under a temporary name beside its final path.
pub(super) struct NewFolder {
    aside: PathBuf,
    place: PathBuf,
}

impl NewFolder {
    /// Writes the filter with this spec and id at a head to a new folder beside `place`: `write`
    /// writes its shards. The folder's name is the name of `place`, followed by `ending`. Replaces
    /// a folder that a killed command has left there.
    pub(super) fn write<T>(
        place: &Path,
        ending: &str,
        spec: &StorageSpec,
        filter: RandomId,
        at: Head,
        write: impl FnOnce(&mut Rebase<'_>) -> anyhow::Result<T>,
    ) -> anyhow::Result<(Self, T)> {
        let aside = beside(place, ending);
        // If another command still uses the folder, it holds the lock, and this line fails.
        drop(Folder::open(&aside)?);
        removed(fs::remove_dir_all(&aside))
            .with_context(|| format!("{} cannot be removed", aside.display()))?;
        let mut folder = Folder::open(&aside)?;
        folder.begin(spec, filter, at)?;
        let mut rebase = folder.rebase(at)?;
        let written = write(&mut rebase)?;
        rebase.finish()?;
        Ok((Self { aside, place: place.to_owned() }, written))
    }

    /// Renames the folder to its final path. Fails if a file, or a folder with other files than
    /// `lock`, is at that path.
    pub(super) fn finish(self) -> anyhow::Result<()> {
        let Self { aside, place } = self;
        // The caller may have looked at the folder there, which made this file.
        removed(fs::remove_file(place.join("lock")))
            .with_context(|| place.display().to_string())?;
        // A rename does not replace a file or a folder with files.
        renamed(&aside, &place)?;
        let above = place.parent().filter(|above| !above.as_os_str().is_empty());
        let above = above.unwrap_or(Path::new("."));
        let synced = File::open(above).and_then(|above| above.sync_all());
        synced.with_context(|| format!("{} cannot be synced", above.display()))
    }
}

/// Returns the path of a folder beside `dir`: the same name, followed by `ending`.
pub(super) fn beside(dir: &Path, ending: &str) -> PathBuf {
    let mut name = dir.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

/// Renames a folder. The error names both paths.
pub(super) fn renamed(from: &Path, to: &Path) -> anyhow::Result<()> {
    let failed = || format!("{} cannot be renamed to {}", from.display(), to.display());
    fs::rename(from, to).with_context(failed)
}

/// Turns the error of a removal into success if the file or folder did not exist.
pub(super) fn removed(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}
