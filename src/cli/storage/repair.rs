//! Commands that change a crawl's filter and its state in Redis while the crawl does not run. They
//! also convert a native filter: a filter that grows, over the frozen native filter.

use urlseen_filter::{KeyHash, OverFrozen};

use crate::cli::moving::{beside, recovered, renamed};
use crate::cli::prelude::*;

/// Crawl that does not run, for commands that change its filter.
pub(super) struct Repair {
    config: Config,
    /// Storage folder, which this process has locked; `None` if the filter is in Redis.
    folder: Option<Folder>,
}

/// Ends a damaged log in a folder that no crawl uses.
pub(super) fn end_damaged_log(dir: &Path, yes: bool) -> anyhow::Result<Outcome> {
    let mut folder = Folder::open(dir)?;
    let dir = dir.display();
    if folder.damage()?.is_none() {
        done(format_args!("the log in {dir} is not damaged"))
    } else if without_damage(&mut folder, yes)? {
        done(format_args!("the log in {dir} ends before the damage now"))
    } else {
        Ok(Outcome::Done)
    }
}

/// Ends the log of a folder before its damage, if it is damaged, and the user confirms or `yes` is
/// set. Returns false if the user says no.
fn without_damage(folder: &mut Folder, yes: bool) -> anyhow::Result<bool> {
    // If no state of the folder can be loaded, the caller reports this, too.
    let Ok(Some((damage, lost))) = folder.damage() else { return Ok(true) };
    let question = format!(
        "The log in {} is damaged ({damage}). Give up {lost}? Their URLs are then emitted again.",
        folder.dir().display()
    );
    if !confirmed(yes, &question, "nothing is changed")? {
        return Ok(false);
    }
    folder.cut_at_damage()?;
    let kept = "the damaged files stay in the folder, with damaged- before their names";
    writeln!(stderr(), "urlseen: {damage}: gave up {lost}; {kept}")?;
    Ok(true)
}

impl Repair {
    /// Locks the storage folder if the filter is in one.
    pub(super) fn new(config: Config) -> anyhow::Result<Self> {
        let folder = folder_of(&config).map(Folder::open).transpose()?;
        if folder.is_none() {
            config.redis_filter()?;
        }
        Ok(Self { config, folder })
    }

    /// Makes the crawl continue with the filter as it is. Neither adds nor removes fingerprints,
    /// unless the log is damaged, and the user confirms or `yes` is set.
    pub(super) fn adopt(mut self, yes: bool) -> anyhow::Result<Outcome> {
        if let Some(folder) = &mut self.folder
            && !without_damage(folder, yes)?
        {
            return Ok(Outcome::Done);
        }
        let (mut upkeep, name) = (self.lease()?, self.name());
        let theirs = upkeep.crawl_state.head;
        let Self { config, folder } = self;
        let (filter, head, has) = if let Some(folder) = folder {
            let (keeping, items) = (start::keeping(&config)?, start::items(&config));
            // One thread is enough, because this command tests no items.
            let mut store = start::kept(folder, keeping, items, Threads::start(1)?)?;
            let head = store.adopt(theirs)?;
            let keys = HumanCount(store.engine.handle.gauge.fill().counted);
            let filter = store.filter().expect("the folder was begun");
            (filter, head, format!(" has {keys} fingerprints and"))
        } else {
            let opened = runtime()?.block_on(config.redis_filter()?.open(&mut upkeep.link))?;
            (opened.definition.id, theirs.unwrap_or(Head::START), String::new())
        };
        runtime()?.block_on(upkeep.tie(filter, head))?;
        done(format_args!("{name}{has} continues from {head}: start urlseen run"))
    }

    /// Empties the filter, if the user confirms or `yes` is set.
    pub(super) fn reset(mut self, yes: bool) -> anyhow::Result<Outcome> {
        let (name, shared) = (self.name(), self.shared());
        let question = format!("Empty {name}{shared}? All seen items are emitted again.");
        if !confirmed(yes, &question, "nothing is changed")? {
            return Ok(Outcome::Done);
        }
        let mut upkeep = self.lease()?;
        let head = upkeep.crawl_state.head.unwrap_or(Head::START);
        let filter = match self.folder {
            Some(mut folder) => {
                let (spec, id) = (start::keeping(&self.config)?.spec, RandomId::random());
                folder.erase()?;
                folder.begin(&spec, id, head)?;
                id
            }
            None => runtime()?.block_on(async {
                let wanted = self.config.redis_filter()?;
                wanted.delete(&mut upkeep.link).await?;
                anyhow::Ok(wanted.open(&mut upkeep.link).await?.definition.id)
            })?,
        };
        runtime()?.block_on(upkeep.tie(filter, head))?;
        done(format_args!("{name} is empty and continues from {head}"))
    }

    /// Deletes the filter, in the storage folder or in Redis, and the state that Redis records for
    /// the crawl. Does this only if the user confirms or `yes` is set.
    pub(super) fn drop(mut self, yes: bool) -> anyhow::Result<Outcome> {
        let (name, shared) = (self.name(), self.shared());
        let question = format!(
            "Delete {name}{shared}, and the state of the crawl {:?} in Redis?",
            self.config.crawl_name()
        );
        if !confirmed(yes, &question, "nothing is changed")? {
            return Ok(Outcome::Done);
        }
        let mut upkeep = self.lease()?;
        let given = runtime()?.block_on(async {
            if self.folder.is_none() {
                self.config.redis_filter()?.delete(&mut upkeep.link).await?;
            }
            upkeep.drop_crawl().await?;
            anyhow::Ok(upkeep.give_back(usize::MAX).await?)
        })?;
        if let Some(mut folder) = self.folder {
            folder.erase()?;
        }
        let (back, source) = (given.back, self.config.source.key);
        done(format_args!(
            "{name} and the state of the crawl in Redis are deleted, {back} items are back in \
             {source}"
        ))
    }

