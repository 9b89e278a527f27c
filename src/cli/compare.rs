//! `urlseen compare`: how much two filters have in common.

use std::collections::BTreeMap;
use std::io::{self, Write};

use crate::admin::printable::{json_text, printable, stdout};
use indicatif::HumanCount;
use serde_json::json;
use urlseen_analysis::{Interval, Ones, Overlap};

use super::Outcome;
use super::operand::{self, Counted, Operand, Pair, RedisOperand, Source};
use super::settings::Settings;

/// Estimate how many fingerprints two filters hold, together and in common, from their bits.
///
/// Both must be of one kind, with the same parameters and the same seed. Otherwise their bits say
/// nothing of each other, and the differences are named. They are only read; a daemon that works
/// on a storage folder goes on. Bounds are such that the truth is within them 95 times of 100; of
/// sets (the kind scrapy-redis) all is exact.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  urlseen compare monday tuesday
  urlseen compare monday redis://127.0.0.1:6379/0#demo:filter")]
pub(super) struct CompareArgs {
    #[command(flatten)]
    settings: Settings,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
    /// A filter: a storage folder, a snapshot, a dump, or URL#KEY
    #[arg(value_name = "A")]
    a: String,
    /// Another filter, named in the same way
    #[arg(value_name = "B")]
    b: String,
}

pub(super) fn run(args: &CompareArgs) -> anyhow::Result<Outcome> {
    let mut a = Operand::open(&args.a, &args.settings)?;
    let mut b = Operand::open(&args.b, &args.settings)?;
    operand::check(&a, &b)?;
    let (overlap, ones) = count(&mut a, &mut b)?;
    let mut out = stdout();
    if args.json {
        let json = serde_json::to_string_pretty(&json(&a, &b, &overlap, ones))?;
        writeln!(out, "{}", json_text(&json))?;
    } else {
        print(&a, &b, &overlap, &mut out)?;
    }
    Ok(Outcome::Done)
}

/// Counts both, and the bits that are 1, if there are any.
fn count(a: &mut Operand, b: &mut Operand) -> anyhow::Result<(Overlap, Option<Ones>)> {
    let Counted { totals, ones } = match (&mut a.source, &mut b.source) {
        (Source::Shards(a), Source::Shards(b)) => Pair::walk(a, b, |_| Ok(()))?,
        (Source::Redis(a), Source::Redis(b)) if a.is_set() => {
            return Ok((RedisOperand::count(a, b)?.overlap(), None));
        }
        (Source::Redis(a), Source::Redis(b)) => RedisOperand::walk(a, b, |_, _, _, _| Ok(()))?,
        _ => return Err(operand::unlike(a, b)),
    };
    Ok((totals.overlap(), Some(ones)))
}

/// Caveats of the numbers.
pub(super) fn caveats(a: &Operand, overlap: &Overlap) -> Vec<&'static str> {
    let mut caveats = Vec::new();
    if overlap.is_full {
        caveats.push("a part is so full that little can be said: the sizes are lower bounds");
    }
    if matches!(&a.source, Source::Redis(redis) if redis.is_uneven()) {
        caveats.push(
            "the kind's hashes are not evenly spread: sizes can be wrong by another hundredth \
             beyond the bounds",
        );
    }
    if a.layers().len() > 1 {
        caveats.push(
            "a fingerprint can be in one layer of A and in another of B: what is in both is at \
             least as said, and what is in either at most",
        );
    }
    caveats
}

fn json(a: &Operand, b: &Operand, overlap: &Overlap, ones: Option<Ones>) -> serde_json::Value {
    let side = |side: &Operand, ones: Option<u64>| {
        let forgotten = side.tombstones();
        json!({ "what": side.what, "ones": ones, "forgotten": forgotten })
    };
    json!({
        "a": side(a, ones.map(|ones| ones.a)),
        "b": side(b, ones.map(|ones| ones.b)),
        "ones": ones.map(|ones| json!({
            "union": ones.union, "intersection": ones.intersection(),
        })),
        "made_for": a.spec.fields().into_iter().collect::<BTreeMap<_, _>>(),
        "estimated": overlap,
        "caveats": caveats(a, overlap),
    })
}

fn print(a: &Operand, b: &Operand, overlap: &Overlap, out: &mut impl Write) -> io::Result<()> {
    for (name, side) in [("A", a), ("B", b)] {
        writeln!(out, "{name:<14} {}", printable(side.what.as_bytes(), None))?;
        if side.tombstones() > 0 {
            let forgotten = HumanCount(side.tombstones() as u64);
            writeln!(out, "{:<14} {forgotten} of it are to pass once more", "")?;
        }
    }
    writeln!(out, "{:<14} {}", "kind", a.spec.kind())?;
    for (name, interval) in [
        ("in A", overlap.a),
        ("in B", overlap.b),
        ("in A or B", overlap.union),
        ("in A and B", overlap.intersection),
    ] {
        writeln!(out, "{name:<14} {}", size(interval))?;
    }
    for (name, share) in
        [("of A in B", overlap.a_in_b), ("of B in A", overlap.b_in_a), ("Jaccard", overlap.jaccard)]
    {
        if let Some(share) = share {
            writeln!(out, "{name:<14} {}", self::share(share))?;
        }
    }
    caveats(a, overlap).iter().try_for_each(|caveat| writeln!(out, "{:<14} {caveat}", "note"))
}

/// A number of fingerprints, with its bounds.
pub(super) fn size(Interval { value, low, high }: Interval) -> String {
    // Not negative, and far below 2^64.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let [value, low, high] = [value, low, high].map(|number| HumanCount(number as u64).to_string());
    if low == high {
        return format!("{value:>15}   exactly");
    }
    format!("{value:>15}   {low} to {high}")
}

fn share(Interval { value, low, high }: Interval) -> String {
    let [value, low, high] = [value, low, high].map(|share| format!("{:.2} %", 100.0 * share));
    if low == high {
        return format!("{value:>15}");
    }
    format!("{value:>15}   {low} to {high}")
}
