//! Crawls of a generated site with several Scrapy processes that share a crawl through urlseen.
//! SIGKILL hits spiders, the daemon and Redis at random moments, spiders are paused until others
//! take their requests, and connections are cut. In the end, no page is lost with its spider.

mod broken;
mod oracle;
mod plan;
mod round;
mod site;
mod spider;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use oracle::Verdict;
use plan::Plan;
use round::Round;

/// Number of rounds of a short run. They cover both kinds of queues, with and without partitions.
const SHORT_ROUNDS: u64 = 2;

/// Maximum number of rounds in which a broken build must show its fault.
const BROKEN_ROUNDS: u64 = 5;

/// Options of a crawl with spiders.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Crawl a generated site with this number of Scrapy processes, and kill spiders, too
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(2..=16))]
    #[arg(conflicts_with_all = ["items", "steps", "faults", "scenario", "place", "broken"])]
    spiders: Option<u64>,
    /// Break the Python package of the spiders with this patch of `tests/chaos/spiders/broken`, or
    /// with each patch for `all`, and check that the oracle detects it
    #[arg(long, value_name = "NAME", requires = "spiders", conflicts_with = "short")]
    broken_spiders: Option<String>,
}

/// Campaign of crawls, with its program and its limits.
pub(crate) struct Campaign {
    pub(crate) program: PathBuf,
    pub(crate) seed: u64,
    /// Exact number of rounds.
    pub(crate) rounds: Option<u64>,
    /// Time after which no new round starts.
    pub(crate) time: Duration,
    pub(crate) is_short: bool,
    /// True if the folders of rounds with an error are kept.
    pub(crate) keep: bool,
}

impl Options {
    /// Runs a campaign, if the options ask for spiders. Succeeds if it passes.
    pub(crate) fn run(&self, campaign: &Campaign) -> Result<Option<ExitCode>> {
        let Some(count) = self.spiders else { return Ok(None) };
        println!("seed {}", campaign.seed);
        let passes = match &self.broken_spiders {
            Some(name) => campaign.detects(name, count)?,
            None => campaign.passes(count),
        };
        println!("{} (seed {})", if passes { "passed" } else { "FAILED" }, campaign.seed);
        Ok(Some(if passes { ExitCode::SUCCESS } else { ExitCode::FAILURE }))
    }
}

impl Campaign {
    /// Runs rounds with the sound package. Returns true if all of them are right.
    fn passes(&self, spiders: u64) -> bool {
        let started = Instant::now();
        let rounds = self.rounds.or(self.is_short.then_some(SHORT_ROUNDS)).unwrap_or(u64::MAX);
        let mut unclean = 0;
        for round in 0..rounds {
            if started.elapsed() > self.time {
                break;
            }
            let plan = Plan::draw(self.seed.wrapping_add(round), spiders);
            let verdict = self.round(&plan, &package());
            unclean += u64::from(!verdict.is_ok_and(|it| it.is_clean()));
        }
        println!("{unclean} rounds with something wrong, {} s", started.elapsed().as_secs());
        unclean == 0
    }

    /// Breaks the package, and returns true if the oracle detects each of these faults.
    fn detects(&self, name: &str, spiders: u64) -> Result<bool> {
        let mut is_each_seen = true;
        for patch in broken::patches(name)? {
            println!("\n{}", patch.display());
            let folder = tempfile::tempdir()?;
            broken::apply(&patch, &package(), folder.path())?;
            let is_seen = (0..BROKEN_ROUNDS).any(|round| {
                let plan = Plan::draw(self.seed.wrapping_add(round), spiders);
                self.round(&plan, folder.path()).is_ok_and(|verdict| !verdict.is_clean())
            });
            println!("{}", if is_seen { "detected" } else { "NOT DETECTED" });
            is_each_seen &= is_seen;
        }
        Ok(is_each_seen)
    }

    /// Runs one round in its own folder, and prints its verdict.
    fn round(&self, plan: &Plan, package: &Path) -> Result<Verdict> {
        let started = Instant::now();
        let mut folder = tempfile::Builder::new().prefix("urlseen-spiders-").tempdir()?;
        let result = Round::begin(plan, &self.program, package, folder.path())
            .and_then(|round| round.tell(&plan.strikes));
        print!("round of seed {}: {plan}: ", plan.seed);
        match &result {
            Ok(verdict) => println!("{verdict}, {:.1} s", started.elapsed().as_secs_f64()),
            Err(error) => println!("FAILED: {error:#}"),
        }
        if !result.as_ref().is_ok_and(Verdict::is_clean) {
            let Plan { seed, spiders, .. } = plan;
            println!("  again: scripts/chaos --spiders {spiders} --seed {seed} --rounds 1");
            if self.keep {
                folder.disable_cleanup(true);
                println!("  kept: {}", folder.path().display());
            }
        }
        result
    }
}

/// Returns the folder with the Python package, which scripts/chaos builds.
fn package() -> PathBuf {
    std::env::var_os("PYTHONPATH").unwrap_or_default().into()
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the interpreter with Scrapy, which `scripts/setup` installs.
fn python() -> Result<PathBuf> {
    let python = root().join(".venv/bin/python");
    ensure!(python.exists(), "{} is missing: run scripts/setup", python.display());
    python.canonicalize().context("the interpreter").map(|_| python)
}
