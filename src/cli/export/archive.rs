//! `urlseen export --archive`: exports the fingerprints in the archive of a storage folder.

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
use urlseen_core::redis::RedisAddress;
use urlseen_core::storage::{Archive, AtRest, Target};
use urlseen_engine::config::{Config, SourceKind};

use super::super::Outcome;
use super::super::bar::Bar;
use super::super::context::{connect, runtime};
use super::super::settings::folder_of;
use super::super::start::usage;
use super::{ExportArgs, form};

/// Number of fingerprints between two updates of the bar.
const TELL: u64 = 100_000;

pub(super) fn run(args: &ExportArgs) -> anyhow::Result<Outcome> {
    let config = args.folder.locate()?;
    let Some(dir) = folder_of(&config) else {
        let words = "filter.place is \"redis\": there is no archive. With filter.kind = \
                     \"scrapy-redis\", scrapy-redis can use the set in Redis without an export";
        return Err(usage(words));
    };
    // The lock of the folder keeps daemons away, so the crawl cannot change after this line.
    let folder = AtRest::open(dir)?;
    let Some(header) = folder.header() else {
        anyhow::bail!("the storage folder {} is new: it holds no fingerprints", dir.display());
    };
    let algorithm = header.spec().filter.fingerprint.algorithm;
    let target = if args.folder.named().is_some() || config.source.kind == SourceKind::None {
        Target::Last
    } else {
        runtime()?.block_on(target(&config))?
    };
    let archive = folder.archive(target)?;
    check(&archive, args.partial, dir)?;
    let count = match &args.archive_to_set {
        Some(key) => add(archive, &config.redis.url, key)?,
        None => print(archive, form(args))?,
    };
    let ArchiveCount { fingerprints, new, text } = count;
    let line = if args.json {
        let algorithm = algorithm.name();
        let value = json!({
            "fingerprints": fingerprints, "new": new, "text": text, "algorithm": algorithm,
        });
        value.to_string()
    } else {
        let (all, left_out) = (HumanCount(fingerprints), HumanCount(text));
        let to = match (&args.archive_to_set, new) {
            (Some(key), Some(new)) => {
                let (new, address) = (HumanCount(new), &config.redis.url);
                format!("are now in {key} at {address}, and {new} of them are new there")
            }
            _ => format!("come from {}", dir.display()),
        };
        format!(
            "urlseen: {all} fingerprints, computed by {algorithm}, {to}; {left_out} keys are text \
             and left out"
        )
    };
    if args.archive {
        // Standard output has the fingerprints, so the summary goes to standard error.
        say(line);
    } else {
        writeln!(stdout(), "{line}")?;
    }
    Ok(if text > 0 { Outcome::BadInput } else { Outcome::Done })
}

/// Reads the last committed batch of the crawl from Redis.
async fn target(config: &Config) -> anyhow::Result<Target> {
    let ask = async {
        let mut link = connect(config).await?;
        let protocol = Protocol::new(config);
        let (head, _) = protocol.place(link.call(&protocol.look()).await?)?;
        anyhow::Ok(head)
    };
    let head = ask.await.context(
        "the export needs the last committed batch of the crawl from Redis. Without Redis, name \
         the folder with --storage: then the export includes every batch in the log",
    )?;
    if head.is_none() {
        say("urlseen: Redis has no state of the crawl: the export includes every batch in the log");
    }
    Ok(head.map_or(Target::Last, Target::At))
}

/// Fails if the archive lacks fingerprints of the filter and `--partial` is not given.
fn check(archive: &Archive<'_>, is_partial: bool, dir: &Path) -> anyhow::Result<()> {
    for damage in archive.damaged() {
        say(format_args!("urlseen: skipped a damaged part: {damage}"));
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
    Err(usage(format!(
        "{lack}. A crawl with the exported fingerprints would fetch the missing URLs again. To \
         export the archive as it is, use --partial"
    )))
}

/// Counts of the exported keys.
#[derive(Debug, Default)]
struct ArchiveCount {
    fingerprints: u64,
    /// Number of exported fingerprints that are new in the set; `None` for an export without a set.
    new: Option<u64>,
    /// Number of keys that are text. The export omits them.
    text: u64,
}

/// Passes each fingerprint to `take`. Returns the numbers of exported and omitted keys.
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

fn add(archive: Archive<'_>, server: &RedisAddress, key: &str) -> anyhow::Result<ArchiveCount> {
    let runtime = runtime()?;
    let mut set = runtime.block_on(Filling::begin(server, key))?;
    let again = || format!("{key} has only some of the fingerprints: repeat the command");
    let count = each(archive, |fingerprint| {
        if set.push(fingerprint) {
            runtime.block_on(set.flush()).with_context(again)?;
        }
        Ok(())
    })?;
    let new = runtime.block_on(set.flush()).with_context(again)?;
    Ok(ArchiveCount { new: Some(new), ..count })
}
