//! `urlseen compare`: counts the fingerprints that two filters have in common.

use std::collections::BTreeMap;
use std::io::{self, Write};

use crate::admin::printable::{json_text, stdout};
use indicatif::HumanCount;
use serde_json::json;
use urlseen_analysis::{Ones, Overlap, Totals};
use urlseen_core::filter::{Cells, FilterKind, Verdict};

use super::Outcome;
use super::bar::Bar;
use super::operand::{Operand, Part, PartId};
use super::rows::{COMPARED, Rows};
use super::settings::Settings;

/// Count the fingerprints in each of two filters, in their union, and in their intersection.
///
/// The filters must have the same kind, parameters and seed. Otherwise the command prints the
/// differences and fails. The command changes nothing, so it can run while a daemon uses the
/// filters. For the kinds two-choice and exact, the numbers are exact. For other kinds they are
/// computed from the bits, with an error that the command prints.
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
    a.check(&b)?;
    let overlap = count(&mut a, &mut b, |_, _, _| Ok(()))?;
    let mut out = stdout();
    if args.json {
        let json = serde_json::to_string_pretty(&json(&a, &b, &overlap))?;
        writeln!(out, "{}", json_text(&json))?;
    } else {
        print(&a, &b, &overlap, out)?;
    }
    Ok(Outcome::Done)
}

/// Counts the fingerprints of two filters. Passes each part of both to `visit`.
pub(super) fn count(
    a: &mut Operand,
    b: &mut Operand,
    mut visit: impl FnMut(PartId, Part, Part) -> anyhow::Result<()>,
) -> anyhow::Result<Overlap> {
    let (mut totals, mut strings) = (Totals::default(), BTreeMap::new());
    let bar = Bar::counting("parts");
    // Beside a folder, the part of a filter in Redis has its own length.
    let parts: Vec<_> = a.parts.iter().copied().zip(b.parts.iter().copied()).collect();
    for (done, &(part, in_b)) in (1..).zip(&parts) {
        let (of_a, of_b) = ((a.read)(part)?, (b.read)(in_b)?);
        match (&of_a, &of_b) {
            (Part::Shard(a), Part::Shard(b)) => add_shard(&mut totals, &**a, &**b),
            (Part::Page(cells, a), Part::Page(_, b)) => {
                let (_, ones): &mut (Cells, Ones) =
                    strings.entry(part.number).or_insert((*cells, Ones::default()));
                // Bytes that the estimate must skip are in the first page of the string.
                let crowded = if part.offset == 0 { cells.crowded_bytes() } else { 0 };
                let from = usize::try_from(crowded)?.min(a.len());
                ones.add(&a[from..], &b[from..]);
            }
            _ => unreachable!("filters of one kind have the same parts"),
        }
        visit(part, of_a, of_b)?;
        bar.show(done, parts.len() as u64);
    }
    for (cells, ones) in strings.into_values() {
        totals.add(&cells, ones);
    }
    Ok(totals.overlap())
}

/// Adds the numbers of keys of a shard. They are exact for a kind that stores keys, and else
/// estimated from the bits.
fn add_shard(totals: &mut Totals, a: &dyn FilterKind, b: &dyn FilterKind) {
    if let (Some(of_a), Some(of_b)) = (a.key_hashes(), b.key_hashes()) {
        let mut verdicts = Vec::new();
        b.test(&of_a, &mut verdicts);
        let common = verdicts.iter().filter(|&&verdict| verdict == Verdict::Seen).count();
        totals.add_exact(of_a.len() as u64, of_b.len() as u64, common as u64);
    }
    let [of_a, of_b] = [a, b].map(|filter| filter.bits().unwrap_or_default());
    for (of_a, of_b) in of_a.iter().zip(of_b) {
        let mut ones = Ones::default();
        ones.add(of_a.bytes, of_b.bytes);
        totals.add(&of_a.cells, ones);
    }
}

/// Returns the share of the fingerprints of a filter that are in both; `None` if it has none.
fn share(overlap: &Overlap, of: f64) -> Option<f64> {
    (of > 0.0).then_some(overlap.intersection / of)
}

fn json(a: &Operand, b: &Operand, overlap: &Overlap) -> serde_json::Value {
    let side = |side: &Operand, all: f64| {
        let (forgotten, in_other) = (side.tombstones.len(), share(overlap, all));
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
        if !side.tombstones.is_empty() {
            let forgotten = HumanCount(side.tombstones.len() as u64);
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
