//! Round with a group of servers: a new crawl, a producer, faults, and the verdict of the oracle.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use fastrand::Rng;
use redis::{cmd, pipe};

use super::Servers;
use super::crawl::{Crawl, found, replicated};
use super::group::Group;
use super::node::{Node, until, words};
use crate::daemon::{REJECTED, SINK, SOURCE};
use crate::items::Items;
use crate::oracle::Oracle;
use crate::process::SOON;
use crate::round::Outcome;
use crate::tally::{Effect, Phase, Tally};

/// Pushes items, unless this was done before, because the producer repeats a push whose answer was
/// lost. Each call writes, because WAIT on a new connection does not wait for earlier writes.
const PUSH: &str = "if redis.call('HINCRBY', KEYS[2], ARGV[1], 1) == 1 then
    redis.call('RPUSH', KEYS[1], unpack(ARGV, 2))
end
return 1";

/// Items that the producer pushes in each second.
const RATE: u64 = 2_000;

#[derive(Debug, Clone, Copy)]
enum Strike {
    /// A replica takes over, and the killed primary comes back as a replica.
    Kill,
    /// A primary comes back that does not know that a replica has taken over.
    Pause,
    /// A replica of a cluster takes over on an order.
    FailOver,
    /// A replica is paused, so that it lags.
    Lag,
    /// redis-cli moves many slots.
    Reshard,
    /// One slot moves key by key.
    MoveSlot,
}

/// Plan of a round, which the seed determines, except for the moments of the faults.
#[derive(Debug)]
pub(crate) struct Plan {
    servers: Servers,
    seed: u64,
    strikes: Vec<Strike>,
}

impl Plan {
    /// Draws the order of the faults.
    pub(crate) fn draw(servers: Servers, seed: u64) -> Self {
        let mut strikes = vec![Strike::Kill, Strike::Pause, Strike::Lag];
        if servers == Servers::Cluster {
            strikes.extend([Strike::FailOver, Strike::Reshard, Strike::MoveSlot]);
        }
        Rng::with_seed(seed).shuffle(&mut strikes);
        Self { servers, seed, strikes }
    }

    pub(crate) fn run(&self, program: &Path, folder: &Path) -> Result<Outcome> {
        let mut random = Rng::with_seed(self.seed);
        let group = Group::start(self.servers, folder, random.u8(0..=1))?;
        let items = Items { seed: self.seed, new_percent: 40, history: Vec::new() };
        let (is_done, (tell, told)) = (AtomicBool::new(false), channel());
        let (fed, mut tally, sources) = thread::scope(|scope| {
            let crawl =
                scope.spawn(|| Crawl::start(&group, program, folder, self.seed)?.work(&{ told }));
            let producer = scope.spawn(|| produce(&group, &items, &is_done));
            let struck = self.strike(&group, &mut random, || crawl.is_finished());
            is_done.store(true, Ordering::Relaxed);
            let fed = producer.join().map_err(|_| anyhow!("the producer panicked"))?;
            if struck.is_ok() && fed.is_ok() {
                // A crawl that has failed tells its own error.
                tell.send(()).ok();
            }
            drop(tell);
            // An error of the crawl explains the others.
            let (mut tally, sources) =
                crawl.join().map_err(|_| anyhow!("the crawl panicked"))??;
            tally += &struck?;
            anyhow::Ok((fed?, tally, sources))
        })?;
        (tally.rounds, tally.items) = (1, fed);
        let read = |list| found(&group, &sources, list);
        let verdict = Oracle::of(&items, fed).routed().judge(read(SINK)?, read(REJECTED)?);
        Ok(Outcome { verdict, stops: Vec::new(), tally })
    }

    /// Injects all faults of the servers. One fault ends before the next one begins.
    fn strike(
        &self,
        group: &Group,
        random: &mut Rng,
        has_failed: impl Fn() -> bool,
    ) -> Result<Tally> {
        let mut tally = Tally::default();
        let sources = until("batches of all partitions", SOON, || replicated(group))?;
        for strike in &self.strikes {
            if has_failed() {
                bail!("the crawl has ended");
            }
            let index = random.usize(0..=sources.len());
            let key = sources.get(index).map_or(SOURCE, String::as_str);
            inject(*strike, group, key, random).with_context(|| format!("{strike:?}"))?;
            until("complete group", SOON, || group.is_complete())?;
            let effects: &[Effect] =
                if matches!(strike, Strike::Kill) { &[Effect::RedisKilled] } else { &[] };
            tally.count(format!("{strike:?}"), Phase::Batch, effects);
        }
        Ok(tally)
    }
}

fn inject(strike: Strike, group: &Group, key: &str, random: &mut Rng) -> Result<()> {
    let old = group.primary_of(key)?;
    match strike {
        Strike::Kill => {
            old.kill();
            wait_for_failover(group, key, old, SOON)?;
            group.rejoin(old)
        }
        Strike::Pause => {
            old.pause(true)?;
            wait_for_failover(group, key, old, SOON)?;
            old.pause(false)
        }
        Strike::FailOver => {
            // Redis can give an ordered failover up.
            for _ in 0..3 {
                group.replica(old)?.run::<()>(&words("CLUSTER FAILOVER"))?;
                if wait_for_failover(group, key, old, SOON / 3).is_ok() {
                    return Ok(());
                }
            }
            bail!("no replica takes over");
        }
        Strike::Lag => {
            let replica = group.replica(old)?;
            replica.pause(true)?;
            sleep(Duration::from_millis(random.u64(0..2500)));
            replica.pause(false)
        }
        Strike::Reshard => group.reshard(key, random),
        Strike::MoveSlot => group.move_slot(key, random),
    }
}

/// Waits until another server is the primary of a key.
fn wait_for_failover(group: &Group, key: &str, old: &Node, limit: Duration) -> Result<()> {
    until("new primary", limit, || Ok((group.primary_of(key)?.port != old.port).then_some(())))
}

/// Pushes items to the list of the routers until the faults are done. Returns the number of items.
fn produce(group: &Group, items: &Items, is_done: &AtomicBool) -> Result<u64> {
    let (begun, mut fed, mut batch) = (Instant::now(), 0, 0);
    let mut random = Rng::with_seed(items.seed);
    while !is_done.load(Ordering::Relaxed) {
        let count = random.u64(1..=400);
        let bytes: Vec<Vec<u8>> = (fed..fed + count).map(|it| items.item(it).bytes).collect();
        // All servers are tried until one of them and its replicas have the items.
        until("acknowledged push", SOON, || {
            Ok(group.nodes.iter().any(|it| has_taken(it, group, batch, &bytes)).then_some(()))
        })?;
        fed += count;
        batch += 1;
        sleep(Duration::from_millis(1000 * fed / RATE).saturating_sub(begun.elapsed()));
    }
    Ok(fed)
}

/// Pushes items to a server. Returns true if it is the primary, and enough replicas have them.
fn has_taken(node: &Node, group: &Group, batch: u64, items: &[Vec<u8>]) -> bool {
    let guard = format!("{{{SOURCE}}}:pushed");
    let mut push = cmd("EVAL");
    push.arg(PUSH).arg(2).arg(SOURCE).arg(guard).arg(batch).arg(items);
    let mut wait = cmd("WAIT");
    wait.arg(group.replicas()).arg(1000);
    let mut both = pipe();
    both.add_command(push).ignore().add_command(wait);
    let answer = node.connection().and_then(|mut it| Ok(both.query::<(usize,)>(&mut it)?));
    answer.is_ok_and(|(replicas,)| replicas >= group.replicas())
}
