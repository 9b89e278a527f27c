//! Options that commands share: what a filter is made for.

use urlseen_core::filter::redisbloom::Growth;
use urlseen_core::filter::{Capacity, Design, ErrorRate, LocalKind, Reservation, Seed, Sizing};
use urlseen_core::fingerprint::Algorithm;
use urlseen_core::storage::{Folder, Made, Pins};
use urlseen_engine::config::{Config, SeedChoice};
use urlseen_engine::engine::store::Keeping;

use super::fingerprint::parse_algorithm;
use super::start;

/// What a filter is made for. What is not given is as its folder has it; what is given must be.
#[derive(Debug, clap::Args)]
pub(super) struct Shape {
    /// How a fingerprint becomes bit positions: native, or redisbloom for the filters of
    /// RedisBloom; native unless the storage folder says otherwise
    #[arg(long, value_name = "LAYOUT", value_parser = parse_kind())]
    kind: Option<LocalKind>,
    /// How many different fingerprints the filter is made for: 5000000, 1e9, 200M; 10M unless the
    /// storage folder says otherwise
    #[arg(long, value_name = "N")]
    capacity: Option<Capacity>,
    /// The share of unseen ones that may be taken for seen once so many are in it; 1e-6 unless the
    /// storage folder says otherwise
    #[arg(long, value_name = "P")]
    error_rate: Option<ErrorRate>,
    /// How fingerprints are computed; as by scrapy unless the storage folder says otherwise
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
pub(super) const IDS: [&str; 6] =
    ["kind", "capacity", "error_rate", "algorithm", "keep_fragments", "seed"];

fn parse_kind() -> impl clap::builder::TypedValueParser<Value = LocalKind> {
    use clap::builder::{PossibleValuesParser, TypedValueParser};
    PossibleValuesParser::new(LocalKind::NAMES).try_map(|name| name.parse::<LocalKind>())
}

impl Shape {
    /// All that is wanted of the filter in `folder`, or of one that is not kept.
    pub(super) fn pins(&self, folder: Option<&Folder>) -> anyhow::Result<Pins> {
        let recorded = folder.and_then(Folder::header).map(|header| header.pins().clone());
        let default = Config::default();
        let (crawl, made, algorithm) = match &recorded {
            Some(pins) => (pins.crawl.as_str(), Some(pins.made), pins.algorithm),
            None => (default.crawl.name.as_str(), None, default.fingerprint.algorithm),
        };
        Ok(Pins {
            crawl: crawl.to_owned(),
            made: self.made(made, &default)?,
            algorithm: self.algorithm.unwrap_or(algorithm),
            keep_fragments: self.keep_fragments
                || recorded.as_ref().is_some_and(|pins| pins.keep_fragments),
        })
    }

    /// How fingerprints are computed, as far as that is given.
    pub(super) fn fingerprints(&self) -> (Option<Algorithm>, bool) {
        (self.algorithm, self.keep_fragments)
    }

    /// What the filter is to be made for, where it `is` made for that already.
    fn made(&self, is: Option<Made>, default: &Config) -> anyhow::Result<Made> {
        let kind = self.kind.or(is.map(|made| made.kind())).unwrap_or(LocalKind::Native);
        let is_given = self.capacity.is_some() || self.error_rate.is_some();
        if let (LocalKind::RedisBloom, Some(Made::Imported), false) = (kind, is, is_given) {
            return Ok(Made::Imported);
        }
        let (capacity, error_rate) = match is.and_then(|made| made.size()) {
            Some(size) => size,
            None => (
                Capacity::new(default.filter.capacity)?,
                ErrorRate::new(default.filter.error_rate)?,
            ),
        };
        let capacity = self.capacity.unwrap_or(capacity);
        let error_rate = self.error_rate.unwrap_or(error_rate);
        let growth = match is {
            Some(Made::RedisBloom(reservation)) => reservation.growth,
            _ => Reservation::growth_of(default.filter.expansion),
        };
        let design = match kind {
            LocalKind::Native => Design::Native(Sizing::new(capacity, error_rate)),
            LocalKind::RedisBloom => {
                Design::RedisBloom(Reservation { capacity, error_rate, growth })
            }
        };
        Ok(start::made(&design, self.seed.map(Seed::new)))
    }
}

/// The filter that is made for this.
pub(super) fn design(pins: &Pins) -> anyhow::Result<Design> {
    Ok(match pins.made {
        Made::Native { capacity, error_rate, .. } => {
            Design::Native(Sizing::new(capacity, error_rate))
        }
        Made::RedisBloom(reservation) => Design::RedisBloom(reservation),
        // Takes the place of this one, which is the least that there is.
        Made::Imported => Design::RedisBloom(Reservation {
            capacity: Capacity::new(1)?,
            error_rate: ErrorRate::new(Config::default().filter.error_rate)?,
            growth: Growth::default(),
        }),
    })
}

/// The seed that is wanted, or a fresh one.
pub(super) fn seed(pins: &Pins) -> anyhow::Result<Seed> {
    pins.made.seed().map_or_else(|| start::seed(SeedChoice::Random), Ok)
}

/// How a filter is kept without a configuration.
pub(super) fn keeping(pins: Pins) -> Keeping {
    let storage = Config::default().storage;
    Keeping {
        pins,
        fsync: storage.fsync,
        snapshot_bytes: storage.snapshot_bytes,
        horizon_bytes: storage.horizon_bytes,
        emit_again: false,
        // The folder says it.
        archive: None,
    }
}
