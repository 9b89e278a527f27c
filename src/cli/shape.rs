//! Options that commands share: what a filter is made for.

use urlseen_core::filter::choice::FilterPlace;
use urlseen_core::filter::kinds::NATIVE;
use urlseen_core::filter::{Capacity, ErrorRate, FilterSpec, Kind, Parameters, SpecError};
use urlseen_core::fingerprint::Algorithm;
use urlseen_core::storage::{Folder, StorageSpec};
use urlseen_engine::config::{Config, SeedChoice};
use urlseen_engine::engine::store::Keeping;

use super::fingerprint::parse_algorithm;

/// What a filter is made for. What is not given is as its folder has it; what is given must be.
#[derive(Debug, clap::Args)]
pub(super) struct Shape {
    /// The kind of the filter; native unless the storage folder says otherwise
    #[arg(long, value_name = "LAYOUT", value_parser = parse_kind())]
    kind: Option<Kind>,
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

fn parse_kind() -> impl clap::builder::TypedValueParser<Value = Kind> {
    use clap::builder::{PossibleValuesParser, TypedValueParser};
    let local = Kind::all_in(FilterPlace::Local).map(Kind::name);
    PossibleValuesParser::new(local).try_map(|name| name.parse::<Kind>())
}

impl Shape {
    /// All that is wanted of the filter in `folder`, or of one that is not kept.
    pub(super) fn spec(&self, folder: Option<&Folder>) -> anyhow::Result<StorageSpec> {
        let recorded = folder.and_then(Folder::header).map(|header| header.spec().clone());
        let is = recorded.as_ref().map(|spec| &spec.filter);
        let default = Config::default();
        let algorithm = is.map_or(default.fingerprint.algorithm, |filter| filter.algorithm);
        Ok(StorageSpec {
            filter: FilterSpec {
                parameters: self
                    .parameters(is.map(|filter| &filter.parameters), default.clone())?,
                algorithm: self.algorithm.unwrap_or(algorithm),
                keep_fragments: self.keep_fragments
                    || is.is_some_and(|filter| filter.keep_fragments),
            },
            crawl: recorded.map_or(default.crawl.name, |spec| spec.crawl),
        })
    }

    /// How fingerprints are computed, as far as that is given.
    pub(super) fn fingerprints(&self) -> (Option<Algorithm>, bool) {
        (self.algorithm, self.keep_fragments)
    }

    /// The filter's kind and parameters, where it `is` made for some already.
    fn parameters(
        &self,
        is: Option<&Parameters>,
        mut default: Config,
    ) -> Result<Parameters, SpecError> {
        let kind = self.kind.or(is.map(|is| is.kind())).unwrap_or(NATIVE);
        let is_given = self.capacity.is_some() || self.error_rate.is_some();
        if let Some(is) = is.filter(|is| is.is_imported() && is.kind() == kind && !is_given) {
            return Ok(is.clone());
        }
        if let Some(is) = is {
            default.filter.set_parts(is);
        }
        let filter = &mut default.filter;
        filter.kind = kind;
        filter.capacity = self.capacity.map_or(filter.capacity, Capacity::get);
        filter.error_rate = self.error_rate.map_or(filter.error_rate, ErrorRate::get);
        filter.seed = self.seed.map_or(SeedChoice::Random, SeedChoice::Fixed);
        Ok(default.filter_spec()?.parameters)
    }
}

/// How a filter is kept without a configuration.
pub(super) fn keeping(spec: StorageSpec) -> Keeping {
    let storage = Config::default().storage;
    Keeping {
        spec,
        fsync: storage.fsync,
        snapshot_bytes: storage.snapshot_bytes,
        horizon_bytes: storage.horizon_bytes,
        emit_again: false,
        // The folder says it.
        archive: None,
    }
}
