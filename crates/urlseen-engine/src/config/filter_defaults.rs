//! Defaults of the filter that depend on other values, or on an existing storage folder.

use std::collections::btree_map::Entry;
use std::sync::Arc;

use super::check::Origins;
use super::problem::ValueOrigin;
use super::{Config, Filter};
use urlseen_core::filter::choice::FilterPlace;
use urlseen_core::filter::kinds::NATIVE;
use urlseen_core::filter::{FilterSpec, Kind};
use urlseen_core::storage::header_of;

impl Config {
    /// Sets the kind, the capacity and the error rate of the filter, unless a layer sets them. An
    /// existing storage folder keeps kind and error rate. `origins` are those of the values that a
    /// layer sets.
    pub(super) fn set_filter_defaults(&mut self, origins: &mut Origins) {
        let recorded = self.recorded();
        if let Entry::Vacant(origin) = origins.entry("filter.kind") {
            if let Some((spec, folder)) = &recorded {
                self.filter.kind = spec.kind();
                origin.insert(folder.clone());
            } else if self.filter.place == FilterPlace::Redis {
                self.filter.kind = NATIVE;
            }
        }
        if !origins.contains_key("filter.capacity") {
            self.filter.capacity = Filter::default_capacity(self.filter.kind);
        }
        if let Entry::Vacant(origin) = origins.entry("filter.error_rate") {
            let recorded = recorded.filter(|(spec, _)| spec.kind() == self.filter.kind);
            let kept = recorded.and_then(|(FilterSpec { parameters, .. }, folder)| {
                Some((parameters.field("filter.error_rate")?, folder))
            });
            if let Some((error_rate, folder)) = kept {
                self.filter.error_rate = error_rate;
                origin.insert(folder);
            } else {
                self.filter.error_rate = Filter::default_error_rate(self.filter.kind);
            }
        }
    }

    /// Returns the spec in the first storage folder of the crawl that records one, and this folder.
    /// A folder that cannot be read is reported when the filter is opened.
    fn recorded(&self) -> Option<(FilterSpec, ValueOrigin)> {
        if self.filter.place == FilterPlace::Redis {
            return None;
        }
        let partitions = self.partitions.count.partitions();
        partitions.map(|partition| self.of_partition(partition).storage.dir).find_map(|dir| {
            let header = header_of(&dir).ok().flatten()?;
            Some((header.spec().filter.clone(), ValueOrigin::Folder(Arc::from(dir))))
        })
    }
}

impl Filter {
    /// Returns the default capacity of a kind. A filter that grows in small steps begins small.
    pub fn default_capacity(kind: Kind) -> u64 {
        if kind == Kind::TWO_CHOICE { 100_000 } else { 10_000_000 }
    }

    /// Returns the default error rate of a kind. It is lower for a filter that grows: while such a
    /// filter fills, its error rate is proportional to the number of its fingerprints, and that of
    /// a Bloom filter stays far below this line. With these error rates, a crawl of `grow_to` URLs
    /// loses fewer of them with the kind `two-choice` than with a native filter of this capacity.
    pub fn default_error_rate(kind: Kind) -> f64 {
        if kind == Kind::TWO_CHOICE { 1e-7 } else { 1e-6 }
    }
}
