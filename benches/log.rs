//! Cost of the log: items per second through the daemon's pipeline, with each value of
//! `storage.fsync` and while a snapshot is taken. The program starts its own Redis. `scripts/bench
//! --only log` makes a table of the results:
//!
//! ```text
//! cargo bench --bench log [-- ITEMS ROUNDS]
//! ```

// A panic ends the program, as in a test.
#![allow(clippy::unwrap_used)]

mod rounds;
#[path = "../tests/it/util/mod.rs"]
#[allow(dead_code)]
mod util;

use std::cell::RefCell;

use redis::{Commands, Connection};
use rounds::Rounds;
use tokio::sync::watch;
use urlseen_cli::crawl::protocol::Protocol;
use urlseen_cli::pipeline::{Board, Parts, Pipeline, Report};
use urlseen_core::filter::{FilterSpec, Parameters, Seed, Sizing};
use urlseen_core::storage::{Folder, Moment, StoragePolicy, StorageSpec};
use urlseen_engine::config::{Config, Fsync, Sources};
use urlseen_engine::engine::store::{Keeping, Local};
use urlseen_engine::engine::{self, Engine, query};
use urlseen_engine::item::Options;
use util::redis::RedisServer;

/// List that is copied to the source before each run.
const STOCK: &str = "stock";

/// Mode of the log in a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Kept(Fsync),
    /// Log with `fsync = "interval"`, while the daemon writes a snapshot.
    Snapshot,
}

const MODES: [Mode; 4] = [
    Mode::Kept(Fsync::Never),
    Mode::Kept(Fsync::Interval),
    Mode::Snapshot,
    Mode::Kept(Fsync::Always),
];

fn main() {
    let mut numbers = std::env::args().skip(1).filter_map(|argument| argument.parse().ok());
    let items: u64 = numbers.next().unwrap_or(3_000_000);
    let rounds = numbers.next().map_or(7, |rounds| usize::try_from(rounds).unwrap());
    let server = RedisServer::start();
    let mut connection = server.connection();
    fill(&mut connection, items);
    let (server, connection) = (&server, &RefCell::new(connection));
    let mut log = Rounds::new("log", "items/s");
    for mode in MODES {
        let name = match mode {
            Mode::Kept(fsync) => format!("fsync = {fsync}"),
            Mode::Snapshot => "fsync = interval, while a snapshot is taken".to_owned(),
        };
        log.case(name, move || {
            let report = measure(mode, server, &mut connection.borrow_mut());
            report.counts.items() as f64 / report.seconds
        });
    }
    log.run(rounds);
}

/// Pushes `items` items with fingerprints. 30 % of them are new.
fn fill(connection: &mut Connection, items: u64) {
    let mut state = 1_u64;
    let fingerprint = |number: u64| {
        // Three finalizers of MurmurHash3 give evenly spread values, like a digest.
        let mix = |seed: u64| {
            let mut word =
                number.wrapping_mul(3).wrapping_add(seed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            word = (word ^ word >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
            word ^ word >> 33
        };
        format!("{:016x}{:016x}{:08x}", mix(0), mix(1), mix(2) >> 32)
    };
    let (mut next, mut number) = (0, 0);
    while number < items {
        let mut push = redis::pipe();
        let batch: Vec<String> = (number..items.min(number + 10_000))
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let is_unseen = next == 0 || (state >> 33) % 10 < 3;
                let which = if is_unseen { next } else { (state >> 20) % next };
                next += u64::from(is_unseen);
                format!("{}\t{:053}", fingerprint(which), which)
            })
            .collect();
        number += batch.len() as u64;
        let () = push.rpush(STOCK, batch).ignore().query(connection).unwrap();
    }
}

/// Returns the default configuration for this server.
fn configured(server: &RedisServer) -> Config {
    let url = format!("redis.url={}", server.url());
    let set = vec![url, "source.linger=0s".to_owned(), "sink.max_len=0".to_owned()];
    Config::load(Sources { set, ..Sources::default() }).unwrap()
}

/// Moves a copy of the list `stock` through the pipeline once.
fn measure(mode: Mode, server: &RedisServer, connection: &mut Connection) -> Report {
    let config = configured(server);
    let keys = config.keys();
    let old =
        [&keys.state, &keys.lease, &keys.processing, &keys.source, &keys.sink, &keys.rejected];
    let () = redis::cmd("UNLINK").arg(&old).query(connection).unwrap();
    let () = redis::cmd("COPY").arg(STOCK).arg(&keys.source).query(connection).unwrap();
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let (sizing, mut store) = store(mode, folder.path(), &config);
    if mode == Mode::Snapshot {
        store.recover_to(None, None).unwrap();
    }
    let works = store.work(query::open(0).1).unwrap();
    let parts = Parts {
        server: std::sync::Arc::new(config.redis.url.clone()),
        protocol: Protocol::new(&config),
        forgets: items(&config),
        config: config.clone(),
        drain: true,
        standby: false,
    };
    let (_ask, stop) = watch::channel(false);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    if let (Mode::Snapshot, Some(storage)) = (mode, &works.storage) {
        let begun = storage.call(|store| store.kept.begin_snapshot(Some(Moment::now())));
        runtime.block_on(begun).unwrap().unwrap();
    }
    let limit = Some(sizing.capacity.get());
    let parameters = Parameters::native(&sizing, None);
    let board = Board::new(&config);
    let mut pipeline = Pipeline::new(parts, works, parameters, limit, None, board, stop);
    runtime.block_on(pipeline.run(None, &mut |_| ())).unwrap();
    let report = pipeline.report();
    assert!(mode != Mode::Snapshot || report.counts.snapshots == 0, "the snapshot ended too soon");
    let left: u64 = connection.llen(&config.source.key).unwrap();
    assert_eq!(left, 0);
    report
}

fn items(config: &Config) -> Options {
    Options::new(config.source.item.into(), config.fingerprint.algorithm)
}

fn store(mode: Mode, folder: &std::path::Path, config: &Config) -> (Sizing, Local) {
    let sizing = Sizing::new("100M".parse().unwrap(), "1e-8".parse().unwrap());
    let items = items(config);
    let parameters = Parameters::native(&sizing, Some(Seed::new(1)));
    let threads = engine::Threads::start(1).unwrap();
    let parts = engine::Parts::local(parameters.clone(), items, threads);
    let engine = Engine::start(&parts).unwrap();
    let fsync = match mode {
        Mode::Kept(fsync) => fsync,
        Mode::Snapshot => Fsync::Interval,
    };
    let keeping = Keeping {
        spec: StorageSpec {
            crawl: "bench".to_owned(),
            filter: FilterSpec { parameters, fingerprint: config.fingerprint_spec() },
        },
        policy: StoragePolicy { fsync, snapshot_bytes: u64::MAX, ..StoragePolicy::default() },
        emit_again: false,
    };
    (sizing, Local::kept(engine, Folder::open(folder).unwrap(), keeping))
}
