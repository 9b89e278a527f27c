//! Campaign: runs rounds, one after the other, until it has counted enough faults and items.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use crate::broken::{Broken, ROUNDS};
use crate::daemon::FilterPlace;
use crate::oracle::Verdict;
use crate::plan::{Kind, Plan, Scenario};
use crate::round::{Outcome, Round};
use crate::servers::{self, Servers};
use crate::tally::Tally;

/// Minimum counts for a campaign to pass.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Needs {
    pub(crate) daemon_kills: u64,
    pub(crate) growing_snapshots: u64,
    pub(crate) redis_kills: u64,
    pub(crate) rollbacks: u64,
    pub(crate) cuts: u64,
    pub(crate) items: u64,
}

impl Needs {
    pub(crate) const NONE: Self = Self {
        daemon_kills: 0,
        growing_snapshots: 0,
        redis_kills: 0,
        rollbacks: 0,
        cuts: 0,
        items: 0,
    };

    fn met_by(&self, tally: &Tally) -> bool {
        tally.daemon_kills >= self.daemon_kills
            && tally.growing_snapshots >= self.growing_snapshots
            && tally.redis_kills >= self.redis_kills
            && tally.rollbacks >= self.rollbacks
            && tally.cuts >= self.cuts
            && tally.items >= self.items
    }
}

/// Settings of a campaign.
#[derive(Debug)]
pub(crate) struct Campaign {
    pub(crate) program: PathBuf,
    pub(crate) seed: u64,
    /// Exact number of rounds, regardless of the counts.
    pub(crate) rounds: Option<u64>,
    /// Time after which no new round starts.
    pub(crate) time: Duration,
    pub(crate) needs: Needs,
    pub(crate) scenario: Option<Scenario>,
    pub(crate) steps: usize,
    pub(crate) faults: Vec<Kind>,
    pub(crate) place: FilterPlace,
    pub(crate) servers: Servers,
    /// True if the folders of rounds with an error are kept.
    pub(crate) keep: bool,
}

impl Campaign {
    /// Runs the campaign. Returns true if it passes.
    pub(crate) fn run(&self) -> bool {
        let started = Instant::now();
        println!("seed {}", self.seed);
        let mut total = Tally::default();
        let mut sum = Verdict::default();
        let mut unclean = 0;
        for round in 0.. {
            let is_enough = match self.rounds {
                Some(rounds) => round >= rounds,
                None => self.needs.met_by(&total),
            };
            if is_enough || started.elapsed() > self.time {
                break;
            }
            let seed = self.seed.wrapping_add(round);
            match self.run_round(seed) {
                Ok(outcome) => {
                    unclean += u64::from(!outcome.is_clean());
                    total += &outcome.tally;
                    sum += &outcome.verdict;
                }
                Err(error) => {
                    unclean += 1;
                    println!("  failed: {error:#}");
                }
            }
        }
        let is_enough = self.rounds.is_some() || self.needs.met_by(&total);
        println!("\n{total}\n{}", sum.counts());
        println!("{unclean} rounds with something wrong, {} s", started.elapsed().as_secs());
        if !is_enough {
            println!("not enough for a verdict: {:?}", self.needs);
        }
        let passes = unclean == 0 && is_enough;
        println!("{} (seed {})", if passes { "passed" } else { "FAILED" }, self.seed);
        passes
    }

    /// Builds the program with each of these faults, and checks that the oracle detects it.
    pub(crate) fn run_broken(&self, broken: &[Broken]) -> Result<bool> {
        println!("seed {}", self.seed);
        let mut unseen = Vec::new();
        for broken in broken {
            println!("\n{}: building", broken.name());
            if !self.sees(*broken, &broken.build()?)? {
                unseen.push(broken.name());
            }
        }
        match unseen.as_slice() {
            [] => println!("\nthe oracle detected all broken builds (seed {})", self.seed),
            unseen => println!(
                "\nFAILED: the oracle did not detect: {} (seed {})",
                unseen.join(", "),
                self.seed
            ),
        }
        Ok(unseen.is_empty())
    }

