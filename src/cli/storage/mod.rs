//! `urlseen storage`: what a storage folder holds, and the ways on where it and Redis do not go
//! together.

mod in_redis;

use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use crate::admin::printable::{json_text, stdout};
use crate::crawl::protocol;
use crate::crawl::upkeep::Upkeep;
use indicatif::{BinaryBytes, HumanCount};
use serde_json::{Value, json};
use urlseen_core::filter::FilterSpec;
use urlseen_core::filter::id::RandomId;
use urlseen_core::storage::{
    Folder, Head, Look, Position, SegmentLook, SnapshotLook, Standing, StorageSpec, look,
};
use urlseen_engine::config::FilterPlace;

use super::confirm::confirm;
use super::context::Context;
use super::settings::{Folder as FolderOf, Place, Settings};
use super::{Outcome, shape, start};
pub(super) use in_redis::CrawlInRedis;

/// Look at a storage folder, and go on where it and Redis do not go together.
///
/// A crawl has two memories: Redis knows the last batch that was committed, the storage folder
/// which fingerprints were in it and in all before. `urlseen run` brings the filter to where Redis
/// stands by itself; where it cannot, it says why and names one of these commands.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  urlseen storage show\n  urlseen storage adopt")]
pub(super) struct StorageArgs {
    #[command(subcommand)]
    command: StorageCommand,
}

#[derive(Debug, clap::Subcommand)]
enum StorageCommand {
    Show(Show),
    Adopt(Adopt),
    Reset(Reset),
    Drop(DropArgs),
}

/// Print what the folder holds: what it was made for, its snapshots and its log.
///
/// Changes nothing, and asks no Redis. A daemon may be running. The exit status is 1 where
/// something in the folder cannot be read.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  urlseen storage show\n  urlseen storage show --storage backup"
)]
struct Show {
    #[command(flatten)]
    folder: FolderOf,
    /// Print the contents as JSON
    #[arg(long)]
    json: bool,
}

/// Keep the filter as it is, as the one that belongs to where Redis stands.
///
/// What the folder lacks of what Redis knows is emitted again if it is found again. What it has
/// beyond that counts as seen, though Redis may have lost it. A new folder becomes the memory of
/// an empty filter; where Redis knows nothing of the crawl, it is told where the folder stands.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  urlseen storage adopt\n  urlseen storage adopt --config news.toml"
)]
struct Adopt {
    #[command(flatten)]
    settings: Settings,
}

/// Begin with an empty filter at where Redis stands: everything counts as unseen.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  urlseen storage reset\n  urlseen storage reset --yes")]
struct Reset {
    #[command(flatten)]
    settings: Settings,
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
}

/// Give the crawl up: empty the folder, and forget in Redis where the crawl stood.
///
/// The lists stay; items that were claimed and not committed go back to the source.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  urlseen storage drop\n  urlseen storage drop --yes")]
struct DropArgs {
    #[command(flatten)]
    settings: Settings,
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
}

pub(super) fn run(args: &StorageArgs) -> anyhow::Result<Outcome> {
    match &args.command {
        StorageCommand::Show(show) => show.run(),
        StorageCommand::Adopt(adopt) => adopt.run(),
        StorageCommand::Reset(reset) => reset.run(),
        StorageCommand::Drop(args) => args.run(),
    }
}

impl Show {
    fn run(&self) -> anyhow::Result<Outcome> {
        match self.folder.place()? {
            Place::Folder(folder) => show(&folder, self.json),
            Place::Redis(config) => CrawlInRedis::new(Context::new(*config)?)?.show(self.json),
        }
    }
}

/// Prints what a folder holds.
pub(super) fn show(dir: &Path, as_json: bool) -> anyhow::Result<Outcome> {
    anyhow::ensure!(dir.is_dir(), "there is no storage folder {}", dir.display());
    let look = look(dir)?;
    let mut out = stdout();
    if as_json {
        writeln!(out, "{}", json_text(&format!("{:#}", to_json(&look))))?;
    } else {
        print(&look, dir, &mut out)?;
    }
    // While a daemon writes, the last record of the log can be incomplete.
    let is_whole = look.damages.is_empty() || look.is_held;
    Ok(if is_whole { Outcome::Done } else { Outcome::BadInput })
}

