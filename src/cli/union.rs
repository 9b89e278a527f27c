//! `urlseen union`: unites two filters into a new filter.

use std::path::Path;

use urlseen_analysis::Overlap;
use urlseen_core::filter::id::RandomId;
use urlseen_core::filter::{Saved, Seed};
use urlseen_core::redis_filter::opening::Wanted;
use urlseen_core::storage::{Head, StorageSpec};
use urlseen_engine::config::FilterPlace;

use super::Outcome;
use super::compare::{CompareArgs, unite};
use super::context::runtime;
use super::new_folder::NewFolder;
use super::operand::{Operand, Part, connect, shard};
use super::start::usage;

/// Unite two filters A and B into a new filter C. Each URL that A or B has seen counts as seen in
/// C.
///
/// A and B must have the same kind, parameters and seed. C is a new storage folder for urlseen run,
/// or a new key in Redis. The command never overwrites an existing folder or key. If the command
/// fails, it leaves no C. The command does not change A or B.
///
/// A URL that was forgotten in a native filter A or B passes again in C. With other kinds, it
/// passes again unless the other filter has seen it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  urlseen union monday tuesday --output both
  urlseen union monday tuesday --output both --crawl news  # for another crawl")]
pub(super) struct UnionArgs {
    #[command(flatten)]
    operands: CompareArgs,
    /// The new filter C: a new storage folder, or URL#KEY in Redis
    #[arg(short, long, value_name = "C")]
    output: String,
    /// Name of the crawl for the new folder. Default: the crawl of A
    #[arg(long, value_name = "NAME")]
    crawl: Option<String>,
}

pub(super) fn run(args: &UnionArgs) -> anyhow::Result<Outcome> {
    let is_redis = args.output.contains("://");
    if !is_redis && Path::new(&args.output).exists() {
        return Err(usage(format!(
            "{} already exists, and a union needs a new storage folder: use another name",
            args.output
        )));
    }
    let [mut a, mut b] = args.operands.open()?;
    let into = if is_redis { into_redis } else { into_folder };
    args.operands.print(&into(args, &mut a, &mut b)?)
}

/// Unites two filters into a new storage folder.
fn into_folder(args: &UnionArgs, a: &mut Operand, b: &mut Operand) -> anyhow::Result<Overlap> {
    let kind = a.spec.kind();
    if !kind.is_in(FilterPlace::Local) {
        return Err(usage(format!(
            "a storage folder cannot hold a filter of the kind {kind}: use -o redis://…#KEY"
        )));
    }
    let (new, mut folder) = NewFolder::begin(Path::new(&args.output), ".uniting")?;
    let crawl = args.crawl.as_ref().unwrap_or(&a.crawl).clone();
    let spec = StorageSpec { crawl, filter: a.spec.clone() };
    folder.begin(&spec, RandomId::random().get(), Head::START)?;
    let mut rebase = folder.rebase(Head::START)?;
    let native = a.spec.parameters.layout();
    let overlap = unite(a, b, |number, part| {
        let blob = match part {
            Part::Keys(filter) => filter.save(shard(number), Vec::new()),
            Part::Bits(bytes) => {
                let ones = bytes.iter().map(|byte| u64::from(byte.count_ones())).sum();
                let keys = native.map_or(0, |native| native.geometry.keys_from_ones(ones));
                Box::new(Saved { keys, bytes })
            }
        };
        Ok(rebase.write(shard(number), &*blob)?)
    })?;
    for &(shard, id) in a.tombstones.union(&b.tombstones) {
        rebase.sections.tombstones(shard, &[id]);
    }
    rebase.finish()?;
    drop(folder);
    new.finish()?;
    Ok(overlap)
}

/// Unites two filters into a new filter in Redis, which has temporary keys until it is complete.
fn into_redis(args: &UnionArgs, a: &mut Operand, b: &mut Operand) -> anyhow::Result<Overlap> {
    let forgotten = a.tombstones.len() + b.tombstones.len();
    if forgotten > 0 {
        return Err(usage(format!(
            "{forgotten} fingerprints were forgotten, and a filter in Redis cannot forget: unite \
             into a storage folder, or let the URLs pass first"
        )));
    }
    let (config, mut link) = connect(&args.output, &args.operands.settings)?;
    let wanted = Wanted::new(&config.filter.key, a.spec.clone())?;
    // The number has no effect for a kind without a seed.
    let seed = a.spec.parameters.seed().unwrap_or(Seed::new(0));
    let new = runtime()?.block_on(wanted.begin_new(&mut link, RandomId::random(), seed))?;
    let overlap = unite(a, b, |number, part| {
        // `Wanted::new` refuses the kinds that store keys.
        let Part::Bits(bytes) = part else { return Ok(()) };
        Ok(runtime()?.block_on(new.put(&mut link, number, &bytes))?)
    })?;
    runtime()?.block_on(new.finish(&mut link))?;
    Ok(overlap)
}
