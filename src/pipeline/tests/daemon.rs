//! The daemon on a simulated server. The test restarts the daemon when it is killed or ends.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use super::quiet;
use super::world::World;
use crate::crawl::protocol::Protocol;
use crate::pipeline::{Parts, Pipeline, Report, RunError};
use urlseen_core::filter::choice::Fsync;
use urlseen_core::filter::{FilterSpec, Seed};
use urlseen_core::storage::{Folder, StoragePolicy, StorageSpec};
use urlseen_engine::config::{self, Config, Sources};
use urlseen_engine::engine::store::{Keeping, Local};
use urlseen_engine::engine::{self, Engine, query};
use urlseen_engine::item::Options;

/// Configuration of a crawl and its filter. Both are the same in all runs.
pub(super) struct Crawl {
    config: Config,
    filter: FilterSpec,
}

impl Crawl {
    pub(super) fn new() -> Self {
        let set = [
            "crawl.name=sim",
            "source.key=source",
            "sink.key=sink",
            "filter.capacity=10000",
            "filter.seed=1",
        ];
        let file = Some("/dev/null".into());
        let set = set.map(str::to_owned).into();
        let config = Config::load(Sources { file, env: [("", ""); 0], set });
        let config = config.expect("a configuration");
        let filter = config.filter_spec().expect("a filter");
        Self { config, filter }
    }

    /// Sets the number of items in a batch.
    pub(super) fn with_batch(&self, batch: usize) -> Self {
        let mut config = self.config.clone();
        config.source.batch = batch;
        Self { config, filter: self.filter.clone() }
    }

    pub(super) fn protocol(&self) -> Protocol {
        Protocol::new(&self.config)
    }
}

/// Starts a daemon on the folder.
fn start(world: &World, crawl: &Crawl, folder: &Path) -> Pipeline {
    let Crawl { config, filter } = crawl;
    let folder = Folder::open(folder).expect("the folder is free");
    let parameters = filter.parameters.seeded(|| Seed::new(1));
    let config::Fingerprint { algorithm, keep_fragments } = config.fingerprint;
    let items = Options::new(config.source.item.into(), algorithm, keep_fragments);
    let parts = engine::Parts::local(parameters.clone(), items, 1);
    let engine = Engine::start(&parts).expect("memory for a filter");
    let keeping = Keeping {
        spec: StorageSpec { crawl: config.crawl.name.clone(), filter: filter.clone() },
        policy: StoragePolicy {
            fsync: Fsync::Never,
            snapshot_bytes: 4096,
            ..StoragePolicy::default()
        },
        emit_again: false,
    };
    let (_, dispatcher) = query::open(0);
    let works = Local::kept(engine, folder, keeping).work(dispatcher).expect("a thread");
    let parts = Parts {
        server: Arc::new(world.clone()),
        protocol: crawl.protocol(),
        forgets: items,
        config: config.clone(),
        drain: world.draw(2) == 0,
        standby: true,
    };
    Pipeline::new(parts, works, Some(config.filter.capacity), None, world.stop())
}

/// Runs one daemon after the other until all items are processed.
pub(super) async fn work(world: &World, crawl: &Crawl, folder: &Path) {
    loop {
        let mut daemon = quiet::track(|| start(world, crawl, folder));
        let show = &mut |_: &Report| {};
        let ended = tokio::select! {
            biased;
            () = world.killed() => None,
            ended = daemon.run(None, show) => Some(ended),
        };
        drop(daemon);
        world.note(format!("the daemon ended: {ended:?}"));
        match ended {
            Some(Ok(_)) if world.is_done() => return,
            None | Some(Ok(_) | Err(RunError::Away(_))) => {}
            Some(Err(RunError::Mismatch(unfit) | RunError::Standby(unfit))) => {
                world.refused(&unfit.to_string());
            }
            Some(Err(failure)) => panic!("the daemon failed: {failure}"),
        }
        sleep(Duration::from_millis(10 + world.draw(1000))).await;
    }
}
