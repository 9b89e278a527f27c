//! `urlseen compare`: estimates the overlap of two filters.

use std::collections::BTreeMap;
use std::io::{self, Write};

use crate::admin::printable::{json_text, stdout};
use indicatif::HumanCount;
use serde_json::json;
use urlseen_analysis::{Interval, Ones, Overlap};

use super::Outcome;
use super::operand::{self, Counted, Operand, Pair, RedisOperand, Source};
use super::rows::{COMPARED, Rows};
use super::settings::Settings;

/// Estimate how many fingerprints are in each of two filters, in their union, and in their
/// intersection.
///
/// The command computes the estimates from the bits of the filters. The filters must have the same
/// kind, parameters and seed. Otherwise the command prints the differences and fails. The command
/// changes nothing, so it can run while a daemon uses the filters. In 95 of 100 cases, the true
/// number is within the printed bounds. For the kinds two-choice, exact
/// and scrapy-redis, the numbers are exact.
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
    /// A filter: a storage folder, a snapshot, a dump, or URL#KEY in Redis
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
        print(&a, &b, &overlap, out)?;
    }
    Ok(Outcome::Done)
}

/// Returns the overlap of two filters, and for each filter the number of bits that are 1. A set has
/// no bits.
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

/// Returns remarks on the precision of the numbers.
pub(super) fn caveats(a: &Operand, overlap: &Overlap) -> Vec<&'static str> {
    let mut caveats = Vec::new();
    if overlap.is_full {
        caveats.push("a part of a filter is too full for an estimate: the sizes are lower bounds");
    }
    if matches!(&a.source, Source::Redis(redis) if redis.is_uneven()) {
        caveats.push(
            "the hashes of this kind are not evenly spread: a true size can be up to 1 % outside \
             its bounds",
        );
    }
    if a.layers().len() > 1 {
        caveats.push(
            "a fingerprint can be in one layer of A and in another layer of B: the number in A \
             and B is a minimum, and the number in A or B is a maximum",
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

fn print(a: &Operand, b: &Operand, overlap: &Overlap, out: impl Write) -> io::Result<()> {
    let mut rows = Rows::new(out, COMPARED);
    for (name, side) in [("A", a), ("B", b)] {
        rows.row(name, &side.what)?;
        if side.tombstones() > 0 {
            let forgotten = HumanCount(side.tombstones() as u64);
            rows.row("", format!("{forgotten} of its fingerprints were forgotten and pass again"))?;
        }
    }
    rows.row("kind", a.spec.kind())?;
    for (name, interval) in [
        ("in A", overlap.a),
        ("in B", overlap.b),
        ("in A or B", overlap.union),
        ("in A and B", overlap.intersection),
    ] {
        rows.row(name, size(interval))?;
    }
    for (name, share) in
        [("of A in B", overlap.a_in_b), ("of B in A", overlap.b_in_a), ("Jaccard", overlap.jaccard)]
    {
        if let Some(share) = share {
            rows.row(name, bounded(share, |share| format!("{:.2} %", 100.0 * share), ""))?;
        }
    }
    caveats(a, overlap).iter().try_for_each(|caveat| rows.row("note", caveat))
}

/// Formats a number of fingerprints, with its bounds.
pub(super) fn size(interval: Interval) -> String {
    // The number is not negative, and far below 2^64.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    bounded(interval, |number| HumanCount(number as u64).to_string(), "   exactly")
}

/// Formats a value with its bounds, or with `exactly` if the bounds are equal.
fn bounded(interval: Interval, format: impl Fn(f64) -> String, exactly: &str) -> String {
    let Interval { value, low, high } = interval;
    let [value, low, high] = [value, low, high].map(format);
    let bounds = if low == high { exactly.to_owned() } else { format!("   {low} to {high}") };
    format!("{value:>15}{bounds}")
}
