//! Fault injection: kills, cuts and rolls back what urlseen runs on, at random, and holds what
//! Redis has at the end to what must be there. `scripts/chaos --help` says how to run it.

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
mod state;
mod strike;
mod tally;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::Parser;

use oracle::Wrong;
use plan::{Kind, Plan, Scenario};
use round::{Outcome, Round, daemon_log};
use tally::Tally;

/// What a long run must have counted before it may pass.
const LONG: Needs =
    Needs { daemon_kills: 300, redis_kills: 60, rollbacks: 60, cuts: 300, items: 5_000_000 };

/// What a short run must have.
const SHORT: Needs =
    Needs { daemon_kills: 15, redis_kills: 6, rollbacks: 2, cuts: 10, items: 100_000 };

/// The seed of the short run.
const SHORT_SEED: u64 = 20_260_101;

/// Kills, cuts and rolls back what urlseen runs on while it works, and checks that no item is lost
/// and none repeated.
///
/// Rounds go on until enough faults struck and enough items were fed, each with a Redis server and
/// a crawl of its own. A fault counts only if a batch, a snapshot or a recovery was in progress.
/// The exit status is 0 only if nothing was wrong and enough was counted.
#[derive(Debug, Parser)]
#[command(name = "scripts/chaos")]
struct Args {
    /// The number that everything is drawn from; round R has the seed N + R
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// A fixed seed and under two minutes
    #[arg(long, conflicts_with_all = ["rounds", "minutes", "items", "faults"])]
    short: bool,
    /// Exactly so many rounds, whatever they count
    #[arg(long, value_name = "R")]
    rounds: Option<u64>,
    /// No new round after so many minutes
    #[arg(long, value_name = "M", default_value_t = 30)]
    minutes: u64,
    /// Feed at least so many items
    #[arg(long, value_name = "N", default_value_t = LONG.items)]
    items: u64,
    /// Faults in a round
    #[arg(long, value_name = "N", default_value_t = 40)]
    steps: usize,
    /// These kinds of faults alone
    #[arg(long, value_name = "KIND", value_delimiter = ',')]
    faults: Vec<Kind>,
    /// This scenario alone
    #[arg(long, value_name = "NAME")]
    scenario: Option<Scenario>,
    /// The urlseen that is tested
    #[arg(long, value_name = "FILE")]
    program: PathBuf,
    /// Keep the folders of rounds in which something is wrong
    #[arg(long)]
    keep: bool,
}

/// What a run must have counted.
#[derive(Debug, Clone, Copy)]
struct Needs {
    daemon_kills: u64,
    redis_kills: u64,
    rollbacks: u64,
    cuts: u64,
    items: u64,
}

impl Needs {
    fn met_by(&self, tally: &Tally) -> bool {
        tally.daemon_kills >= self.daemon_kills
            && tally.redis_kills >= self.redis_kills
            && tally.rollbacks >= self.rollbacks
            && tally.cuts >= self.cuts
            && tally.items >= self.items
    }
}

fn main() -> Result<ExitCode> {
    let args = Args::parse();
    disk::enter_namespace()?;
    let started = Instant::now();
    let seed = if args.short { SHORT_SEED } else { args.seed.unwrap_or_else(|| fastrand::u64(..)) };
    let needs = if args.short { SHORT } else { Needs { items: args.items, ..LONG } };
    let is_free = args.rounds.is_some() || !args.faults.is_empty();
    println!("seed {seed}");
    let program = args.program.canonicalize().context("the program to test")?;
    let mut total = Tally::default();
    let mut wrongs = [0; Wrong::ALL.len()];
    let mut unclean = 0;
    for round in 0.. {
        let is_enough = match args.rounds {
            Some(rounds) => round >= rounds,
            None => needs.met_by(&total),
        };
        if is_enough || started.elapsed() > Duration::from_mins(args.minutes) {
            break;
        }
        let seed = seed.wrapping_add(round);
        let plan = Plan::draw(seed, args.scenario, args.steps, &args.faults);
        match run(&plan, &program, args.keep) {
            Ok(outcome) => {
                unclean += u64::from(!outcome.is_clean());
                total += &outcome.tally;
                for (sum, wrong) in wrongs.iter_mut().zip(Wrong::ALL) {
                    *sum += outcome.verdict.count(wrong);
                }
            }
            Err(error) => {
                unclean += 1;
                println!("  failed: {error:#}");
            }
        }
    }
    println!("\n{total}");
    let sums = Wrong::ALL.iter().zip(wrongs).map(|(wrong, sum)| format!("{sum} {}", wrong.name()));
    println!("{}", sums.collect::<Vec<_>>().join(", "));
    println!("{unclean} rounds with something wrong; {} s", started.elapsed().as_secs());
    let is_enough = is_free || needs.met_by(&total);
    if !is_enough {
        println!("not enough for a verdict: {needs:?}");
    }
    let passes = unclean == 0 && is_enough;
    println!("{} (seed {seed})", if passes { "passed" } else { "FAILED" });
    Ok(if passes { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs one round in a folder of its own.
fn run(plan: &Plan, program: &Path, keep: bool) -> Result<Outcome> {
    let started = Instant::now();
    let mut folder = tempfile::Builder::new().prefix("urlseen-chaos-").tempdir()?;
    let result = Round::run(plan, program, folder.path());
    let Plan { seed, scenario, persistence, settings, new_percent, .. } = plan;
    print!(
        "round of seed {seed}: {scenario:?}, {persistence:?}, batch {}, {new_percent} % new, fsync {}: ",
        settings.batch, settings.fsync
    );
    match &result {
        Ok(outcome) => {
            let Outcome { verdict, stops, tally } = outcome;
            let word = if outcome.is_clean() { "right" } else { "WRONG" };
            let seconds = started.elapsed().as_secs_f64();
            println!(
                "{} items, {} faults counted, {seconds:.1} s, {word}",
                tally.items,
                tally.counted()
            );
            print!("{verdict}");
            for stop in stops {
                println!("  stopped: {stop}");
            }
        }
        Err(_) => println!("WRONG"),
    }
    let is_clean = result.as_ref().is_ok_and(Outcome::is_clean);
    if !is_clean {
        println!("  again: scripts/chaos --seed {seed} --rounds 1");
        if keep {
            folder.disable_cleanup(true);
            println!("  kept: {}", daemon_log(folder.path()).display());
        }
    }
    result
}
