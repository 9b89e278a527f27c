//! Fault injection: random kills, cut connections and rollbacks while urlseen works. At the end,
//! the program compares the content of Redis with the expected content. `scripts/chaos --help`
//! explains the options.

mod broken;
mod campaign;
mod daemon;
mod disk;
mod facts;
mod feeder;
mod items;
mod oracle;
mod plan;
mod process;
mod proxy;
mod round;
mod scenario;
mod server;
mod servers;
mod spiders;
mod storage;
mod strike;
mod tally;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Parser;

use broken::Choice;
use campaign::{Campaign, Needs};
use daemon::FilterPlace;
use plan::{Kind, Scenario};
use servers::Servers;

/// Counts that a long run must reach to pass.
const LONG: Needs = Needs {
    daemon_kills: 300,
    growing_snapshots: 20,
    redis_kills: 60,
    rollbacks: 60,
    cuts: 300,
    items: 5_000_000,
};

/// Counts that a short run must reach to pass.
const SHORT: Needs = Needs {
    daemon_kills: 80,
    growing_snapshots: 5,
    redis_kills: 25,
    rollbacks: 20,
    cuts: 25,
    items: 300_000,
};

/// Counts that a long run with a group of servers must reach to pass.
const GROUP: Needs = Needs { daemon_kills: 60, redis_kills: 15, items: 300_000, ..Needs::NONE };

/// Counts that a short run with a group of servers must reach to pass: one round does.
const SHORT_GROUP: Needs = Needs { daemon_kills: 1, redis_kills: 1, items: 5_000, ..Needs::NONE };

/// Seed of the short run. Its first rounds cover all scenarios.
const SHORT_SEED: u64 = 20_260_321;

/// Kills urlseen and Redis, cuts connections and rolls data back while urlseen works. Checks that
/// no item is lost or repeated.
///
/// Rounds continue until enough faults had an effect and enough items were fed. Each round has its
/// own Redis server and its own crawl. A fault counts only if a batch, a snapshot or a recovery was
/// in progress. The exit status is 0 only if there was no error and the counts were reached.
#[derive(Debug, Parser)]
#[command(name = "scripts/chaos")]
struct Args {
    /// Seed of all random numbers; round R has the seed N + R
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Use a fixed seed, and run for less than two minutes
    #[arg(long, conflicts_with_all = ["rounds", "minutes", "items", "faults", "broken"])]
    short: bool,
    /// Exact number of rounds, regardless of the counts
    #[arg(long, value_name = "R")]
    rounds: Option<u64>,
    /// Start no new round after this number of minutes
    #[arg(long, value_name = "M", default_value_t = 30)]
    minutes: u64,
    /// Minimum number of items to feed
    #[arg(long, value_name = "N", default_value_t = LONG.items)]
    items: u64,
    /// Number of faults in a round
    #[arg(long, value_name = "N", default_value_t = 40)]
    steps: usize,
    /// Inject only these kinds of faults
    #[arg(long, value_name = "KIND", value_delimiter = ',')]
    faults: Vec<Kind>,
    /// Run only this scenario
    #[arg(long, value_name = "NAME")]
    scenario: Option<Scenario>,
    /// Place where the filter is
    #[arg(long, value_name = "PLACE", default_value = "local")]
    #[arg(conflicts_with_all = ["scenario", "broken"])]
    place: FilterPlace,
    /// Redis servers of the crawl
    #[arg(long, value_name = "KIND", default_value = "single")]
    #[arg(conflicts_with_all = ["steps", "faults", "scenario", "place", "broken", "items"])]
    servers: Servers,
    /// Path of the program to test
    #[arg(long, value_name = "FILE")]
    program: PathBuf,
    /// Build urlseen with this fault, or with each fault for `all`, and check that the oracle
    /// detects it
    #[arg(long, value_name = "NAME", value_parser = Choice::parse)]
    broken: Option<Choice>,
    /// Keep the folders of rounds with an error
    #[arg(long)]
    keep: bool,
    #[command(flatten)]
    spiders: spiders::Options,
}

fn main() -> Result<ExitCode> {
    let args = Args::parse();
    disk::enter_namespace()?;
    if let Some(code) = args.spiders.run(&spiders::Campaign {
        program: args.program.canonicalize().context("the program to test")?,
        seed: if args.short { SHORT_SEED } else { args.seed.unwrap_or_else(|| fastrand::u64(..)) },
        rounds: args.rounds,
        time: Duration::from_mins(args.minutes),
        is_short: args.short,
        keep: args.keep,
    })? {
        return Ok(code);
    }
    let is_free = args.scenario.is_some() || !args.faults.is_empty();
    let is_group = args.servers != Servers::Single;
    let mut needs = match (args.short, is_free) {
        (true, _) if is_group => SHORT_GROUP,
        (false, _) if is_group => GROUP,
        (true, _) => SHORT,
        (false, true) => Needs { items: args.items, ..Needs::NONE },
        (false, false) => Needs { items: args.items, ..LONG },
    };
    if args.place == FilterPlace::Redis {
        // No filter in Redis grows or has snapshots.
        needs.growing_snapshots = 0;
    }
    let campaign = Campaign {
        program: args.program.canonicalize().context("the program to test")?,
        seed: if args.short { SHORT_SEED } else { args.seed.unwrap_or_else(|| fastrand::u64(..)) },
        rounds: args.rounds,
        time: Duration::from_mins(args.minutes),
        needs,
        scenario: args.scenario,
        steps: args.steps,
        faults: args.faults,
        place: args.place,
        servers: args.servers,
        keep: args.keep,
    };
    let passes = match args.broken {
        Some(Choice(broken)) => campaign.run_broken(&broken)?,
        None => campaign.run(),
    };
    Ok(if passes { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