impl Adopt {
    fn run(&self) -> anyhow::Result<Outcome> {
        let context = Context::load(&self.settings)?;
        let config = &context.config;
        if config.filter.place == FilterPlace::Redis {
            return CrawlInRedis::new(context)?.adopt();
        }
        let mut folder = Folder::open(&config.storage.dir)?;
        let redis = Redis::take(&context, &mut folder)?;
        let theirs = redis.standing().head;
        let (keeping, items) = (start::keeping(config)?, start::items(config));
        // One thread is enough: nothing is judged.
        let mut store = start::kept(folder, keeping, items, 1)?;
        let head = store.adopt(theirs)?;
        redis.tie(store.filter(), head)?;
        let keys: u64 = store.engine.gauges().keys().iter().sum();
        writeln!(
            stdout(),
            "{} holds {} fingerprints and belongs to {head} now; urlseen run goes on from there",
            config.storage.dir.display(),
            HumanCount(keys),
        )?;
        Ok(Outcome::Done)
    }
}

impl Reset {
    fn run(&self) -> anyhow::Result<Outcome> {
        let context = Context::load(&self.settings)?;
        let config = &context.config;
        if config.filter.place == FilterPlace::Redis {
            return CrawlInRedis::new(context)?.reset(self.yes);
        }
        let mut folder = Folder::open(&config.storage.dir)?;
        let dir = config.storage.dir.display();
        let question = format!("Empty the filter in {dir}? All that was seen is emitted again.");
        if !self.yes && !confirm(&question)? {
            writeln!(stdout(), "nothing is changed")?;
            return Ok(Outcome::Done);
        }
        let redis = Redis::take(&context, &mut folder)?;
        let head = redis.standing().head.unwrap_or(Head::START);
        let spec = start::keeping(config)?.spec;
        folder.erase()?;
        let filter = RandomId::random();
        folder.begin(&spec, filter.get(), head)?;
        redis.tie(Some(filter), head)?;
        writeln!(stdout(), "{dir} holds an empty filter and belongs to {head} now")?;
        Ok(Outcome::Done)
    }
}

impl DropArgs {
    fn run(&self) -> anyhow::Result<Outcome> {
        let context = Context::load(&self.settings)?;
        let config = &context.config;
        if config.filter.place == FilterPlace::Redis {
            return CrawlInRedis::new(context)?.drop(self.yes);
        }
        let mut folder = Folder::open(&config.storage.dir)?;
        let dir = config.storage.dir.display();
        let question = format!(
            "Delete the filter in {dir}, and what Redis knows of where the crawl {:?} stands?",
            config.crawl.name
        );
        if !self.yes && !confirm(&question)? {
            writeln!(stdout(), "nothing is changed")?;
            return Ok(Outcome::Done);
        }
        let redis = Redis::take(&context, &mut folder)?;
        let back = redis.drop_crawl()?;
        folder.erase()?;
        writeln!(
            stdout(),
            "{dir} is empty, Redis knows nothing of the crawl, {back} items are back in {}",
            config.source.key
        )?;
        Ok(Outcome::Done)
    }
}

/// The crawl's place in Redis, from code that waits.
struct Redis<'a> {
    context: &'a Context,
    upkeep: Upkeep,
}

impl<'a> Redis<'a> {
    /// Takes the lease. The folder's lock proves that those who recorded theirs there are dead.
    fn take(context: &'a Context, folder: &mut Folder) -> anyhow::Result<Self> {
        let upkeep = context.runtime.block_on(start::lease(&context.config, folder))?;
        Ok(Self { context, upkeep })
    }

    fn standing(&self) -> protocol::Standing {
        self.upkeep.standing()
    }

    /// Ties the crawl to a filter, and lets go of it.
    fn tie(mut self, filter: Option<RandomId>, head: Head) -> anyhow::Result<()> {
        let filter = filter.expect("the folder was begun");
        self.context.runtime.block_on(async {
            self.upkeep.tie(filter, head).await?;
            self.upkeep.end().await
        })?;
        Ok(())
    }

    /// Forgets the crawl, and gives claimed items back; answers how many.
    fn drop_crawl(mut self) -> anyhow::Result<u64> {
        let given = self.context.runtime.block_on(async {
            self.upkeep.drop_crawl().await?;
            self.upkeep.give_back().await
        })?;
        Ok(given.back)
    }
}