    /// Returns true if the oracle detects the fault in one of several rounds, or if the fault stops
    /// a round. Checks that the sound program passes the same rounds.
    fn sees(&self, broken: Broken, program: &Path) -> Result<bool> {
        for round in 0..ROUNDS {
            let seed = self.seed.wrapping_add(round);
            let again = format!("scripts/chaos --broken {} --seed {seed}", broken.name());
            let run = |program: &Path, keep| match broken.plan(seed) {
                Some(plan) => run_round(&plan, program, keep, &again),
                None => run_group(Servers::Cluster, seed, program, keep, &again),
            };
            let sound = run(&self.program, self.keep)?;
            ensure!(sound.is_clean(), "the sound build fails where {} should", broken.name());
            match run(program, false) {
                Ok(outcome) if !Broken::is_seen_in(&outcome.verdict) => {}
                Ok(_) => return Ok(true),
                // The sound build has just passed this round, so the fault stopped the daemon.
                Err(stopped) => {
                    println!("  {}: {stopped:#}", broken.name());
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Runs the round of this seed.
    fn run_round(&self, seed: u64) -> Result<Outcome> {
        if self.servers != Servers::Single {
            let kind = self.servers.name();
            let again = format!("scripts/chaos --servers {kind} --seed {seed} --rounds 1");
            return run_group(self.servers, seed, &self.program, self.keep, &again);
        }
        let plan = Plan::draw(seed, self.scenario, self.steps, &self.faults, self.place);
        run_round(&plan, &self.program, self.keep, &self.again(&plan))
    }

    /// Returns the command that repeats a round.
    fn again(&self, plan: &Plan) -> String {
        let mut words = vec![format!("scripts/chaos --seed {} --rounds 1", plan.seed)];
        if self.place == FilterPlace::Redis {
            words.push("--place redis".to_owned());
        }
        if let Some(scenario) = self.scenario {
            words.push(format!("--scenario {}", scenario.name()));
        }
        if plan.scenario == Scenario::Faults {
            words.push(format!("--steps {}", self.steps));
        }
        if !self.faults.is_empty() {
            let kinds: Vec<String> = self.faults.iter().map(|kind| kind.name()).collect();
            words.push(format!("--faults {}", kinds.join(",")));
        }
        words.join(" ")
    }
}

/// Runs one round. `again` is the command that repeats the round.
fn run_round(plan: &Plan, program: &Path, keep: bool, again: &str) -> Result<Outcome> {
    let Plan { seed, scenario, persistence, settings, new_percent, .. } = plan;
    let (batch, kept) = (settings.batch, settings.kept());
    let what = format!(
        "round of seed {seed}: {scenario:?}, {persistence:?}, batch {batch}, {new_percent} % new, \
         {kept}"
    );
    in_folder(&what, keep, again, |folder| Round::run(plan, program, folder))
}

/// Runs one round with a group of servers.
fn run_group(kind: Servers, seed: u64, program: &Path, keep: bool, again: &str) -> Result<Outcome> {
    let plan = servers::Plan::draw(kind, seed);
    let what = format!("round of seed {seed}: {}", kind.name());
    in_folder(&what, keep, again, |folder| plan.run(program, folder))
}

/// Runs one round in its own folder, and prints the outcome.
fn in_folder(
    what: &str,
    keep: bool,
    again: &str,
    run: impl FnOnce(&Path) -> Result<Outcome>,
) -> Result<Outcome> {
    let started = Instant::now();
    let mut folder = tempfile::Builder::new().prefix("urlseen-chaos-").tempdir()?;
    let result = run(folder.path());
    print!("{what}: ");
    match &result {
        Ok(outcome) => println!("{outcome}, {:.1} s", started.elapsed().as_secs_f64()),
        Err(_) => println!("FAILED"),
    }
    if !result.as_ref().is_ok_and(Outcome::is_clean) {
        println!("  again: {again}");
        if keep {
            folder.disable_cleanup(true);
            println!("  kept: {}", folder.path().display());
        }
    }
    result
}
