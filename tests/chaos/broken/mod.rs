//! Builds of urlseen that are broken on purpose. The oracle must detect each of them.
//!
//! Each build is the source tree with a patch of `tests/chaos/broken/`. All broken builds share one
//! separate target folder. `scripts/simulate --broken` builds all patches that change code in Rust
//! outside the router, also those that are not listed here.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use anyhow::{Context, Result, ensure};
use clap::ValueEnum;

use crate::daemon::FilterPlace;
use crate::oracle::{Verdict, Wrong};
use crate::plan::{Kind, Plan, Scenario};

/// Fault of a broken build.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Broken {
    /// a batch is logged after its commit
    LogAfterCommit,
    /// two histories with the same number of batches are not distinguished
    NoCommitId,
    /// committed batches are not distinguished from others
    NoSeq,
    /// bits are set before the commit
    BitsBeforeCommit,
    /// a router removes a batch before its partitions have it
    RoutedEarly,
}

/// Maximum number of rounds for a broken build. One of them must show its fault.
pub(crate) const ROUNDS: u64 = 5;

/// Number of faults in a round.
const STEPS: usize = 30;

/// One broken build, or all of them.
#[derive(Debug, Clone)]
pub(crate) struct Choice(pub(crate) Vec<Broken>);

impl Choice {
    /// Parses the name of a broken build, or `all`.
    pub(crate) fn parse(name: &str) -> Result<Self, String> {
        if name == "all" {
            return Ok(Self(Broken::value_variants().to_vec()));
        }
        let names: Vec<String> = Broken::value_variants().iter().map(|it| it.name()).collect();
        let one = Broken::from_str(name, false);
        one.map(|one| Self(vec![one])).map_err(|_| format!("all, {}", names.join(", ")))
    }
}

impl Broken {
    pub(crate) fn name(self) -> String {
        let value = self.to_possible_value();
        value.map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    /// Plans a round in which this fault loses or repeats items. The sound program must pass the
    /// same round. Returns `None` if only a group of servers shows the fault.
    pub(crate) fn plan(self, seed: u64) -> Option<Plan> {
        let faults = |kinds: &[Kind]| {
            Plan::draw(seed, Some(Scenario::Faults), STEPS, kinds, FilterPlace::Local)
        };
        Some(match self {
            Self::RoutedEarly => return None,
            Self::LogAfterCommit => {
                let mut plan = faults(&[Kind::KillDaemon]);
                // Without this setting the daemon would not start again, because the log lacks a
                // batch.
                plan.settings.on_rollback = "emit-again";
                plan
            }
            Self::NoCommitId => {
                Plan::draw(seed, Some(Scenario::Histories), 0, &[], FilterPlace::Local)
            }
            Self::NoSeq => faults(&[Kind::Cut, Kind::Late]),
            Self::BitsBeforeCommit => faults(&[Kind::Meddle, Kind::KillDaemon]),
        })
    }

    /// Returns true if the verdict shows the fault: an item is lost or repeated.
    pub(crate) fn is_seen_in(verdict: &Verdict) -> bool {
        verdict.count(Wrong::Lost) + verdict.count(Wrong::Repeated) > 0
    }

    /// Builds the broken program.
    pub(crate) fn build(self) -> Result<PathBuf> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let target = std::env::var_os("CARGO_TARGET_DIR");
        let target = target.map_or_else(|| root.join("target"), PathBuf::from);
        let (name, work) = (self.name(), target.join("broken"));
        let tree = work.join("tree");
        if tree.exists() {
            fs::remove_dir_all(&tree)?;
        }
        fs::create_dir_all(&tree)?;
        run(Command::new("cp")
            .args(["--recursive", "--preserve=timestamps"])
            .args([
                "Cargo.toml",
                "Cargo.lock",
                "crates",
                "src",
                "benches",
                "examples",
                "tests",
                "integrations",
            ])
            .arg(&tree)
            .current_dir(root))?;
        let patches = root.join("tests/chaos/broken");
        run(Command::new("patch")
            .args(["--strip=1", "--fuzz=0", "--no-backup-if-mismatch", "--batch", "--forward"])
            .arg("--input")
            .arg(patches.join(format!("{name}.patch")))
            .current_dir(&tree))
        .with_context(|| format!("the patch {name} does not fit the sources any more"))?;
        // cargo treats a file that is older than the last build as unchanged. The last build had
        // another patch, so all files that any patch changes get a new time.
        for patch in fs::read_dir(&patches)? {
            let patch = fs::read_to_string(patch?.path())?;
            for file in patch.lines().filter_map(|line| line.strip_prefix("+++ b/")) {
                File::options()
                    .append(true)
                    .open(tree.join(file))?
                    .set_modified(SystemTime::now())?;
            }
        }
        run(Command::new("cargo")
            .args(["build", "--quiet", "--locked", "--bin", "urlseen", "--target-dir"])
            .arg(work.join("target"))
            .current_dir(&tree))?;
        let program = work.join(name);
        fs::copy(work.join("target/debug/urlseen"), &program)?;
        Ok(program)
    }
}

fn run(command: &mut Command) -> Result<()> {
    let output = command.output().with_context(|| format!("{command:?}"))?;
    ensure!(
        output.status.success(),
        "{command:?}: {}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}
