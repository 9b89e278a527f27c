//! `urlseen plan`: computes the memory of a filter, and the machines and programs that a crawl
//! needs.

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;

use std::io::{self, Write};
use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde::Serialize;

use urlseen_analysis::{
    Amount, Bytes, Figures, FitQuestion, Fits, Machine, Needs, PlanError, PlannedCrawl, Plot,
    Share, Steady, Target, Traffic, TrafficItem, error_rate_plot, grouped,
};
use urlseen_core::filter::expire_after::ExpireAfter;
use urlseen_core::filter::{Capacity, ErrorRate, SpecError};
use urlseen_core::fingerprint::PartitionCount;

use super::Outcome;
use super::start::usage;

/// Defaults of the options.
const CAPACITY: u64 = 10_000_000;
const ERROR_RATE: f64 = 1e-6;

/// Show the memory and error rate of each kind of filter, before a crawl.
///
/// For each kind, the command prints the bits, the hashes, the memory, the error rate beyond the
/// capacity, and the number of URLs that the whole crawl loses. A URL is lost if it is unseen and
/// the filter reports it as seen. With --lost, the command chooses the error rates. With --fits, it
/// prints the capacity or the error rate that a given memory permits. With --rate, it prints the
/// numbers of machines, partitions, Redis primaries, processes and routers that a crawl needs,
/// their load, and the resource with the least reserve. It also prints the largest crawls that 1,
/// 4, 16 and 64 machines carry. With --expire-after and --unseen-per-day, it prints the memory of
/// a filter of the kind two-choice or exact whose fingerprints expire.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = "\
Examples:
  urlseen plan --capacity 1e8 --error-rate 1e-8  # memory for 100 million URLs
  urlseen plan --capacity 1e9 --lost 0.1         # the whole crawl loses at most 0.1 URLs")]
pub(super) struct Plan {
    /// Number of URLs of the crawl, such as 1e9, `100_000_000` or 10M. Default: 10M
    #[arg(long, value_name = "N")]
    capacity: Option<Capacity>,
    /// Share of unseen URLs that a filter at its capacity may report as seen, from 1e-12 to 0.1.
    /// Default: 1e-6
    #[arg(long, value_name = "P")]
    error_rate: Option<ErrorRate>,
    /// Largest expected number of URLs that the whole crawl loses, such as 0.1. The command chooses
    /// the error rate of each kind
    #[arg(long, value_name = "URLS", conflicts_with_all = ["error_rate", "fits", "plot"])]
    lost: Option<Amount>,
    /// Memory for the filter, such as 8GiB, 512MiB or 2GB. With --capacity, the command prints the
    /// error rate for that number of URLs. Otherwise it prints the number of URLs that fit at
    /// --error-rate
    #[arg(long, value_name = "SIZE", conflicts_with_all = ["rate", "plot"])]
    fits: Option<Bytes>,
    /// Number of discovered items a second, seen and unseen, such as 100k
    #[arg(long, value_name = "ITEMS")]
    rate: Option<Amount>,
    /// Form of an item. `url` is a URL. `tab` is a fingerprint, a tab and a payload
    #[arg(long, requires = "rate", default_value = "url", value_parser = parse_item())]
    item: TrafficItem,
    /// Mean size of an item, in bytes
    #[arg(long, requires = "rate", value_name = "N", default_value = "100")]
    item_bytes: Amount,
    /// Share of unseen items among all items, from 0 to 1
    #[arg(long, requires = "rate", value_name = "SHARE", default_value = "0.1")]
    unseen: Share,
    /// Number of partitions, a power of two up to 256. Default: the smallest that suffices
    #[arg(long, requires = "rate", value_name = "N")]
    partitions: Option<PartitionCount>,
    /// Share of items that producers push to a list for `urlseen route`, from 0 to 1
    #[arg(long, requires = "rate", value_name = "SHARE", default_value = "0")]
    routed: Share,
    /// Number of unseen items that wait for crawlers
    #[arg(long, requires = "rate", value_name = "N", default_value = "10M")]
    waiting: Amount,
    /// Number of cores of a machine
    #[arg(long, requires = "rate", value_name = "N", default_value = "32")]
    cores: Amount,
    /// Memory of a machine, in GiB
    #[arg(long, requires = "rate", value_name = "GIB", default_value = "256")]
    memory: Amount,
    /// Network bandwidth of a machine in each direction, in Gbit/s
    #[arg(long, requires = "rate", value_name = "GBIT", default_value = "10")]
    network: Amount,
    /// Time after which fingerprints expire (`filter.expire_after`), such as 30d. With
    /// --unseen-per-day, the command prints the memory of such a filter, which stays the same
    /// after the first generations
    #[arg(
        long, value_name = "TIME", requires = "unseen_per_day",
        conflicts_with_all = ["capacity", "lost", "fits", "rate", "plot"],
    )]
    expire_after: Option<ExpireAfter>,
    /// Number of unseen URLs a day, with those that pass again, such as 5M
    #[arg(long, value_name = "URLS", requires = "expire_after")]
    unseen_per_day: Option<Amount>,
    /// Print JSON instead of tables
    #[arg(long)]
    json: bool,
    /// Write an SVG file that shows the error rate of each kind at 10 % to 300 % of its capacity
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
}

