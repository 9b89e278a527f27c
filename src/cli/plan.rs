//! `urlseen plan`: what a filter of some capacity and error rate takes, and what a crawl of some
//! rate asks of machine, Redis and network, before anything is started.

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;

use std::io::{self, Write};
use std::path::PathBuf;

use serde::Serialize;

use urlseen_analysis::{
    Amount, Bytes, Figures, FitQuestion, Fits, Machine, Needs, Share, Traffic, TrafficItem,
    error_rate_plot, grouped,
};
use urlseen_core::filter::{Capacity, ErrorRate, SpecError};

use super::Outcome;
use super::start::UsageError;

/// Defaults of what is planned for.
const CAPACITY: u64 = 10_000_000;
const ERROR_RATE: f64 = 1e-6;

/// Show what a filter takes, by kind: bits, hashes and memory, and how the error rate grows past
/// capacity.
/// With --fits, show what fits into some memory: with --error-rate how many URLs, with --capacity
/// at what error rate.
/// With --rate, show what machine, Redis and network have to give, and which of them is short first
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = "\
Examples:
  urlseen plan --capacity 1e8 --error-rate 1e-8  # memory for 100 million URLs
  urlseen plan --capacity 1e9 --rate 100k        # for this pace")]
pub(super) struct Plan {
    /// URLs that the crawl will see, as 1e9, `100_000_000` or 10M; 10M if this is not given
    #[arg(long, value_name = "N")]
    capacity: Option<Capacity>,
    /// Share of unseen URLs that may be taken for seen at capacity: 1e-12 to 0.1; 1e-6 if this is
    /// not given
    #[arg(long, value_name = "P")]
    error_rate: Option<ErrorRate>,
    /// Memory that there is for the filter, as 8GiB, 512MiB or 2GB: show what fits, how many URLs
    /// at --error-rate, or at what error rate so many as --capacity says
    #[arg(long, value_name = "SIZE", conflicts_with_all = ["rate", "plot"])]
    fits: Option<Bytes>,
    /// Items a second that the crawl discovers, seen ones too
    #[arg(long, value_name = "ITEMS")]
    rate: Option<Amount>,
    /// Form of an item: url (its fingerprint is computed), or tab (it brings one)
    #[arg(long, requires = "rate", default_value = "url")]
    item: ItemArg,
    /// Mean number of bytes of an item
    #[arg(long, requires = "rate", value_name = "N", default_value = "100")]
    item_bytes: Amount,
    /// Share of items that are unseen, 0 to 1
    #[arg(long, requires = "rate", value_name = "SHARE", default_value = "0.1")]
    unseen: Share,
    /// Unseen items that wait for crawlers
    #[arg(long, requires = "rate", value_name = "N", default_value = "10M")]
    waiting: Amount,
    /// Number of cores of a machine
    #[arg(long, requires = "rate", value_name = "N", default_value = "32")]
    cores: Amount,
    /// Memory of a machine, in GiB
    #[arg(long, requires = "rate", value_name = "GIB", default_value = "256")]
    memory: Amount,
    /// Network of a machine, in Gbit/s each way
    #[arg(long, requires = "rate", value_name = "GBIT", default_value = "10")]
    network: Amount,
    /// Print JSON instead of tables
    #[arg(long)]
    json: bool,
    /// Draw the error rates of all kinds from 10 to 300 % of capacity, as an SVG file
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
}

/// Form of an item, by its word on the command line.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum ItemArg {
    /// A URL: its fingerprint is computed
    Url,
    /// A fingerprint, a tab and a payload
    Tab,
}

impl From<ItemArg> for TrafficItem {
    fn from(item: ItemArg) -> Self {
        match item {
            ItemArg::Url => Self::Url,
            ItemArg::Tab => Self::Tab,
        }
    }
}

/// All that is printed, computed.
#[derive(Debug, Serialize)]
struct Whole {
    #[serde(flatten)]
    figures: Figures,
    #[serde(skip_serializing_if = "Option::is_none")]
    needs: Option<Needs>,
}

pub(super) fn run(plan: &Plan) -> anyhow::Result<Outcome> {
    if let (Some(_), Some(_), Some(_)) = (plan.fits, plan.capacity, plan.error_rate) {
        let words = "--fits, --capacity and --error-rate leave nothing to be found: leave out what \
                     is to be, --capacity or --error-rate";
        return Err(UsageError(words.to_owned()).into());
    }
    if let Some(path) = &plan.plot {
        error_rate_plot(plan.capacity(), plan.error_rate()).write(path)?;
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
    let (capacity, error_rate) = (plan.capacity(), plan.error_rate());
    let whole = Whole { figures: Figures::of(capacity, error_rate)?, needs: plan.needs()? };
    if plan.json {
        serde_json::to_writer_pretty(&mut *out, &whole)?;
        return Ok(writeln!(out)?);
    }
    writeln!(out, "{} keys at error rate {error_rate}\n", grouped(capacity.get()))?;
    match &whole.needs {
        Some(needs) => needs.print(out)?,
        None => whole.figures.print(out)?,
    }
    Ok(())
}

impl Plan {
    fn capacity(&self) -> Capacity {
        let otherwise = || Capacity::new(CAPACITY).expect("a number of keys");
        self.capacity.unwrap_or_else(otherwise)
    }

    fn error_rate(&self) -> ErrorRate {
        self.error_rate.unwrap_or_else(|| ErrorRate::new(ERROR_RATE).expect("an error rate"))
    }

    /// Question about the memory: the number that is not given.
    fn question(&self) -> FitQuestion {
        match self.capacity {
            Some(capacity) => FitQuestion::ErrorRate(capacity),
            None => FitQuestion::Capacity(self.error_rate()),
        }
    }

    /// Needs of the traffic, if there is any.
    fn needs(&self) -> Result<Option<Needs>, SpecError> {
        let Some(rate) = self.rate else { return Ok(None) };
        let traffic = Traffic {
            rate,
            item: self.item.into(),
            item_bytes: self.item_bytes,
            unseen: self.unseen,
            waiting: self.waiting,
        };
        let machine =
            Machine { cores: self.cores, memory_gib: self.memory, network_gbit: self.network };
        Needs::of(self.capacity(), self.error_rate(), traffic, machine).map(Some)
    }
}
