//! `urlseen compare`: counts the fingerprints that two filters have in common.

use std::collections::BTreeMap;
use std::io::{self, Write};

use crate::admin::printable::{json_text, stdout};
use indicatif::HumanCount;
use serde_json::json;
use urlseen_analysis::Overlap;

use super::Outcome;
use super::operand::{self, Operand, Pair, RedisOperand, Source};
use super::rows::{COMPARED, Rows};
use super::settings::Settings;

/// Count the fingerprints in each of two filters, in their union, and in their intersection.
///
/// The filters must have the same kind, parameters and seed. Otherwise the command prints the
/// differences and fails. The command changes nothing, so it can run while a daemon uses the
/// filters. For the kinds two-choice, exact and scrapy-redis, the numbers are exact. For other
/// kinds they are computed from the bits, with an error that the command prints.
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
    /// A filter: a storage folder, a snapshot, or URL#KEY in Redis
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
    let overlap = count(&mut a, &mut b)?;
    let mut out = stdout();
    if args.json {
        let json = serde_json::to_string_pretty(&json(&a, &b, &overlap))?;
        writeln!(out, "{}", json_text(&json))?;
    } else {
        print(&a, &b, &overlap, out)?;
    }
    Ok(Outcome::Done)
}

/// Counts the fingerprints of two filters.
fn count(a: &mut Operand, b: &mut Operand) -> anyhow::Result<Overlap> {
    let totals = match (&mut a.source, &mut b.source) {
        (Source::Shards(a), Source::Shards(b)) => Pair::walk(a, b, |_| Ok(()))?,
        (Source::Redis(a), Source::Redis(b)) if a.is_set() => RedisOperand::count(a, b)?,
        (Source::Redis(a), Source::Redis(b)) => RedisOperand::walk(a, b, |_, _, _, _| Ok(()))?,
        _ => return Err(operand::unlike(a, b)),
    };
    Ok(totals.overlap())
}

/// Returns the share of the fingerprints of a filter that are in both; `None` if it has none.
fn share(overlap: &Overlap, of: f64) -> Option<f64> {
    (of > 0.0).then_some(overlap.intersection / of)
}

fn json(a: &Operand, b: &Operand, overlap: &Overlap) -> serde_json::Value {
    let side = |side: &Operand, all: f64| {
        let (forgotten, in_other) = (side.tombstones(), share(overlap, all));
        json!({ "what": side.what, "forgotten": forgotten, "in_other": in_other })
    };
    json!({
        "a": side(a, overlap.a),
        "b": side(b, overlap.b),
        "made_for": a.spec.fields().into_iter().collect::<BTreeMap<_, _>>(),
        "fingerprints": overlap,
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
    for (name, number) in [
        ("in A", overlap.a),
        ("in B", overlap.b),
        ("in A or B", overlap.union),
        ("in A and B", overlap.intersection),
    ] {
        rows.row(name, size(number))?;
    }
    for (name, of) in [("of A in B", overlap.a), ("of B in A", overlap.b)] {
        if let Some(share) = share(overlap, of) {
            rows.row(name, format!("{:>13.2} %", 100.0 * share))?;
        }
    }
    rows.row("error", error(overlap))
}

/// Formats a number of fingerprints.
pub(super) fn size(number: f64) -> String {
    // The number is not negative, and far below 2^64.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let number = HumanCount(number as u64).to_string();
    format!("{number:>15}")
}

/// Says how exact the numbers of fingerprints are.
pub(super) fn error(overlap: &Overlap) -> String {
    if overlap.is_full {
        "the filters are too full: the numbers are too low".to_owned()
    } else if overlap.error > 0.0 {
        format!("{}   at most, in 95 of 100 cases", size(overlap.error))
    } else {
        "none: the numbers are exact".to_owned()
    }
}
