//! `urlseen union`: unites two filters into a new filter.

mod target;

use std::io::Write;
use std::path::Path;

use indicatif::HumanCount;
use serde_json::json;
use urlseen_analysis::Overlap;
use urlseen_core::filter::id::RandomId;
use urlseen_core::filter::{FilterKind, FilterSpec, ShardId};
use urlseen_core::storage::{Head, StorageSpec};
use urlseen_engine::config::{Config, FilterPlace};

use super::Outcome;
use super::compare::{error, size};
use super::new_folder::NewFolder;
use super::operand::{self, Operand, Pair, RedisOperand, Shards, Source};
use super::rows::{COMPARED, Rows};
use super::settings::Settings;
use super::start::usage;
use crate::admin::printable::{json_text, stdout};
use target::RedisTarget;

/// Unite two filters A and B into a new filter C. Each URL that A or B has seen counts as seen in
/// C.
///
/// A and B must have the same kind, parameters and seed. C is a new storage folder for urlseen run,
/// or a new key in Redis. The command never overwrites an existing folder or key. If the command
/// fails, it leaves no C. The command does not change A or B.
///
/// A URL that was forgotten in A passes again in C, unless B has seen it. The same is true for a
/// URL that was forgotten in B.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  urlseen union monday tuesday --output both
  urlseen union monday tuesday --output both --crawl news  # for another crawl")]
pub(super) struct UnionArgs {
    #[command(flatten)]
    settings: Settings,
    /// The new filter C: a new storage folder, or URL#KEY in Redis
    #[arg(short, long, value_name = "C")]
    output: String,
    /// Name of the crawl for the new folder. Default: the crawl of A
    #[arg(long, value_name = "NAME")]
    crawl: Option<String>,
    /// Print the summary as JSON
    #[arg(long)]
    json: bool,
    /// A filter: a storage folder, a snapshot, or URL#KEY in Redis
    #[arg(value_name = "A")]
    a: String,
    /// Another filter, named in the same way
    #[arg(value_name = "B")]
    b: String,
}

pub(super) fn run(args: &UnionArgs) -> anyhow::Result<Outcome> {
    let is_redis = args.output.contains("://");
    if !is_redis && Path::new(&args.output).exists() {
        return Err(usage(format!(
            "{} already exists, and a union needs a new storage folder: use another name",
            args.output
        )));
    }
    let mut a = Operand::open(&args.a, &args.settings)?;
    let mut b = Operand::open(&args.b, &args.settings)?;
    operand::check(&a, &b)?;
    if let Some(crawl) = &args.crawl {
        a.config.crawl.name.clone_from(crawl);
    }
    let (overlap, forgotten) = match (&mut a.source, &mut b.source) {
        (Source::Shards(of_a), Source::Shards(of_b)) => {
            shards(of_a, of_b, &a.spec, &a.config, args)?
        }
        (Source::Redis(of_a), Source::Redis(of_b)) if is_redis => {
            in_redis(of_a, of_b, &a.config, args)?
        }
        _ => {
            return Err(usage(format!(
                "{} has the kind {}, and a storage folder cannot hold that kind: use -o \
                 redis://…#KEY",
                a.what,
                a.spec.kind()
            )));
        }
    };
    if args.json {
        let (keys, error) = (overlap.union, overlap.error);
        let made = json!({
            "union": args.output, "keys": keys, "error": error, "forgotten": forgotten,
        });
        writeln!(stdout(), "{}", json_text(&made.to_string()))?;
        return Ok(Outcome::Done);
    }
    let mut out = stdout();
    writeln!(out, "{} holds the union:", args.output)?;
    let mut rows = Rows::new(out, COMPARED);
    rows.row("fingerprints", size(overlap.union))?;
    rows.row("error", error(&overlap))?;
    if forgotten > 0 {
        let forgotten = HumanCount(forgotten as u64);
        rows.row("", format!("{forgotten} of these were forgotten and pass again"))?;
    }
    Ok(Outcome::Done)
}

/// Overlap of two filters, and the number of fingerprints that are forgotten in their union.
/// Forgotten fingerprints pass again.
type United = (Overlap, usize);

/// Unites two filters whose kind can be in memory.
fn shards(
    a: &mut Shards,
    b: &mut Shards,
    spec: &FilterSpec,
    config: &Config,
    args: &UnionArgs,
) -> anyhow::Result<United> {
    if !args.output.contains("://") {
        let (new, mut folder) = NewFolder::begin(Path::new(&args.output), ".uniting")?;
        let spec = StorageSpec { crawl: config.crawl.name.clone(), filter: spec.clone() };
        folder.begin(&spec, RandomId::random().get(), Head::START)?;
        let mut rebase = folder.rebase(Head::START)?;
        let united = each(a, b, |shard, filter, left| {
            rebase.write(shard, &*filter.save(shard, Vec::new()))?;
            rebase.sections.tombstones(shard, left);
            Ok(())
        })?;
        rebase.finish()?;
        drop(folder);
        new.finish()?;
        return Ok(united);
    }
    let forgotten = a.tombstones() + b.tombstones();
    if forgotten > 0 {
        return Err(usage(format!(
            "{forgotten} fingerprints were forgotten, and a filter in Redis cannot forget: unite \
             into a storage folder, or let the URLs pass first"
        )));
    }
    if !spec.kind().is_in(FilterPlace::Redis) {
        return Err(usage(format!(
            "Redis cannot hold a filter of the kind {}: unite into a storage folder",
            spec.kind()
        )));
    }
    let mut target = RedisTarget::begin(&args.output, &args.settings, config)?;
    let united = each(a, b, |shard, filter, _| {
        for bits in filter.bits().unwrap_or_default() {
            target.put_shard(shard, bits.bytes)?;
        }
        Ok(())
    })?;
    target.finish()?;
    Ok(united)
}

/// Unites filters shard by shard. Passes each united shard and its forgotten keys to `put`.
fn each(
    a: &mut Shards,
    b: &mut Shards,
    mut put: impl FnMut(ShardId, Box<dyn FilterKind>, &[u128]) -> anyhow::Result<()>,
) -> anyhow::Result<United> {
    let mut forgotten = 0;
    let totals = Pair::walk(a, b, |pair| {
        let shard = pair.shard;
        let (filter, left) = pair.unite()?;
        forgotten += left.len();
        put(shard, filter, &left)
    })?;
    Ok((totals.overlap(), forgotten))
}

/// Unites two filters of other projects, which are strings or sets in Redis, into a new filter in
/// Redis.
fn in_redis(
    a: &mut RedisOperand,
    b: &mut RedisOperand,
    config: &Config,
    args: &UnionArgs,
) -> anyhow::Result<United> {
    let mut target = RedisTarget::begin(&args.output, &args.settings, config)?;
    let totals = if a.is_set() {
        let totals = RedisOperand::count(a, b)?;
        for set in [a, b] {
            set.members(|page| target.add(&page))?;
        }
        totals
    } else {
        RedisOperand::walk(a, b, |string, offset, a, b| {
            let united: Vec<u8> = a.iter().zip(b).map(|(a, b)| a | b).collect();
            target.put(string, offset, &united)
        })?
    };
    target.finish()?;
    Ok((totals.overlap(), 0))
}
