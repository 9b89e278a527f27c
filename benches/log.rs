//! What the log costs: items a second through the daemon's pipeline with nothing kept, with each
//! `state.fsync`, and while a snapshot is taken. All of it in one run, side by side, round after
//! round, against a Redis of its own:
//!
//! ```text
//! cargo bench --bench log [-- ITEMS ROUNDS]
//! ```

// What cannot be measured ends it, as in a test.
#![allow(clippy::unwrap_used)]

#[path = "../tests/it/util/mod.rs"]
#[allow(dead_code)]
mod util;

use std::time::SystemTime;

use redis::{Commands, Connection};
use tokio::sync::watch;
use urlseen::config::{Config, Fsync, RejectsFull, Sources, WhenFull};
use urlseen::engine::{self, Engine};
use urlseen::filter::native::Native;
use urlseen::filter::{Layout, Seed, Sizing};
use urlseen::item::Options;
use urlseen::pipeline::{Parts, Pipeline, Report, Settings};
use urlseen::protocol::Protocol;
use urlseen::redis::keys::Keys;
use urlseen::redis::lease::Holder;
use urlseen::state::{Folder, Pins};
use urlseen::store::{Keeping, Local};
use urlseen::{sink, source};
use util::redis::RedisServer;

/// Where the items wait to be copied to the source.
const STOCK: &str = "stock";

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// Nothing is kept.
    Off,
    Kept(Fsync),
    /// `fsync = "interval"`, and a snapshot under way all the time.
    Snapshot,
}

const MODES: [Mode; 5] = [
    Mode::Off,
    Mode::Kept(Fsync::Never),
    Mode::Kept(Fsync::Interval),
    Mode::Snapshot,
    Mode::Kept(Fsync::Always),
];

fn main() {
    let mut numbers = std::env::args().skip(1).filter_map(|argument| argument.parse().ok());
    let items: u64 = numbers.next().unwrap_or(3_000_000);
    let rounds = numbers.next().unwrap_or(7);
    let server = RedisServer::start();
    let mut connection = server.connection();
    fill(&mut connection, items);
    println!("{items} items of 94 bytes, 30 % unseen; filter for 100 million at 1e-8");
    let mut rates = vec![Vec::new(); MODES.len()];
    for round in 0..=rounds {
        for (mode, rates) in MODES.iter().zip(&mut rates) {
            let report = measure(*mode, &server, &mut connection);
            // The first round warms up.
            if round > 0 {
                rates.push(report.tally.items as f64 / report.seconds);
            }
        }
    }
    let off = median(&rates[0]);
    println!("{:<12} {:>12} {:>8} {:>23}", "log", "items/s", "ratio", "lowest to highest");
    for (mode, rates) in MODES.iter().zip(&rates) {
        let name = match mode {
            Mode::Off => "off".to_owned(),
            Mode::Kept(fsync) => fsync.to_string(),
            Mode::Snapshot => "+ snapshot".to_owned(),
        };
        let (low, high) = (lowest(rates), rates.iter().copied().fold(0.0, f64::max));
        let (median, ratio) = (median(rates), median(rates) / off);
        println!("{name:<12} {median:>12.0} {ratio:>8.3} {low:>11.0} {high:>11.0}");
    }
    let ratios = |mode: usize, to: usize| {
        let pairs = rates[mode].iter().zip(&rates[to]);
        median(&pairs.map(|(rate, to)| rate / to).collect::<Vec<_>>())
    };
    println!("round by round, median: interval to off {:.3}", ratios(2, 0));
    println!("round by round, median: snapshot to interval {:.3}", ratios(3, 2));
}

/// Pushes `items` items with ready fingerprints, of which 30 % are the first of theirs.
fn fill(connection: &mut Connection, items: u64) {
    let mut state = 1_u64;
    let fingerprint = |number: u64| {
        // The finalizer of MurmurHash3, three times over: as evenly spread as a digest.
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

/// The defaults, on that server.
fn configured(server: &RedisServer) -> Config {
    let set = vec![format!("redis.url={}", server.url())];
    let env: [(&str, &str); 0] = [];
    Config::load(Sources { file: None, env, set }).unwrap()
}

/// Moves the stock through the pipeline once.
fn measure(mode: Mode, server: &RedisServer, connection: &mut Connection) -> Report {
    let config = configured(server);
    let keys = Keys::new(&config.source.key, &config.sink.key, &config.rejects.key);
    let old = [&keys.state, &keys.lease, &keys.taken, &keys.source, &keys.sink, &keys.rejected];
    let () = redis::cmd("UNLINK").arg(&old).query(connection).unwrap();
    let () = redis::cmd("COPY").arg(STOCK).arg(&keys.source).query(connection).unwrap();
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let (sizing, mut store) = store(mode, folder.path(), &config);
    if mode == Mode::Snapshot {
        store.bring_to(None, None).unwrap();
        store.begin_snapshot(SystemTime::now()).unwrap();
    }
    let protocol = Protocol::new(keys, source::open(&config.source), sink::open(&config.sink));
    let parts = Parts {
        address: config.redis.url.clone(),
        needs: protocol.needs(),
        protocol,
        sizing,
        holder: Holder::this("bench"),
        settings: Settings {
            batch: config.source.batch,
            batch_bytes: config.source.batch_bytes,
            sink_max: 0,
            rejects_max: config.rejects.max_len,
            rejects_full: RejectsFull::Wait,
            filter_full: WhenFull::Warn,
            drain: true,
            standby: false,
        },
    };
    let (_ask, stop) = watch::channel(false);
    let mut pipeline = Pipeline::new(parts, store, stop);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(pipeline.run(None, &mut |_| ())).unwrap();
    let report = pipeline.report();
    assert!(mode != Mode::Snapshot || report.tally.snapshots == 0, "the snapshot ended too soon");
    let left: u64 = connection.llen(&config.source.key).unwrap();
    assert_eq!(left, 0);
    report
}

fn store(mode: Mode, folder: &std::path::Path, config: &Config) -> (Sizing, Local) {
    let sizing = Sizing::new("100M".parse().unwrap(), "1e-8".parse().unwrap());
    let items = Options {
        form: config.source.item,
        emit: config.sink.emit,
        algorithm: config.fingerprint.algorithm,
        keep_fragments: false,
    };
    let layout = Native::new(Seed::new(1), sizing.geometry());
    let engine = Engine::start(&engine::Parts { layout, items, threads: 1 }).unwrap();
    let fsync = match mode {
        Mode::Off => return (sizing, Local::volatile(engine)),
        Mode::Kept(fsync) => fsync,
        Mode::Snapshot => Fsync::Interval,
    };
    let keeping = Keeping {
        pins: Pins {
            crawl: "bench".to_owned(),
            layout: Layout::Native,
            seed: Some(Seed::new(1)),
            geometry: sizing.geometry(),
            capacity: sizing.capacity(),
            error_rate: sizing.error_rate(),
            algorithm: config.fingerprint.algorithm,
            keep_fragments: false,
        },
        fsync,
        snapshot_bytes: u64::MAX,
        horizon_bytes: u64::MAX,
        emit_again: false,
    };
    (sizing, Local::kept(engine, Folder::open(folder).unwrap(), keeping))
}

fn median(rates: &[f64]) -> f64 {
    let mut rates = rates.to_vec();
    rates.sort_by(f64::total_cmp);
    rates.get(rates.len() / 2).copied().unwrap_or(f64::NAN)
}

fn lowest(rates: &[f64]) -> f64 {
    rates.iter().copied().fold(f64::INFINITY, f64::min)
}
