//! Options that commands share: what a filter is made for.

use urlseen::config::{Config, SeedChoice};
use urlseen::filter::{Capacity, ErrorRate, Layout, Seed, Sizing};
use urlseen::fingerprint::Algorithm;
use urlseen::state::{Folder, Pins};
use urlseen::store::Keeping;

use super::fingerprint::parse_algorithm;
use super::start;

/// What a filter is made for. What is not given is as its folder has it; what is given must be.
#[derive(Debug, clap::Args)]
pub(super) struct Shape {
    /// How many different fingerprints the filter is made for: 5000000, 1e9, 200M; 10M unless the
    /// state folder says otherwise
    #[arg(long, value_name = "N")]
    capacity: Option<Capacity>,
    /// The share of unseen ones that may be taken for seen once so many are in it; 1e-6 unless the
    /// state folder says otherwise
    #[arg(long, value_name = "P")]
    error_rate: Option<ErrorRate>,
    /// How fingerprints are computed; as by scrapy unless the state folder says otherwise
    #[arg(long, value_name = "NAME", value_parser = parse_algorithm())]
    algorithm: Option<Algorithm>,
    /// Take URLs that differ in their fragments only for different ones
    #[arg(long)]
    keep_fragments: bool,
    /// The seed of the filter's hash, for runs that must be alike; drawn at random otherwise
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u32>,
}

/// The ids of these options.
pub(super) const IDS: [&str; 5] = ["capacity", "error_rate", "algorithm", "keep_fragments", "seed"];

impl Shape {
    /// All that is wanted of the filter in `folder`, or of one that is not kept.
    pub(super) fn pins(&self, folder: Option<&Folder>) -> anyhow::Result<Pins> {
        let made = folder.and_then(Folder::header).map(|header| header.pins().clone());
        let default = Config::default();
        let (crawl, capacity, error_rate, algorithm) = match &made {
            Some(pins) => (pins.crawl.as_str(), pins.capacity, pins.error_rate, pins.algorithm),
            None => (
                default.crawl.name.as_str(),
                Capacity::new(default.filter.capacity)?,
                ErrorRate::new(default.filter.error_rate)?,
                default.fingerprint.algorithm,
            ),
        };
        let sizing =
            Sizing::new(self.capacity.unwrap_or(capacity), self.error_rate.unwrap_or(error_rate));
        Ok(Pins {
            crawl: crawl.to_owned(),
            layout: Layout::Native,
            seed: self.seed.map(Seed::new),
            geometry: sizing.geometry(),
            capacity: sizing.capacity(),
            error_rate: sizing.error_rate(),
            algorithm: self.algorithm.unwrap_or(algorithm),
            keep_fragments: self.keep_fragments
                || made.as_ref().is_some_and(|pins| pins.keep_fragments),
        })
    }
}

/// The size of a filter that is made for this.
pub(super) fn sizing(pins: &Pins) -> Sizing {
    Sizing::new(pins.capacity, pins.error_rate)
}

/// The seed that is wanted, or a fresh one.
pub(super) fn seed(pins: &Pins) -> anyhow::Result<Seed> {
    pins.seed.map_or_else(|| start::seed(SeedChoice::Random), Ok)
}

/// How a filter is kept without a configuration.
pub(super) fn keeping(pins: Pins) -> Keeping {
    let state = Config::default().state;
    Keeping {
        pins,
        fsync: state.fsync,
        snapshot_bytes: state.snapshot_bytes,
        horizon_bytes: state.horizon_bytes,
        emit_again: false,
    }
}