fn parse_item() -> impl TypedValueParser<Value = TrafficItem> {
    PossibleValuesParser::new(["url", "tab"])
        .map(|word| if word == "tab" { TrafficItem::Tab } else { TrafficItem::Url })
}

/// Results of the command, as `--json` prints them.
#[derive(Debug, Serialize)]
struct Whole {
    #[serde(flatten)]
    figures: Figures,
    #[serde(skip_serializing_if = "Option::is_none")]
    needs: Option<Needs>,
}

pub(super) fn run(plan: &Plan) -> anyhow::Result<Outcome> {
    if let (Some(_), Some(_), Some(_)) = (plan.fits, plan.capacity, plan.error_rate) {
        let words = "--fits, --capacity and --error-rate leave nothing to compute: leave out \
                     --capacity or --error-rate";
        return Err(usage(words));
    }
    if let Some(path) = &plan.plot {
        Plot::write(&[error_rate_plot(plan.capacity(), plan.error_rate())], path)?;
    }
    print(plan, &mut io::stdout().lock())?;
    Ok(Outcome::Done)
}

/// Prints the tables, or JSON.
fn print(plan: &Plan, out: &mut impl Write) -> anyhow::Result<()> {
    if let Some(bytes) = plan.fits {
        let question = plan.question();
        let fits = Fits::of(bytes.get(), question);
        if !plan.json {
            return Ok(fits.print(question, out)?);
        }
        serde_json::to_writer_pretty(&mut *out, &fits)?;
        return Ok(writeln!(out)?);
    }
    if let Some((expire_after, unseen_per_day)) = plan.expire_after.zip(plan.unseen_per_day) {
        let steady = Steady::of(expire_after, unseen_per_day, plan.error_rate())?;
        if !plan.json {
            return Ok(steady.print(out)?);
        }
        serde_json::to_writer_pretty(&mut *out, &steady)?;
        return Ok(writeln!(out)?);
    }
    let capacity = plan.capacity();
    let figures = Figures::of(capacity, plan.target()).map_err(|error| match error {
        error @ PlanError::Lost { .. } => usage(format!(
            "--lost is too small for the kind native: {error}. Give a larger --lost, or set \
             filter.kind = \"exact\", which loses none"
        )),
        error => error.into(),
    })?;
    let error_rate = figures.error_rate();
    let needs = plan.needs(ErrorRate::new(error_rate)?)?;
    let whole = Whole { figures, needs };
    if plan.json {
        serde_json::to_writer_pretty(&mut *out, &whole)?;
        return Ok(writeln!(out)?);
    }
    let keys = grouped(capacity.get());
    match plan.lost {
        None => writeln!(out, "{keys} keys at error rate {error_rate:e}\n")?,
        Some(most) => writeln!(
            out,
            "{keys} keys, at most {} lost in the whole crawl; native at error rate \
             {error_rate:e}\n",
            most.get()
        )?,
    }
    match &whole.needs {
        Some(needs) => needs.print(out)?,
        None => whole.figures.print(out)?,
    }
    Ok(())
}

impl Plan {
    fn capacity(&self) -> Capacity {
        let otherwise = || Capacity::new(CAPACITY).expect("a valid capacity");
        self.capacity.unwrap_or_else(otherwise)
    }

    fn error_rate(&self) -> ErrorRate {
        self.error_rate.unwrap_or_else(|| ErrorRate::new(ERROR_RATE).expect("a valid error rate"))
    }

    fn target(&self) -> Target {
        self.lost.map_or(Target::ErrorRate(self.error_rate()), Target::Lost)
    }

    /// Returns the question that `--fits` answers. With `--capacity`, the question is the error
    /// rate. Without it, the question is the capacity.
    fn question(&self) -> FitQuestion {
        match self.capacity {
            Some(capacity) => FitQuestion::ErrorRate(capacity),
            None => FitQuestion::Capacity(self.error_rate()),
        }
    }

    /// Computes the machines and programs of the crawl, if --rate is given. Its filters have this
    /// error rate.
    fn needs(&self, error_rate: ErrorRate) -> Result<Option<Needs>, SpecError> {
        let Some(rate) = self.rate else { return Ok(None) };
        let traffic = Traffic {
            rate,
            item: self.item,
            item_bytes: self.item_bytes,
            unseen: self.unseen,
            routed: self.routed,
            waiting: self.waiting,
        };
        let machine =
            Machine { cores: self.cores, memory_gib: self.memory, network_gbit: self.network };
        let crawl = PlannedCrawl {
            capacity: self.capacity(),
            error_rate,
            traffic,
            machine,
            partitions: self.partitions,
        };
        Needs::of(&crawl).map(Some)
    }
}
