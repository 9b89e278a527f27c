//! Tests of the pipeline on a simulated server and disk. A seed decides which faults happen:
//! refused commits, lost answers, lapsed leases, rollbacks, failing disks, kills and restarts.
//!
//! `SIM_SEED` runs one seed and prints what happened; `SIM_COUNT` sets how many seeds run.

mod commit;
mod crawl;
mod daemon;
mod duties;
mod events;
mod expiry;
mod forgetting;
mod history;
mod items;
mod oracle;
mod replicas;
mod scripts;
mod server;
mod state;
mod threads;
mod time;
mod wire;
mod world;

use std::convert::Infallible;
use std::env;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::{Duration, Instant};

use crawl::Crawl;
use daemon::work;
use urlseen_filter::choice::Fsync;
use world::World;

/// Number of seeds in a run of the tests.
const COUNT: u64 = 40;

/// Simulated time after which a run counts as hanging.
const LONG: Duration = Duration::from_hours(12);

fn number(name: &str) -> Option<u64> {
    env::var(name).ok().map(|number| number.parse().expect("a whole number"))
}

/// Runs daemons with `events` until all items are processed, and checks their treatment. Prints
/// what happened if a check fails.
fn simulate(
    world: &World,
    crawl: &Crawl,
    events: impl Future<Output = Infallible>,
) -> std::thread::Result<()> {
    world.begin(crawl);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .on_thread_park(threads::work)
        .build()
        .expect("a runtime");
    let all = async {
        expiry::start();
        let all = async {
            tokio::select! {
                biased;
                never = events => match never {},
                () = work(world, crawl) => {}
            }
        };
        assert!(tokio::time::timeout(LONG, all).await.is_ok(), "it never ends");
        world.check();
    };
    let ended = catch_unwind(AssertUnwindSafe(|| runtime.block_on(all)));
    threads::end(true);
    if ended.is_err() || number("SIM_SEED").is_some() {
        eprintln!("{}", world.log());
    }
    ended
}

/// Runs crawls of all kinds in a world without faults, whose daemons go on when the source is
/// empty. `adapt` sets their configurations.
fn run_calm<F: Future<Output = Infallible>>(
    adapt: impl Fn(&Crawl) -> Crawl,
    events: impl Fn(World) -> F,
) {
    for (seed, crawl) in (0..).zip(Crawl::all()) {
        let world = World::new(seed);
        world.data().kinds.clear();
        world.data().drains = Some(false);
        let ended = simulate(&world, &adapt(&crawl), events(world.clone()));
        ended.unwrap_or_else(|panic| resume_unwind(panic));
    }
}

/// Runs a seed to its end. Returns the number of interleavings: the times at which the seed decided
/// what happens next. Also returns the number of checks of items that were forgotten in flight.
fn run(crawls: &[Crawl], seed: u64) -> [u64; 2] {
    let world = World::new(seed);
    let crawl = &crawls[world.number(crawls.len())];
    let fsync = if world.draw(2) == 0 { Fsync::Never } else { Fsync::Always };
    let crawl = &crawl.with(1 + world.number(12), fsync, world.draw(3));
    let ended = simulate(&world, crawl, world.happen());
    if let Err(panic) = ended {
        eprintln!("SIM_SEED={seed}");
        resume_unwind(panic);
    }
    [world.interleavings(), world.data().forgotten_in_flight]
}

#[test]
fn nothing_is_lost_or_repeated_whatever_happens() {
    let seeds = match number("SIM_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("SIM_COUNT").unwrap_or(COUNT),
    };
    let crawls = Crawl::all();
    let (start, count) = (Instant::now(), seeds.end - seeds.start);
    let runs: Vec<_> = seeds.map(|seed| run(&crawls, seed)).collect();
    let sum = |index: usize| runs.iter().map(|counts| counts[index]).sum::<u64>();
    let (interleavings, forgotten, seconds) = (sum(0), sum(1), start.elapsed().as_secs_f64());
    eprintln!("{count} seeds, {interleavings} interleavings, in {seconds:.1} s");
    // Half of the crawls have a limit or the filter in Redis, and some checks have no result.
    assert!(forgotten >= count / 4 || count < COUNT, "{forgotten} checks of forgotten items");
}
