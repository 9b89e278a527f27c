//! `urlseen union`: one filter of two.

mod folder;
mod target;

use std::io::Write;
use std::path::Path;

use indicatif::HumanCount;
use serde_json::json;
use urlseen_analysis::{Interval, Overlap};
use urlseen_core::filter::{FilterKind, FilterSpec, ShardId};
use urlseen_engine::config::{Config, FilterPlace};

use super::Outcome;
use super::compare::{caveats, size};
use super::operand::{self, Operand, Pair, RedisOperand, Shards, Source};
use super::settings::Settings;
use super::start::UsageError;
use crate::admin::printable::{json_text, say, stdout};
use folder::NewFolder;
use target::RedisTarget;

/// Make one filter of two: all that has been seen in A or in B has been seen in C.
///
/// Both must be of one kind, with the same parameters and the same seed. C is a new storage folder,
/// ready for urlseen run, or a new key in Redis; nothing that is there is written over, and what is
/// broken off leaves no C. A and B are only read.
///
/// What was forgotten in A or B is seen in C if it counts as seen in the other one, and is to pass
/// once more if it does not.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  urlseen union monday tuesday --output both
  urlseen union monday tuesday --output both --crawl news  # for another crawl")]
pub(super) struct UnionArgs {
    #[command(flatten)]
    settings: Settings,
    /// The new storage folder, or URL#KEY in Redis
    #[arg(short, long, value_name = "C")]
    output: String,
    /// The crawl that the new folder is for; without this option that of A
    #[arg(long, value_name = "NAME")]
    crawl: Option<String>,
    /// Print the summary as JSON
    #[arg(long)]
    json: bool,
    /// A filter: a storage folder, a snapshot, a dump, or URL#KEY in Redis
    #[arg(value_name = "A")]
    a: String,
    /// Another filter, named in the same way
    #[arg(value_name = "B")]
    b: String,
}

pub(super) fn run(args: &UnionArgs) -> anyhow::Result<Outcome> {
    let is_redis = args.output.contains("://");
    if !is_redis && Path::new(&args.output).exists() {
        return Err(UsageError(format!(
            "{} is there already, and a union makes a new storage folder: give another name",
            args.output
        ))
        .into());
    }
    let mut a = Operand::open(&args.a, &args.settings)?;
    let mut b = Operand::open(&args.b, &args.settings)?;
    operand::check(&a, &b)?;
    if let Some(crawl) = &args.crawl {
        a.config.crawl.name.clone_from(crawl);
    }
    let united = match (&mut a.source, &mut b.source) {
        (Source::Shards(of_a), Source::Shards(of_b)) => {
            let (spec, config) = (united_spec(&a.spec, &b.spec), &a.config);
            shards(of_a, of_b, spec, config, args)?
        }
        (Source::Redis(of_a), Source::Redis(of_b)) if is_redis => {
            in_redis(of_a, of_b, &a.config, args)?
        }
        _ => {
            return Err(UsageError(format!(
                "{} has the kind {}, which no storage folder holds: give -o redis://…#KEY",
                a.what,
                a.spec.kind()
            ))
            .into());
        }
    };
    let United { overlap, forgotten } = united;
    for caveat in caveats(&a, &overlap) {
        say(format_args!("urlseen: {caveat}"));
    }
    let keys = overlap.union;
    let mut out = stdout();
    let Interval { value, low, high } = keys;
    if args.json {
        let keys = json!({ "value": value, "low": low, "high": high });
        let made = json!({ "union": args.output, "keys": keys, "forgotten": forgotten });
        writeln!(out, "{}", json_text(&made.to_string()))?;
    } else {
        writeln!(out, "{} holds the union:", args.output)?;
        writeln!(out, "fingerprints   {}", size(keys))?;
        if forgotten > 0 {
            let forgotten = HumanCount(forgotten as u64);
            writeln!(out, "{:<14} {forgotten} of these are to pass once more", "")?;
        }
    }
    Ok(Outcome::Done)
}

/// Numbers of fingerprints of a union.
struct United {
    overlap: Overlap,
    /// Number of fingerprints that are to pass once more.
    forgotten: usize,
}

/// Spec of the union. A filter that was imported says itself what it was made for.
fn united_spec(a: &FilterSpec, b: &FilterSpec) -> FilterSpec {
    let imported = [a, b].into_iter().find(|spec| spec.parameters.is_imported());
    let parameters = imported.unwrap_or(a).parameters.clone();
    FilterSpec { parameters, ..a.clone() }
}

/// Unites filters that can be in memory.
fn shards(
    a: &mut Shards,
    b: &mut Shards,
    spec: FilterSpec,
    config: &Config,
    args: &UnionArgs,
) -> anyhow::Result<United> {
    if !args.output.contains("://") {
        let mut folder = NewFolder::begin(Path::new(&args.output), config, spec)?;
        let mut rebase = folder.rebase()?;
        let united = each(a, b, |shard, filter, left| {
            rebase.write(shard, &*filter.save(shard, Vec::new()))?;
            rebase.tombstones(shard, left);
            Ok(())
        })?;
        rebase.finish()?;
        folder.finish()?;
        return Ok(united);
    }
    let forgotten = a.tombstones() + b.tombstones();
    if forgotten > 0 {
        return Err(UsageError(format!(
            "{forgotten} fingerprints are to pass once more, and a filter in Redis cannot forget: \
             unite into a storage folder, or let them pass first"
        ))
        .into());
    }
    if !spec.kind().is_in(FilterPlace::Redis) {
        let mut whole = None;
        let united = each(a, b, |_, filter, _| {
            whole = Some(filter);
            Ok(())
        })?;
        target::load(&args.output, &args.settings, whole)?;
        return Ok(united);
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

/// Unites filters shard by shard; `put` gets each shard, and its forgotten keys.
fn each(
    a: &mut Shards,
    b: &mut Shards,
    mut put: impl FnMut(ShardId, Box<dyn FilterKind>, &[u128]) -> anyhow::Result<()>,
) -> anyhow::Result<United> {
    let mut forgotten = 0;
    let counted = Pair::walk(a, b, |pair| {
        let shard = pair.shard;
        let (filter, left) = pair.unite()?;
        forgotten += left.len();
        put(shard, filter, &left)
    })?;
    Ok(United { overlap: counted.totals.overlap(), forgotten })
}

/// Unites strings or sets of other projects into a new filter in Redis.
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
        let counted = RedisOperand::walk(a, b, |string, offset, a, b| {
            let united: Vec<u8> = a.iter().zip(b).map(|(a, b)| a | b).collect();
            target.put(string, offset, &united)
        })?;
        counted.totals
    };
    target.finish()?;
    Ok(United { overlap: totals.overlap(), forgotten: 0 })
}
