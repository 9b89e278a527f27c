//! The daemon on a simulated server and disk. The test restarts the daemon when it is killed or
//! ends.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use super::crawl::Crawl;
use super::expiry::clocks;
use super::threads;
use super::world::World;
use crate::pipeline::{Ending, Parts, Pipeline, RunError, Server, Shared};
use crate::report::{Report, Reporter};
use urlseen_engine::engine::store::{Keeping, Local};
use urlseen_engine::engine::{self, Engine, query};
use urlseen_engine::item::Reader;
use urlseen_filter::Seed;
use urlseen_storage::{Folder, StoragePolicy, StorageSpec};

/// Time between two checks of the folder, as on the storage thread of a real daemon.
const LOOK: Duration = Duration::from_millis(200);

/// Maximum number of items that are forgotten and have not passed again.
const TOMBSTONES: usize = 1000;

/// Result of a daemon. The outer `Err` holds the reason why the daemon did not start.
type Ended = Result<Result<Ending, RunError>, String>;

/// Opens the filter, and the connection to it if it is in Redis.
async fn open(world: &World, crawl: &Crawl) -> Result<(Local, Option<Shared>), String> {
    let items = crawl.items();
    if crawl.is_shared {
        let wanted = crawl.config.redis_filter().expect("a filter");
        let mut link = world.connect().await.map_err(|error| error.to_string())?;
        let opened = wanted.open(&mut link).await.map_err(|error| error.to_string())?;
        let recent = crawl.config.filter.recent;
        let filter = Arc::clone(&opened.filter);
        let parts = engine::Parts::in_redis(
            filter,
            opened.hasher(),
            recent,
            items,
            engine::Threads::none(),
        );
        let engine = Engine::stepped(&parts, clocks).expect("memory for a cache");
        return Ok((Local::volatile(engine), Some(Shared::new(wanted, opened))));
    }
    let folder = Folder::open_simulated(&world.disk());
    let folder = folder.map_err(|error| error.to_string())?;
    let parameters = crawl.filter.parameters.seeded(|| Seed::new(1));
    let parts = engine::Parts::local(parameters, items, engine::Threads::none());
    let engine = Engine::stepped(&parts, clocks).expect("memory for a filter");
    let spec = StorageSpec { crawl: crawl.config.crawl.name.clone(), filter: crawl.filter.clone() };
    // Some daemons recover from a long log.
    let is_long = world.draw(4) == 0 && world.data().trial.is_none();
    let snapshot_bytes = if is_long { 1 << 20 } else { 1024 };
    let policy = StoragePolicy { fsync: crawl.fsync, snapshot_bytes, ..StoragePolicy::default() };
    Ok((Local::kept(engine, folder, Keeping { spec, policy, emit_again: false }), None))
}

/// Runs a daemon to its end.
async fn run(world: &World, crawl: &Crawl) -> Ended {
    let (local, shared) = open(world, crawl).await?;
    let (asker, dispatcher) = query::open(TOMBSTONES);
    world.data().asker = Some(asker);
    let (works, steps) = local.step(dispatcher);
    let requests = works.storage.as_ref().map(|storage| storage.requests.clone());
    threads::start(steps, requests, world.clone());
    let protocol = crawl.config.protocol();
    let parts = Parts {
        server: Arc::new(world.clone()),
        protocol: match &shared {
            Some(shared) => protocol.with_filter(shared.filter()),
            None => protocol,
        },
        forgets: Reader::new(crawl.items()),
        config: crawl.config.clone(),
        drain: world.drains(),
        standby: true,
    };
    let parameters = crawl.filter.parameters.clone();
    let capacity = Some(crawl.config.filter.capacity);
    let (reporter, stop) = (Reporter::new(&crawl.config), world.stop());
    let mut daemon = Pipeline::new(parts, works, parameters, capacity, shared, reporter, stop);
    world.data().live = Some(daemon.reporter.watch().live);
    let show = &mut |_: &Report| {};
    Ok(daemon.run(None, show).await)
}

impl World {
    fn drains(&self) -> bool {
        let drawn = self.draw(2) == 0;
        self.data().drains.unwrap_or(drawn)
    }
}

/// Makes the daemon check its folder several times a second. Never returns.
async fn look() {
    loop {
        sleep(LOOK).await;
        threads::look();
    }
}

/// Runs one daemon after the other until all items are processed.
pub(super) async fn work(world: &World, crawl: &Crawl) {
    loop {
        world.count();
        let ended = tokio::select! {
            biased;
            () = world.killed() => None,
            ended = run(world, crawl) => Some(ended),
            () = look() => unreachable!("it never ends"),
        };
        threads::end(ended.is_none());
        let has_failed = world.renew_disk();
        world.note(|| format!("the daemon ended: {ended:?}"));
        match ended {
            Some(Ok(Ok(_))) if !has_failed && world.is_over() => return,
            None | Some(Err(_) | Ok(Ok(_) | Err(RunError::Away(_) | RunError::Hanging(_)))) => {}
            Some(Ok(Err(_))) if has_failed => {}
            Some(Ok(Err(RunError::Mismatch(unfit) | RunError::Standby(unfit)))) => {
                world.refused(&unfit.to_string());
            }
            Some(Ok(Err(failure))) => panic!("the daemon failed: {failure}"),
        }
        sleep(Duration::from_millis(10 + world.draw(1000))).await;
    }
}
