//! Configuration that is taken out of the layers and checked.

use super::found::{Layers, Origins};
use super::keys::{Config, Filter};
use super::layers::Sources;
use super::problem::{Problems, ValueOrigin};
use std::sync::Arc;
use urlseen_filter::choice::FilterPlace;
use urlseen_filter::{FilterSpec, Kind};
use urlseen_redis::TlsFiles;
use urlseen_storage::header_of;

impl Config {
    /// Reads and checks a configuration. Apart from reading the file, this has no side effect.
    pub fn load(sources: Sources) -> Result<Self, Problems> {
        Self::load_for(sources, |_| None)
    }

    /// Reads and checks a configuration for this process. If the configuration exceeds a limit of
    /// the process, `machine` returns the fault, which names the key of the faulty value first.
    /// This problem is reported together with all other problems.
    pub(crate) fn load_for(
        sources: Sources,
        machine: impl FnOnce(&Self) -> Option<String>,
    ) -> Result<Self, Problems> {
        Self::checked(Layers::read(sources), machine).map(|(config, _)| config)
    }

    /// Takes the configuration out of the layers, and checks it. Also returns the origins of the
    /// values that are no defaults.
    pub(super) fn checked(
        mut layers: Layers,
        machine: impl FnOnce(&Self) -> Option<String>,
    ) -> Result<(Self, Origins), Problems> {
        let mut config = Self::take(&mut layers);
        config.set_filter_defaults(&mut layers.origins);
        config.redis.url = layers.log_in(config.redis.url);
        let (ca, cert) = (config.redis.tls_ca.clone(), config.redis.tls_cert.clone());
        let files = TlsFiles { ca, cert, key: config.redis.tls_key.clone() };
        config.redis.url.tls = Arc::new(files);
        config.find_node();
        let origins = layers.check(&config, machine(&config))?;
        Ok((config, origins))
    }

    /// Sets the kind, the capacity and the error rate of the filter, unless a layer sets them. An
    /// existing storage folder keeps kind and error rate. `origins` are those of the values that a
    /// layer sets.
    fn set_filter_defaults(&mut self, origins: &mut Origins) {
        let recorded = self.recorded();
        if !origins.contains_key("filter.kind") {
            if let Some((spec, folder)) = &recorded {
                self.filter.kind = spec.kind();
                origins.insert("filter.kind", folder.clone());
            } else if self.filter.place == FilterPlace::Redis {
                self.filter.kind = Kind::NATIVE;
            }
        }
        let kind = self.filter.kind;
        if !origins.contains_key("filter.capacity") {
            self.filter.capacity = Filter::default_capacity(kind);
        }
        if !origins.contains_key("filter.error_rate") {
            self.filter.error_rate = Filter::default_error_rate(kind);
            if let Some((spec, folder)) = recorded.filter(|(spec, _)| spec.kind() == kind)
                && let Some(error_rate) = spec.parameters.field("filter.error_rate")
            {
                self.filter.error_rate = error_rate;
                origins.insert("filter.error_rate", folder);
            }
        }
    }

    /// Returns the spec in the first storage folder of the crawl that records one, and this folder.
    /// A folder that cannot be read is reported when the filter is opened.
    fn recorded(&self) -> Option<(FilterSpec, ValueOrigin)> {
        if self.filter.place == FilterPlace::Redis {
            return None;
        }
        self.crawls().map(|crawl| crawl.storage.dir).find_map(|dir| {
            let header = header_of(&dir).ok().flatten()?;
            Some((header.spec.filter.clone(), ValueOrigin::Folder(Arc::from(dir))))
        })
    }
}

impl Filter {
    /// Returns the default capacity of a kind. A filter that grows in small steps begins small.
    pub(crate) fn default_capacity(kind: Kind) -> u64 {
        if kind == Kind::TWO_CHOICE { 100_000 } else { 10_000_000 }
    }

    /// Returns the default error rate of a kind. It is lower for a filter that grows: while such a
    /// filter fills, its error rate is proportional to the number of its fingerprints, and that of
    /// a Bloom filter stays far below this line. With these error rates, a crawl of `grow_to` URLs
    /// loses fewer of them with the kind `two-choice` than with a native filter of this capacity.
    pub(crate) fn default_error_rate(kind: Kind) -> f64 {
        if kind == Kind::TWO_CHOICE { 1e-7 } else { 1e-6 }
    }
}