fn print(look: &Look, dir: &Path, out: &mut impl Write) -> io::Result<()> {
    let Look { header, is_held, holder, snapshots, segments, archive, last, bytes, damages } = look;
    writeln!(out, "folder      {}, {}", dir.display(), BinaryBytes(*bytes))?;
    match (is_held, holder) {
        (true, Some(holder)) => writeln!(out, "in use by   {holder}")?,
        (true, None) => writeln!(out, "in use by   an unknown process")?,
        (false, _) => writeln!(out, "in use by   no process")?,
    }
    let Some(header) = header else {
        return writeln!(out, "filter      none: the folder is new");
    };
    let StorageSpec { crawl, filter } = header.spec();
    let FilterSpec { parameters, algorithm, keep_fragments } = filter;
    writeln!(out, "crawl       {crawl}")?;
    writeln!(
        out,
        "filter      {}, {}",
        RandomId::new(header.filter()),
        shape::described(parameters)
    )?;
    writeln!(
        out,
        "computed    as by {algorithm}, fragments {}",
        if *keep_fragments { "kept" } else { "dropped" }
    )?;
    for SnapshotLook { name, bytes, last, finished, keys, .. } in snapshots {
        let (size, keys) = (BinaryBytes(*bytes), HumanCount(*keys));
        let time = time(*finished);
        writeln!(out, "snapshot    {name}: {size}, fingerprints: {keys}, {last}, {time}")?;
    }
    for SegmentLook { name, bytes, records, fingerprints, last, .. } in segments {
        let (size, keys, records) =
            (BinaryBytes(*bytes), HumanCount(*fingerprints), HumanCount(*records));
        writeln!(
            out,
            "log         {name}: {size}, fingerprints: {keys}, records: {records}, {last}"
        )?;
    }
    print_archive(archive, out)?;
    match last {
        Some(last) => writeln!(out, "ends at     {last}")?,
        None => writeln!(out, "ends at     nothing that can be read")?,
    }
    damages.iter().try_for_each(|damage| writeln!(out, "damaged     {damage}"))
}

/// Prints the extent of the archive, where there is one.
fn print_archive(archive: &Standing, out: &mut impl Write) -> io::Result<()> {
    let Standing { is_on, parts, bytes, fingerprints, lacks_before } = archive;
    if !is_on && *parts == 0 {
        return Ok(());
    }
    let (size, keys) = (BinaryBytes(*bytes), HumanCount(*fingerprints));
    let extent = match lacks_before {
        None => "with the log it is complete".to_owned(),
        Some(from) => format!("it lacks what came before {from}"),
    };
    let ended = if *is_on { "" } else { "; storage.archive is false since" };
    writeln!(out, "archive     {parts} files: {size}, fingerprints: {keys}; {extent}{ended}")
}

fn to_json(look: &Look) -> Value {
    let Look { header, is_held, holder, snapshots, segments, archive, last, bytes, damages } = look;
    let position = |position: &Position| {
        let Position { number, head: Head { seq, commit_id } } = position;
        json!({ "number": number, "seq": seq, "commit_id": commit_id.to_string() })
    };
    let header = header.as_ref().map(|header| {
        let StorageSpec { crawl, filter } = header.spec();
        let parameters = &filter.parameters;
        let mut shown = json!({
            "crawl": crawl,
            "filter": RandomId::new(header.filter()).to_string(),
            "kind": filter.kind().name(),
            "capacity": parameters.capacity(),
            "error_rate": parameters.field::<f64>("filter.error_rate"),
            "bytes": parameters.bytes(),
            "imported": parameters.is_imported(),
            "algorithm": filter.algorithm.name(),
            "keep_fragments": filter.keep_fragments,
        });
        for (name, number) in parameters.figures() {
            shown[name] = json!(number);
        }
        shown
    });
    let snapshot = |it: &SnapshotLook| {
        json!({
            "name": it.name, "bytes": it.bytes, "keys": it.keys, "first": position(&it.first),
            "last": position(&it.last), "begun": time(it.begun), "finished": time(it.finished),
        })
    };
    let segment = |it: &SegmentLook| {
        json!({
            "name": it.name, "bytes": it.bytes, "records": it.records,
            "fingerprints": it.fingerprints, "follows": position(&it.follows),
            "last": position(&it.last),
        })
    };
    json!({
        "header": header,
        "bytes": bytes,
        "in_use": is_held,
        "holder": holder,
        "snapshots": snapshots.iter().map(snapshot).collect::<Vec<_>>(),
        "log": segments.iter().map(segment).collect::<Vec<_>>(),
        "archive": {
            "is_on": archive.is_on, "parts": archive.parts, "bytes": archive.bytes,
            "fingerprints": archive.fingerprints,
            "lacks_before": archive.lacks_before.as_ref().map(position),
        },
        "last": last.as_ref().map(position),
        "damages": damages.iter().map(ToString::to_string).collect::<Vec<_>>(),
    })
}

/// Formats a time by RFC 3339.
fn time(milliseconds: u64) -> String {
    let time = UNIX_EPOCH + Duration::from_millis(milliseconds);
    humantime::format_rfc3339_seconds(time).to_string()
}
