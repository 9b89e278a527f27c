//! `urlseen export`: the filter or the fingerprints of a crawl, for other programs.

mod archive;

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use crate::admin::printable::{say, stdout};
use crate::cli::migrate::set::{SetForm, Written};
use crate::cli::migrate::{self, TransferError};
use indicatif::{BinaryBytes, HumanCount};
use serde_json::json;
use urlseen_core::filter::kinds::REDISBLOOM;
use urlseen_core::storage::AtRest;

use super::bar::Bar;
use super::context::Context;
use super::settings::{Folder, Place};
use super::start::UsageError;
use super::{Outcome, moving, operand};

/// Export the filter of a stopped crawl to Redis or RedisBloom, or its fingerprints to Scrapy or
/// scrapy-redis.
///
/// With --to-redis the command copies a native filter to filter.key, with its seed, its id, and the
/// position of the crawl. To continue an interrupted copy, repeat the command.
///
/// With --redisbloom or --redisbloom-file it writes the filter of a folder with filter.kind =
/// "redisbloom" to a server with the module, or to a file with a dump. Byte for byte it is the
/// filter that RedisBloom makes of the same fingerprints. The folder is only read. No daemon may be
/// working on it.
///
/// With --archive it prints every fingerprint that was let through or imported and not forgotten
/// since. storage.archive = true keeps them. It prints those up to the last batch that Redis knows.
/// With --storage in place of a configuration it does not ask Redis: all batches in the log count,
/// also those that a killed daemon has left there. A key that is text is not a fingerprint of
/// Scrapy. It is left out and counted, and makes the exit status 1. Meanwhile all fingerprints that
/// were ever forgotten are in memory.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  urlseen export --archive --format requests-seen  # for a JOBDIR of Scrapy
  urlseen export --archive-to-set demo:dupefilter  # for scrapy-redis")]
#[command(group = clap::ArgGroup::new("to").required(true))]
#[allow(clippy::struct_excessive_bools, reason = "each is an option")]
pub(super) struct ExportArgs {
    #[command(flatten)]
    folder: Folder,
    /// Write RedisBloom's filter to this new file, as a dump
    #[arg(long, value_name = "FILE", group = "to")]
    redisbloom_file: Option<PathBuf>,
    /// Load RedisBloom's filter into this new key of the configured redis.url
    #[arg(long, value_name = "KEY", group = "to", conflicts_with = "storage")]
    redisbloom: Option<String>,
    /// Copy the native filter of the configured storage folder to the configured filter.key in
    /// Redis; the crawl continues with filter.place = "redis"
    #[arg(long, group = "to", conflicts_with = "storage")]
    to_redis: bool,
    /// Print the fingerprints in this set of the configured redis.url; that of scrapy-redis is
    /// SPIDER:dupefilter
    #[arg(long, value_name = "KEY", group = "to", conflicts_with = "storage")]
    redis_set: Option<String>,
    /// Print the fingerprints in the archive of the storage folder
    #[arg(long, group = "to")]
    archive: bool,
    /// Add the fingerprints in the archive to this set of the configured redis.url, in the form of
    /// scrapy-redis
    #[arg(long, value_name = "KEY", group = "to", conflicts_with = "storage")]
    archive_to_set: Option<String>,
    /// Export an archive even if it lacks fingerprints of the filter
    #[arg(long, conflicts_with_all = ["redisbloom_file", "redisbloom", "to_redis", "redis_set"])]
    partial: bool,
    /// Form of the printed fingerprints: lines of hex digits, or the requests.seen of Scrapy 2.19
    #[arg(long, value_name = "FORMAT", default_value = "hex")]
    #[arg(value_parser = ["hex", "requests-seen"])]
    #[arg(
        conflicts_with_all = ["redisbloom_file", "redisbloom", "to_redis", "archive_to_set"]
    )]
    format: String,
    /// Print the summary at the end as JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &ExportArgs) -> anyhow::Result<Outcome> {
    if let Some(key) = &args.redis_set {
        return set(args, key);
    }
    if args.archive || args.archive_to_set.is_some() {
        return archive::run(args);
    }
    if args.to_redis {
        return moving::to_redis(&args.folder.config()?, args.json);
    }
    let dir = match args.folder.place()? {
        Place::Folder(dir) => dir,
        Place::Redis(_) => {
            let words = "filter.place is \"redis\": the filter is in Redis, and none in a storage \
                         folder, so there is nothing to export";
            return Err(UsageError(words.to_owned()).into());
        }
    };
    let folder = AtRest::open(&dir)?;
    match folder.header().map(|header| header.spec().filter.kind()) {
        Some(kind) if kind == REDISBLOOM => {}
        Some(kind) => {
            return Err(UsageError(format!(
                "the filter in {} has the kind {}, which RedisBloom cannot read: there is \
                 nothing to export",
                dir.display(),
                kind.name()
            ))
            .into());
        }
        None => anyhow::bail!("the storage folder {} is new: it holds no filter", dir.display()),
    }
    let filter = operand::redisbloom(&mut folder.reader()?)?;
    let bar = Bar::new("written");
    let progress = &mut |done, all| bar.show(done, all);
    let to = match (&args.redisbloom_file, &args.redisbloom) {
        (Some(path), _) => {
            migrate::write(path, &filter, progress)?;
            path.display().to_string()
        }
        (None, key) => {
            let key = key.as_deref().unwrap_or_default();
            let Context { config, runtime } = Context::new(args.folder.config()?)?;
            runtime.block_on(migrate::load(&config.redis.url, key, &filter, progress))?;
            format!("{key} at {}", config.redis.url)
        }
    };
    drop(bar);
    let (keys, layers, bytes) = (filter.size(), filter.layers().len(), filter.bytes());
    let mut out = stdout();
    if args.json {
        writeln!(out, "{}", json!({ "keys": keys, "layers": layers, "bytes": bytes }))?;
    } else {
        let (keys, bytes) = (HumanCount(keys), BinaryBytes(bytes));
        writeln!(out, "{to} holds the filter: {keys} fingerprints in {layers} layers, {bytes}")?;
    }
    Ok(Outcome::Done)
}

fn form(args: &ExportArgs) -> SetForm {
    if args.format == "hex" { SetForm::Hex } else { SetForm::RequestsSeen }
}

/// Prints the fingerprints in a set.
fn set(args: &ExportArgs, key: &str) -> anyhow::Result<Outcome> {
    let Context { config, runtime } = Context::new(args.folder.config()?)?;
    let form = form(args);
    let mut output = BufWriter::new(io::stdout().lock());
    let bar = Bar::counting("fingerprints written");
    let progress = &mut |done, all| bar.show(done, all);
    let members = migrate::set::members(&config.redis.url, key, form, &mut output, progress);
    let Written { fingerprints, bad } = match runtime.block_on(members) {
        Err(TransferError::Output(error)) => return Err(error.into()),
        written => written?,
    };
    drop(bar);
    // Standard output has the fingerprints.
    if args.json {
        say(format_args!("{}", json!({ "fingerprints": fingerprints, "bad": bad })));
    } else {
        let (fingerprints, bad) = (HumanCount(fingerprints), HumanCount(bad));
        say(format_args!("urlseen: {fingerprints} fingerprints of {key}; {bad} members are none"));
    }
    Ok(if bad > 0 { Outcome::BadInput } else { Outcome::Done })
}
