//! `urlseen compare`: counts the fingerprints that two filters have in common.

use std::io::Write;

use indicatif::HumanCount;
use urlseen_analysis::{Overlap, Totals};
use urlseen_core::filter::{FilterKind, SHARDS, ShardId};

use super::Outcome;
use super::bar::Bar;
use super::operand::{Operand, Part};
use super::rows::{COMPARED, Rows};
use super::settings::Settings;
use super::start::usage;
use crate::admin::printable::stdout;

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
    pub(super) settings: Settings,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
    /// A filter: a storage folder, or URL#KEY in Redis.
    ///
    /// Write a key as the URL of Redis, `#` and the key, as in
    /// `redis://127.0.0.1:6379/0#demo:filter` or `unix:///run/redis.sock#demo:filter`. If urlseen
    /// made the filter in Redis, Redis also holds the parameters of the filter. If another project
    /// made the filter, set its parameters in the configuration. Set the password of Redis in
    /// `URLSEEN_REDIS_PASSWORD`.
    #[arg(value_name = "A")]
    a: String,
    /// Another filter, named in the same way
    #[arg(value_name = "B")]
    b: String,
}

pub(super) fn run(args: &CompareArgs) -> anyhow::Result<Outcome> {
    let [mut a, mut b] = args.open()?;
    args.print(&unite(&mut a, &mut b, |_, _| Ok(()))?)
}

impl CompareArgs {
    /// Opens both filters. Refuses them if their kind cannot be united, or if their bits have
    /// different meanings.
    pub(super) fn open(&self) -> anyhow::Result<[Operand; 2]> {
        let a = Operand::open(&self.a, &self.settings)?;
        let b = Operand::open(&self.b, &self.settings)?;
        let parameters = &a.spec.parameters;
        let is_possible = match parameters.in_redis() {
            Ok(strings) => strings.crowded_bits().is_some(),
            Err(_) => parameters.shards() == SHARDS,
        };
        if !is_possible {
            return Err(usage(format!(
                "A has the kind {}, and can be neither compared nor united: a fingerprint can be \
                 in different layers of two filters. Redis itself counts and unites sets, with \
                 SINTERCARD and SUNIONSTORE",
                parameters.kind()
            )));
        }
        let differences = a.spec.differences(&b.spec).into_iter();
        let lines: Vec<_> = differences
            .map(|it| format!("* {}: {} in A, {} in B", it.what, it.found, it.wanted))
            .collect();
        if !lines.is_empty() {
            return Err(usage(format!(
                "the filters have different settings, so their bits have different meanings:\n{}\n\
                 By default, each filter has its own random seed. To compare filters, make them \
                 with the same filter.seed or --seed",
                lines.join("\n")
            )));
        }
        Ok([a, b])
    }

    /// Prints the numbers as a table or as JSON.
    pub(super) fn print(&self, overlap: &Overlap) -> anyhow::Result<Outcome> {
        let mut out = stdout();
        if self.json {
            writeln!(out, "{}", serde_json::to_string(overlap)?)?;
            return Ok(Outcome::Done);
        }
        let mut rows = Rows::new(out, COMPARED);
        for (name, number) in [
            ("in A", overlap.a),
            ("in B", overlap.b),
            ("in A or B", overlap.union),
            ("in A and B", overlap.intersection),
        ] {
            rows.row(name, format_args!("{:>15}", HumanCount(number).to_string()))?;
        }
        match overlap.error {
            0.0 => rows.row("error", "none: the numbers are exact")?,
            error if error.is_infinite() => {
                rows.row("error", "the filters are too full: the numbers are too low")?;
            }
            error => rows.number("error", error, "at most, in 95 of 100 cases")?,
        }
        Ok(Outcome::Done)
    }
}

/// Unites two filters part by part, and counts their fingerprints. Passes each part of the union to
/// `put`.
pub(super) fn unite(
    a: &mut Operand,
    b: &mut Operand,
    mut put: impl FnMut(u32, Part) -> anyhow::Result<()>,
) -> anyhow::Result<Overlap> {
    let (mut totals, strings) = (Totals::default(), a.spec.parameters.in_redis().ok());
    let parts = match &strings {
        Some(strings) => strings.used(),
        None => ShardId::all().map(ShardId::number).collect(),
    };
    let bar = Bar::counting("parts");
    for (done, &number) in (1..).zip(&parts) {
        let mut part = (a.read)(number)?;
        match (&mut part, &(b.read)(number)?, &strings) {
            (Part::Keys(a), Part::Keys(b), _) => {
                let count = |filter: &dyn FilterKind| filter.gauge().fill().keys;
                let [in_a, in_b] = [count(&**a), count(&**b)];
                a.unite(&**b).map_err(|error| usage(error.to_string()))?;
                totals.add([in_a, in_b, count(&**a)]);
            }
            (Part::Bits(a), Part::Bits(b), Some(strings)) => totals.unite(&**strings, number, a, b),
            _ => unreachable!("filters of one kind have the same parts"),
        }
        put(number, part)?;
        bar.show(done, parts.len() as u64);
    }
    Ok(totals.overlap(strings.as_deref()))
}
