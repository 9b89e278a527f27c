//! The pipeline on a simulated server, by a seed: refused commits, lost answers, lapsed leases,
//! rollbacks, kills and restarts.
//!
//! `SIM_SEED` runs one seed and prints what happened; `SIM_COUNT` sets how many seeds run.

mod daemon;
mod quiet;
mod server;
mod state;
mod wire;
mod world;

use std::env;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::time::Duration;

use daemon::{Crawl, work};
use world::World;

/// Number of seeds in a run of the tests.
const COUNT: u64 = 150;

/// Simulated time after which a run counts as hanging.
const LONG: Duration = Duration::from_secs(2000);

fn number(name: &str) -> Option<u64> {
    env::var(name).ok().map(|number| number.parse().expect("a whole number"))
}

/// Runs a seed to its end.
fn run(crawl: &Crawl, seed: u64) {
    let world = World::new(seed, &crawl.protocol());
    let crawl = &crawl.with_batch(1 + world.number(12));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .on_thread_park(quiet::wait)
        .build()
        .expect("a runtime");
    let memory = Path::new("/dev/shm");
    let folder = if memory.exists() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    let folder = folder.expect("a folder");
    let all = async {
        let all = async {
            tokio::select! {
                biased;
                never = world.happen() => match never {},
                () = work(&world, crawl, folder.path()) => {}
            }
        };
        assert!(tokio::time::timeout(LONG, all).await.is_ok(), "it never ends");
        world.check();
    };
    let ended = catch_unwind(AssertUnwindSafe(|| runtime.block_on(all)));
    if let Err(panic) = ended {
        eprintln!("{}\nSIM_SEED={seed}", world.log());
        resume_unwind(panic);
    }
    if number("SIM_SEED").is_some() {
        eprintln!("{}", world.log());
    }
}

#[test]
fn nothing_is_lost_or_repeated_whatever_happens() {
    let seeds = match number("SIM_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("SIM_COUNT").unwrap_or(COUNT),
    };
    let crawl = Crawl::new();
    seeds.for_each(|seed| run(&crawl, seed));
}
