//! `urlseen plan`: what a filter of some capacity and error rate takes, and what a crawl of some
//! rate asks of machine, Redis and network, before anything is started.

mod amount;
mod costs;
mod needs;
mod others;
mod sizing;
mod table;
#[cfg(test)]
mod tests;
mod text;

use std::io::{self, Write};

use serde::Serialize;

use urlseen::filter::{Capacity, ErrorRate};

pub(super) use costs::{DAEMON_BYTES, REDIS_SET_BYTES};
pub(super) use others::allocated;
pub(super) use text::{grouped, size};

use super::Outcome;
use amount::{Amount, Share};
use needs::{Form, Machine, Needs, Traffic};
use sizing::Figures;

/// Show what a filter takes: bits, hashes and memory, how the error rate grows past capacity, and
/// what the filters of other projects come to.
/// With --rate, show what machine, Redis and network have to give, and which of them is short first
#[derive(Debug, Clone, clap::Args)]
pub(super) struct Plan {
    /// URLs that the crawl will see, as 1e9, `100_000_000` or 10M
    #[arg(long, value_name = "N", default_value = "10M")]
    capacity: Capacity,
    /// Share of unseen URLs that may be taken for seen at capacity: 1e-12 to 0.1
    #[arg(long, value_name = "P", default_value = "1e-6")]
    error_rate: ErrorRate,
    /// Items a second that the crawl discovers, seen ones too
    #[arg(long, value_name = "ITEMS")]
    rate: Option<Amount>,
    /// What an item is: url (its fingerprint is computed), or tab (it brings one)
    #[arg(long, requires = "rate", default_value = "url")]
    item: Form,
    /// Bytes of an item
    #[arg(long, requires = "rate", value_name = "N", default_value = "100")]
    item_bytes: Amount,
    /// Share of items that are unseen, 0 to 1
    #[arg(long, requires = "rate", value_name = "SHARE", default_value = "0.1")]
    unseen: Share,
    /// Unseen items that wait for crawlers
    #[arg(long, requires = "rate", value_name = "N", default_value = "10M")]
    waiting: Amount,
    /// Cores of a machine
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
    print(plan, &mut io::stdout().lock())?;
    Ok(Outcome::Done)
}

/// Prints the tables, or JSON.
fn print(plan: &Plan, out: &mut impl Write) -> io::Result<()> {
    let whole = Whole { figures: Figures::of(plan.capacity, plan.error_rate), needs: plan.needs() };
    if plan.json {
        serde_json::to_writer_pretty(&mut *out, &whole)?;
        return writeln!(out);
    }
    writeln!(out, "{} keys at error rate {}\n", grouped(plan.capacity.get()), plan.error_rate)?;
    match &whole.needs {
        Some(needs) => needs.print(out),
        None => whole.figures.print(out),
    }
}

impl Plan {
    /// What the traffic asks for, if there is any.
    fn needs(&self) -> Option<Needs> {
        let traffic = Traffic {
            rate: self.rate?,
            item: self.item,
            item_bytes: self.item_bytes,
            unseen: self.unseen,
            waiting: self.waiting,
        };
        let machine =
            Machine { cores: self.cores, memory_gib: self.memory, network_gbit: self.network };
        Some(Needs::of(self.capacity, self.error_rate, traffic, machine))
    }
}
