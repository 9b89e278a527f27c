//! `urlseen union`: one filter of two.

mod folder;
mod target;

use std::io::Write;
use std::path::Path;

use crate::admin::printable::{json_text, say, stdout};
use indicatif::HumanCount;
use serde_json::json;
use urlseen_analysis::{Interval, Totals};
use urlseen_core::filter::native::KeyHash;
use urlseen_core::filter::redisbloom::Filter;
use urlseen_core::filter::{Parameters, Saved, ShardId};
use urlseen_core::storage::Head;

use super::Outcome;
use super::bar::Bar;
use super::compare::{caveats, size};
use super::operand::{self, Operand, Source};
use super::settings::Settings;
use super::start::UsageError;
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
    /// Another one
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
    let (keys, forgotten) = match (&a.source, is_redis) {
        (Source::Whole(..), _) => whole(&mut a, b, args)?,
        (Source::Redis(redis), true) if redis.is_set() => sets(&mut a, &mut b, args)?,
        (_, true) => to_redis(&mut a, &mut b, args)?,
        (Source::Redis(redis), false) if a.made.is_none() => {
            let what = if redis.is_set() { "a set" } else { "a filter of another project" };
            return Err(UsageError(format!(
                "{} is {what}, which no storage folder holds: give -o redis://…#KEY",
                a.what
            ))
            .into());
        }
        (_, false) => to_folder(&mut a, &mut b, args)?,
    };
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

/// The size of the union, and how many of it are to pass once more.
type United = (Interval, usize);

/// What was forgotten on one side, by shard.
fn tombstones(side: &Operand, shard: ShardId) -> Vec<u128> {
    match &side.source {
        Source::Shards(reader, _) => {
            let all = reader.tombstones().range((shard, 0)..=(shard, u128::MAX));
            all.map(|&(_, id)| id).collect()
        }
        Source::Whole(..) | Source::Redis(_) => Vec::new(),
    }
}

/// Unites native filters into a folder.
fn to_folder(a: &mut Operand, b: &mut Operand, args: &UnionArgs) -> anyhow::Result<United> {
    let made = a.made.clone().expect("a native filter can be in a folder");
    let (Some(seed), Some(sizing)) = (made.seed(), made.sizing()) else {
        unreachable!("filters of RedisBloom are united whole")
    };
    let geometry = sizing.geometry();
    let native = urlseen_core::filter::native::Native::new(seed, geometry);
    let mut folder = NewFolder::begin(Path::new(&args.output), a, made)?;
    let mut rebase = folder.rebase()?;
    let (mut totals, mut left_tombstones) = (Totals::default(), 0);
    let parts = a.parts();
    let bar = Bar::new("written");
    let all: u64 = parts.iter().map(|part| part.bytes).sum();
    let mut done = 0;
    for (part, shard) in parts.into_iter().zip(ShardId::all()) {
        let mut of_a = a.read(part, 0, part.bytes)?;
        let of_b = b.read(part, 0, part.bytes)?;
        let mut ones = urlseen_analysis::Ones::default();
        ones.add(&of_a, &of_b);
        let (by_a, by_b) = (tombstones(a, shard), tombstones(b, shard));
        // Seen on one side and forgotten on the other, it is seen.
        let is_set = |bytes: &[u8], id: u128| {
            native.positions(KeyHash::named(shard, id)).all(|position| {
                let byte = usize::try_from(position / 8).expect("within a shard");
                bytes[byte] >> (position % 8) & 1 == 1
            })
        };
        let mut left: Vec<u128> = by_a
            .iter()
            .filter(|id| by_b.contains(id) || !is_set(&of_b, **id))
            .chain(by_b.iter().filter(|id| !by_a.contains(id) && !is_set(&of_a, **id)))
            .copied()
            .collect();
        left.sort_unstable();
        totals.add(&part.cells, ones);
        for (byte, other) in of_a.iter_mut().zip(&of_b) {
            *byte |= other;
        }
        let keys = geometry.keys_from_ones(ones.union);
        if ones.union == 0 {
            of_a.clear();
        }
        rebase.write(shard, &Saved { keys, bytes: of_a })?;
        rebase.tombstones(shard, &left);
        left_tombstones += left.len();
        done += part.bytes;
        bar.show(done, all);
    }
    rebase.finish()?;
    drop(bar);
    folder.finish()?;
    Ok((totals.overlap().union, left_tombstones))
}

