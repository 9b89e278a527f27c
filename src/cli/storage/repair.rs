//! Commands that change a crawl's filter and its state in Redis while the crawl does not run.

use std::io::Write;
use std::path::Path;

use crate::admin::printable::{stderr, stdout};
use crate::crawl::upkeep::Upkeep;
use indicatif::HumanCount;
use urlseen_core::filter::id::RandomId;
use urlseen_core::storage::{Folder, Head};
use urlseen_engine::config::Config;
use urlseen_engine::engine::Threads;

use super::super::confirm::confirmed;
use super::super::context::runtime;
use super::super::settings::folder_of;
use super::super::{Outcome, start};

/// Crawl that does not run, for commands that change its filter.
pub(super) struct Repair {
    config: Config,
    /// Storage folder, which this process has locked; `None` if the filter is in Redis.
    folder: Option<Folder>,
}

/// Ends a damaged log in a folder that no crawl uses.
pub(super) fn end_damaged_log(dir: &Path, yes: bool) -> anyhow::Result<Outcome> {
    let mut folder = Folder::open(dir)?;
    if folder.damage()?.is_none() {
        writeln!(stdout(), "the log in {} is not damaged", dir.display())?;
    } else if without_damage(&mut folder, yes)? {
        writeln!(stdout(), "the log in {} ends before the damage now", dir.display())?;
    }
    Ok(Outcome::Done)
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
        let theirs = upkeep.standing().head;
        let Self { config, folder } = self;
        let (filter, head, has) = if let Some(folder) = folder {
            let (keeping, items) = (start::keeping(&config)?, start::items(&config));
            // One thread is enough, because this command tests no items.
            let mut store = start::kept(folder, keeping, items, Threads::start(1)?)?;
            let head = store.adopt(theirs)?;
            let keys = HumanCount(store.engine.gauges().fill().counted);
            let filter = store.filter().expect("the folder was begun");
            (filter, head, format!(" has {keys} fingerprints and"))
        } else {
            let opened = runtime()?.block_on(config.redis_filter()?.open(upkeep.link()))?;
            (opened.definition.id, theirs.unwrap_or(Head::START), String::new())
        };
        runtime()?.block_on(upkeep.tie(filter, head))?;
        writeln!(stdout(), "{name}{has} continues from {head}: start urlseen run")?;
        Ok(Outcome::Done)
    }

    /// Empties the filter, if the user confirms or `yes` is set.
    pub(super) fn reset(mut self, yes: bool) -> anyhow::Result<Outcome> {
        let (name, shared) = (self.name(), self.shared());
        let question = format!("Empty {name}{shared}? All seen items are emitted again.");
        if !confirmed(yes, &question, "nothing is changed")? {
            return Ok(Outcome::Done);
        }
        let mut upkeep = self.lease()?;
        let head = upkeep.standing().head.unwrap_or(Head::START);
        let filter = match self.folder {
            Some(mut folder) => {
                let (spec, id) = (start::keeping(&self.config)?.spec, RandomId::random());
                folder.erase()?;
                folder.begin(&spec, id.get(), head)?;
                id
            }
            None => runtime()?.block_on(async {
                let wanted = self.config.redis_filter()?;
                wanted.delete(upkeep.link()).await?;
                anyhow::Ok(wanted.open(upkeep.link()).await?.definition.id)
            })?,
        };
        runtime()?.block_on(upkeep.tie(filter, head))?;
        writeln!(stdout(), "{name} is empty and continues from {head}")?;
        Ok(Outcome::Done)
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
                self.config.redis_filter()?.delete(upkeep.link()).await?;
            }
            upkeep.drop_crawl().await?;
            anyhow::Ok(upkeep.give_back().await?)
        })?;
        if let Some(mut folder) = self.folder {
            folder.erase()?;
        }
        let (back, source) = (given.back, self.config.source.key);
        writeln!(
            stdout(),
            "{name} and the state of the crawl in Redis are deleted, {back} items are back in \
             {source}"
        )?;
        Ok(Outcome::Done)
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
    fn lease(&mut self) -> anyhow::Result<Upkeep> {
        runtime()?.block_on(start::lease(&self.config, self.folder.as_mut()))
    }
}
