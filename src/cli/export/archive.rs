//! `urlseen export --archive`: the fingerprints that a filter let through.

use std::io::{self, BufWriter, Write};
use std::ops::ControlFlow;
use std::path::Path;

use crate::admin::printable::{say, stdout};
use crate::cli::migrate::set::{Filling, SetForm, write};
use crate::crawl::protocol::Protocol;
use anyhow::Context as _;
use indicatif::HumanCount;
use serde_json::json;
use urlseen_core::fingerprint::Fingerprint;
use urlseen_core::storage::{Archive, AtRest, Target};
use urlseen_engine::config::SourceKind;

use super::super::Outcome;
use super::super::bar::Bar;
use super::super::context::Context;
use super::super::settings::Place;
use super::super::start::UsageError;
use super::{ExportArgs, form};

/// Fingerprints that are written between two updates of the bar.
const TELL: u64 = 100_000;

pub(super) fn run(args: &ExportArgs) -> anyhow::Result<Outcome> {
    let (config, place) = args.folder.both()?;
    let Place::Folder(dir) = place else {
        let words = "filter.place is \"redis\": the filter is in Redis, and no storage folder has \
                     an archive. With filter.kind = \"scrapy-redis\" scrapy-redis continues with \
                     the set as it is";
        return Err(UsageError(words.to_owned()).into());
    };
    let context = Context::new(config)?;
    let config = &context.config;
    // The folder is opened before Redis is asked. Its lock keeps daemons away, so neither changes.
    let folder = AtRest::open(&dir)?;
    let Some(header) = folder.header() else {
        anyhow::bail!("the storage folder {} is new: it holds no fingerprints", dir.display());
    };
    let algorithm = header.spec().filter.algorithm;
    let target = if args.folder.is_named() || config.source.kind == SourceKind::None {
        Target::Last
    } else {
        context.runtime.block_on(target(&context))?
    };
    let archive = folder.archive(target)?;
    check(&archive, args.partial, &dir)?;
    let count = match &args.archive_to_set {
        Some(key) => add(archive, &context, key)?,
        None => print(archive, form(args))?,
    };
    let ArchiveCount { fingerprints, new, text } = count;
    if args.json {
        let algorithm = algorithm.name();
        let value = json!({
            "fingerprints": fingerprints, "new": new, "text": text, "algorithm": algorithm,
        });
        tell(args, &value.to_string())?;
        return Ok(outcome(text));
    }
    let (all, left_out) = (HumanCount(fingerprints), HumanCount(text));
    let to = match (&args.archive_to_set, new) {
        (Some(key), Some(new)) => {
            let (new, address) = (HumanCount(new), &config.redis.url);
            format!("{key} at {address} has them now, {new} are new there")
        }
        _ => format!("they are those of {}", dir.display()),
    };
    let line = format!(
        "urlseen: {all} fingerprints, computed as by {algorithm}: {to}; {left_out} keys are text \
         and left out"
    );
    tell(args, &line)?;
    Ok(outcome(text))
}

fn outcome(text: u64) -> Outcome {
    if text > 0 { Outcome::BadInput } else { Outcome::Done }
}

/// Prints the summary on the stream that has no fingerprints.
fn tell(args: &ExportArgs, line: &str) -> io::Result<()> {
    if args.archive {
        say(format_args!("{line}"));
        return Ok(());
    }
    writeln!(stdout(), "{line}")
}

/// Reads the last batch of the crawl from Redis.
async fn target(context: &Context) -> anyhow::Result<Target> {
    let ask = async {
        let mut link = context.connect().await?;
        let protocol = Protocol::new(&context.config);
        let (head, _) = protocol.place(link.call(&protocol.look()).await?)?;
        anyhow::Ok(head)
    };
    let head = ask.await.context(
        "Redis has to say which batch of the crawl was the last. Without it, export with --storage \
         in place of --config: then each batch in the log counts",
    )?;
    if head.is_none() {
        say("urlseen: Redis knows nothing of the crawl: each batch in the log counts");
    }
    Ok(head.map_or(Target::Last, Target::At))
}

/// Refuses an archive that lacks fingerprints, unless `--partial` permits it.
fn check(archive: &Archive<'_>, is_partial: bool, dir: &Path) -> anyhow::Result<()> {
    for damage in archive.damaged() {
        say(format_args!("urlseen: passed over as damaged: {damage}"));
    }
    let Some(from) = archive.lacks_before() else { return Ok(()) };
    let lack = format!(
        "the archive in {} lacks fingerprints of the filter: it is complete only after {from}",
        dir.display()
    );
    if is_partial {
        say(format_args!("urlseen: {lack}"));
        return Ok(());
    }
    Err(UsageError(format!(
        "{lack}. What it lacks would be crawled again: export what there is with --partial, or \
         stay with this filter"
    ))
    .into())
}

/// Counts of the exported keys.
#[derive(Debug, Default)]
struct ArchiveCount {
    fingerprints: u64,
    /// Fingerprints that the set did not have.
    pub new: Option<u64>,
    /// Keys that are text. They are left out.
    text: u64,
}

/// Passes each fingerprint to `take`, and counts them.
fn each(
    archive: Archive<'_>,
    mut take: impl FnMut(&Fingerprint) -> anyhow::Result<()>,
) -> anyhow::Result<ArchiveCount> {
    let (mut count, mut failed) = (ArchiveCount::default(), None);
    let bar = Bar::counting("fingerprints");
    archive.each(|fingerprint| {
        if let Fingerprint::Text(_) = fingerprint {
            count.text += 1;
            return ControlFlow::Continue(());
        }
        if let Err(error) = take(fingerprint) {
            failed = Some(error);
            return ControlFlow::Break(());
        }
        count.fingerprints += 1;
        if count.fingerprints.is_multiple_of(TELL) {
            bar.tell(format!("{} fingerprints", HumanCount(count.fingerprints)));
        }
        ControlFlow::Continue(())
    })?;
    failed.map_or(Ok(count), Err)
}

fn print(archive: Archive<'_>, form: SetForm) -> anyhow::Result<ArchiveCount> {
    let mut output = BufWriter::new(io::stdout().lock());
    let count = each(archive, |fingerprint| Ok(write(&mut output, form, fingerprint)?))?;
    output.flush()?;
    Ok(count)
}

fn add(archive: Archive<'_>, context: &Context, key: &str) -> anyhow::Result<ArchiveCount> {
    let Context { config, runtime } = context;
    let mut set = runtime.block_on(Filling::begin(&config.redis.url, key))?;
    let again = || format!("{key} has some of the fingerprints; give the same command again");
    let count = each(archive, |fingerprint| {
        if set.push(fingerprint) {
            runtime.block_on(set.flush()).with_context(again)?;
        }
        Ok(())
    })?;
    let new = runtime.block_on(set.flush()).with_context(again)?;
    Ok(ArchiveCount { new: Some(new), ..count })
}