/// Unites native filters, or strings of other projects, into strings in Redis.
fn to_redis(a: &mut Operand, b: &mut Operand, args: &UnionArgs) -> anyhow::Result<United> {
    for side in [&*a, &*b] {
        if side.tombstones() > 0 {
            return Err(UsageError(format!(
                "{}, of which {} fingerprints are to pass once more, and a filter in Redis cannot \
                 forget: unite into a storage folder, or let them pass first",
                side.what,
                side.tombstones()
            ))
            .into());
        }
    }
    let mut target = RedisTarget::begin(&args.output, &args.settings, a)?;
    let bar = Bar::new("written");
    let (totals, _) = operand::walk(
        a,
        b,
        |done, all| bar.show(done, all),
        |part, offset, a, b| {
            let united: Vec<u8> = a.iter().zip(b).map(|(a, b)| a | b).collect();
            target.put(part.number, offset, &united)
        },
    )?;
    drop(bar);
    target.finish()?;
    Ok((totals.overlap().union, 0))
}

/// Unites exact sets.
fn sets(a: &mut Operand, b: &mut Operand, args: &UnionArgs) -> anyhow::Result<United> {
    let mut target = RedisTarget::begin(&args.output, &args.settings, a)?;
    for side in [a, b] {
        if let Source::Redis(set) = &mut side.source {
            set.members(|page| target.add(&page))?;
        }
    }
    let keys = target.members()? as f64;
    target.finish()?;
    Ok((Interval { value: keys, low: keys, high: keys }, 0))
}

/// Unites filters of RedisBloom.
fn whole(a: &mut Operand, mut b: Operand, args: &UnionArgs) -> anyhow::Result<United> {
    let mut sizes = Vec::new();
    let mut totals = Totals::default();
    for part in a.parts() {
        let (of_a, of_b) = (a.read(part, 0, part.bytes)?, b.read(part, 0, part.bytes)?);
        let mut ones = urlseen_analysis::Ones::default();
        ones.add(&of_a, &of_b);
        totals.add(&part.cells, ones);
        sizes.push(part.cells.keys(ones.union));
    }
    let overlap = totals.overlap();
    let (Source::Whole(filter, by_a), Source::Whole(other, by_b)) = (&mut a.source, b.source)
    else {
        unreachable!("both have the kind of the one")
    };
    let sizes = sized(filter, &other, &sizes)?;
    let has = |filter: &Filter, id: u128| {
        // The upper half first, as `KeyHash::id` has it.
        #[allow(clippy::cast_possible_truncation)]
        let words = [(id >> 64) as u64, id as u64];
        filter.has(urlseen_core::filter::redisbloom::Hashes::from_words(words))
    };
    let mut left: Vec<u128> =
        by_a.iter().copied().filter(|id| by_b.contains(id) || !has(&other, *id)).collect();
    let more = by_b.iter().copied().filter(|id| !by_a.contains(id) && !has(filter, *id));
    left.extend(more.collect::<Vec<_>>());
    filter.unite(&other, &sizes);
    let filter = filter.frozen();
    if args.output.contains("://") {
        if !left.is_empty() {
            let words = "what was forgotten is to pass once more, and RedisBloom cannot forget: \
                         unite into a storage folder";
            return Err(UsageError(words.to_owned()).into());
        }
        target::load(&args.output, &args.settings, &filter)?;
    } else {
        let made = match (&a.made, &b.made) {
            (Some(one), Some(second)) if one == second => one.clone(),
            _ => Parameters::imported(),
        };
        let mut folder = NewFolder::begin(Path::new(&args.output), a, made)?;
        let mut rebase = folder.rebase()?;
        rebase.write(ShardId::WHOLE, &filter)?;
        rebase.tombstones(ShardId::WHOLE, &left);
        rebase.finish()?;
        folder.finish()?;
    }
    for caveat in caveats(a, &overlap) {
        say(format_args!("urlseen: {caveat}"));
    }
    Ok((overlap.union, left.len()))
}

/// How many items each layer of the union is to count as having. RedisBloom grows by that count,
/// and keeps its error rate as long as no layer has more than it is made for.
fn sized(a: &Filter, b: &Filter, estimates: &[f64]) -> anyhow::Result<Vec<u64>> {
    let mut sizes = Vec::new();
    let layers = a.layers().iter().zip(b.layers()).zip(estimates);
    for (number, ((a, b), estimate)) in layers.enumerate() {
        // Not negative, and far below 2^64.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let estimate = estimate.round() as u64;
        let size = estimate.clamp(a.size().max(b.size()), a.size() + b.size());
        if size > a.capacity() {
            return Err(UsageError(format!(
                "together layer {number} of the filters has about {} items, and it is made for {}: \
                 RedisBloom could neither count them nor keep its error rate. Make one filter of a \
                 larger capacity, and feed it both crawls",
                HumanCount(size),
                HumanCount(a.capacity())
            ))
            .into());
        }
        sizes.push(size);
    }
    Ok(sizes)
}

/// Where the new folder stands: at the begin of a crawl.
const AT: Head = Head::START;