    /// Names the filter, for people.
    fn name(&self) -> String {
        let config = &self.config;
        match &self.folder {
            Some(folder) => format!("the filter in {}", folder.dir().display()),
            None => {
                format!("the filter {} in {}", config.filter.key, config.redis.url)
            }
        }
    }

    /// Returns words that warn of other crawls with the same filter, if there can be such crawls.
    fn shared(&self) -> &'static str {
        if self.folder.is_some() { "" } else { ", for all crawls that share it" }
    }

    /// Takes the lease. Fails if a running process holds it.
    fn lease(&mut self) -> anyhow::Result<Leased> {
        runtime()?.block_on(start::lease(&self.config, self.folder.as_mut()))
    }
}

/// Lets the filter in the configured storage folder go on with the configured rules by which URLs
/// are the same. A native filter is converted, too, if the configuration has the kind two-choice.
pub(super) fn convert_rules(config: &Config) -> anyhow::Result<Outcome> {
    refuse_if!(
        config.filter.place != FilterPlace::Local,
        "only a filter in a storage folder can go on with other rules: with a filter in Redis, use \
         urlseen storage reset"
    );
    let (mut folder, found) = open(config)?;
    let (at, wanted) = (config.storage.dir.display(), config.fingerprint_spec());
    let with_rules = FingerprintSpec {
        drop_tracking: wanted.drop_tracking,
        same: wanted.same.clone(),
        ..found.fingerprint
    };
    if with_rules != wanted {
        let FingerprintSpec { algorithm, canonical, keep_fragments, .. } = found.fingerprint;
        return Err(usage(format!(
            "the filter in {at} was made for fingerprint.algorithm = \"{algorithm}\", \
             fingerprint.canonical = \"{canonical}\" and fingerprint.keep_fragments = \
             {keep_fragments}, which are no rules and cannot change: set them back"
        )));
    }
    if found.kind() == Kind::NATIVE && config.filter.kind == Kind::TWO_CHOICE {
        drop(folder);
        return over_frozen(config, Some(found.fingerprint));
    }
    if found.fingerprint == wanted {
        return done(format_args!("{at} already has these rules"));
    }
    folder.compute_by(wanted)?;
    done(format_args!(
        "{at} has the rules of the configuration now. URLs that the rules change pass once more, \
         and all others stay seen"
    ))
}

/// Puts a filter of the configured kind over the native filter in the storage folder. `recorded`
/// is the spec of the fingerprints in the folder, if the configuration may have another one.
pub(super) fn over_frozen(
    config: &Config,
    recorded: Option<FingerprintSpec>,
) -> anyhow::Result<Outcome> {
    refuse_if!(
        config.filter.place != FilterPlace::Local || config.filter.kind != Kind::TWO_CHOICE,
        "only a filter in a storage folder can be converted, and only into the kind two-choice: \
         set filter.place = \"local\" and filter.kind = \"two-choice\""
    );
    let (folder, frozen) = open(config)?;
    let (dir, kind) = (&config.storage.dir, frozen.kind());
    let (at, earlier) = (dir.display(), beside(dir, ".native"));
    if kind == Kind::TWO_CHOICE {
        return done(format_args!("{at} already holds a filter of the kind two-choice"));
    }
    refuse_if!(
        kind != Kind::NATIVE,
        "the filter in {at} has the kind {kind}, and only a native filter can be converted"
    );
    refuse_if!(
        earlier.exists(),
        "{} already exists, and the native filter would stay there: rename or remove it",
        earlier.display()
    );
    let mut keeping = start::keeping(config)?;
    let over = keeping.spec.filter.parameters.over(&frozen.parameters);
    let spec = StorageSpec {
        filter: FilterSpec {
            parameters: over.expect("native"),
            fingerprint: keeping.spec.filter.fingerprint.clone(),
        },
        ..keeping.spec.clone()
    };
    keeping.spec.filter.parameters = frozen.parameters;
    if let Some(recorded) = recorded {
        keeping.spec.filter.fingerprint = recorded;
    }
    let (upkeep, mut store, recovered) = recovered(config, folder, keeping)?;
    let (id, head) = (recovered.filter, recovered.head);
    let write = |rebase: &mut Rebase<'_>| write(&store, rebase, &spec);
    let (new, ()) = NewFolder::write(dir, ".converting", &spec, id, head, write)?;
    let keys = store.engine.handle.gauge.fill().counted;
    store.rest(head)?;
    drop(store);
    renamed(dir, &earlier)?;
    new.finish()?;
    runtime()?.block_on(upkeep.tie(id, head))?;
    let (keys, kept) = (HumanCount(keys), earlier.display());
    done(format_args!(
        "{at} holds a filter of the kind two-choice now, over a frozen native filter with {keys} \
         fingerprints. The earlier folder is {kept}, and is no longer needed"
    ))
}

/// Writes the filter with this spec: each shard is the recovered one, frozen, below an empty one.
fn write(store: &Local, rebase: &mut Rebase<'_>, spec: &StorageSpec) -> anyhow::Result<()> {
    let (handle, hasher) = (store.engine.handle.clone(), spec.filter.parameters.hasher());
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
