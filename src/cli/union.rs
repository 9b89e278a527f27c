//! `urlseen union`: unites two filters into a new filter.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;

use indicatif::HumanCount;
use serde_json::json;
use urlseen_analysis::Overlap;
use urlseen_core::filter::id::RandomId;
use urlseen_core::filter::native::KeyHash;
use urlseen_core::filter::{FilterKind, Seed, Verdict};
use urlseen_core::storage::{Head, StorageSpec};
use urlseen_engine::config::{FilterPlace, SeedChoice};

use super::Outcome;
use super::compare::{count, error, size};
use super::context::Context;
use super::new_folder::NewFolder;
use super::operand::{Operand, Part, address};
use super::rows::{COMPARED, Rows};
use super::settings::Settings;
use super::start::usage;
use crate::admin::printable::{json_text, stdout};

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
    a.check(&b)?;
    if let Some(crawl) = &args.crawl {
        a.config.crawl.name.clone_from(crawl);
    }
    let (overlap, forgotten) = if is_redis {
        (into_redis(&mut a, &mut b, args)?, 0)
    } else {
        into_folder(&mut a, &mut b, args)?
    };
    let mut out = stdout();
    if args.json {
        let made = json!({
            "union": args.output, "keys": overlap.union, "error": overlap.error,
            "forgotten": forgotten,
        });
        writeln!(out, "{}", json_text(&made.to_string()))?;
        return Ok(Outcome::Done);
    }
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

/// Unites two filters into a new storage folder. Returns the overlap, and the number of
/// fingerprints that are forgotten in the union. They pass again.
fn into_folder(
    a: &mut Operand,
    b: &mut Operand,
    args: &UnionArgs,
) -> anyhow::Result<(Overlap, usize)> {
    if !a.spec.kind().is_in(FilterPlace::Local) {
        return Err(usage(format!(
            "{} has the kind {}, and a storage folder cannot hold that kind: use -o \
             redis://…#KEY",
            a.what,
            a.spec.kind()
        )));
    }
    let (new, mut folder) = NewFolder::begin(Path::new(&args.output), ".uniting")?;
    let spec = StorageSpec { crawl: a.config.crawl.name.clone(), filter: a.spec.clone() };
    folder.begin(&spec, RandomId::random().get(), Head::START)?;
    let mut rebase = folder.rebase(Head::START)?;
    let forgotten = [a.tombstones.clone(), b.tombstones.clone()];
    let mut left_in_all = 0;
    let overlap = count(a, b, |part, a, b| {
        let (Part::Shard(mut a), Part::Shard(b)) = (a, b) else { return Ok(()) };
        let shard = part.shard();
        let of_shard = |all: &BTreeSet<_>| -> BTreeSet<u128> {
            all.range((shard, 0)..=(shard, u128::MAX)).map(|&(_, id)| id).collect()
        };
        let [by_a, by_b] = forgotten.each_ref().map(of_shard);
        let is_seen = |filter: &dyn FilterKind, forgotten: &BTreeSet<u128>, id: u128| {
            let mut verdicts = Vec::new();
            filter.test(&[KeyHash::named(shard, id)], &mut verdicts);
            verdicts == [Verdict::Seen] && !forgotten.contains(&id)
        };
        let left = by_a.union(&by_b).copied();
        let left = left.filter(|&id| !is_seen(&*a, &by_a, id) && !is_seen(&*b, &by_b, id));
        let left: Vec<_> = left.collect();
        left_in_all += left.len();
        a.unite(&*b).map_err(|error| usage(error.to_string()))?;
        rebase.write(shard, &*a.save(shard, Vec::new()))?;
        rebase.sections.tombstones(shard, &left);
        Ok(())
    })?;
    rebase.finish()?;
    drop(folder);
    new.finish()?;
    Ok((overlap, left_in_all))
}

/// Unites two filters into a new filter in Redis, which has temporary keys until it is complete.
fn into_redis(a: &mut Operand, b: &mut Operand, args: &UnionArgs) -> anyhow::Result<Overlap> {
    let forgotten = a.tombstones.len() + b.tombstones.len();
    if forgotten > 0 {
        return Err(usage(format!(
            "{forgotten} fingerprints were forgotten, and a filter in Redis cannot forget: unite \
             into a storage folder, or let the URLs pass first"
        )));
    }
    if !a.spec.kind().is_in(FilterPlace::Redis) {
        return Err(usage(format!(
            "Redis cannot hold a filter of the kind {}: unite into a storage folder",
            a.spec.kind()
        )));
    }
    let place = address(&args.output, &args.settings)?;
    let mut config = a.config.clone();
    config.redis = place.redis;
    config.filter.key = place.filter.key;
    config.filter.place = FilterPlace::Redis;
    let seed = match config.filter.seed {
        SeedChoice::Fixed(seed) => Seed::new(seed),
        // The kind of this filter has no seed, so the number has no effect.
        SeedChoice::Random => Seed::new(0),
    };
    let context = Context::new(config)?;
    let mut link = context.runtime.block_on(context.connect())?;
    let Context { config, runtime } = context;
    let begun = config.redis_filter()?;
    let uniting = runtime.block_on(begun.begin_new(&mut link, RandomId::random(), seed))?;
    let overlap = count(a, b, |part, a, b| {
        let mut put = |bytes: &[u8]| {
            runtime.block_on(uniting.put(&mut link, part.number, part.offset, bytes))
        };
        match (a, b) {
            (Part::Page(_, a), Part::Page(_, b)) => {
                put(&a.iter().zip(b).map(|(a, b)| a | b).collect::<Vec<u8>>())?;
            }
            (Part::Shard(mut a), Part::Shard(b)) => {
                a.unite(&*b).map_err(|error| usage(error.to_string()))?;
                for bits in a.bits().unwrap_or_default() {
                    put(bits.bytes)?;
                }
            }
            _ => {}
        }
        Ok(())
    })?;
    runtime.block_on(uniting.finish(&mut link))?;
    Ok(overlap)
}
