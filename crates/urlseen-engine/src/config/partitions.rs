//! Partitions of a crawl: their configurations, and the choice of those that a process runs.

use std::collections::BTreeSet;
use std::fmt;

use urlseen_core::fingerprint::{Partition, PartitionCount};
use urlseen_core::redis::hash_tag::{hashed, partition_key, partition_tag};

use super::Config;

/// Partitions that a process runs, as configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PartitionChoice {
    /// All partitions of the crawl.
    All,
    /// Partitions with these numbers.
    Numbers(BTreeSet<u16>),
    /// The share of a process whose host name ends with `-0`, `-1` and so on.
    Ordinal {
        /// Number of processes that share the partitions; `None` for one process for each
        /// partition.
        processes: Option<u16>,
    },
}

impl PartitionChoice {
    /// Returns the chosen partitions, in order. `host` is the name of this host.
    ///
    /// # Errors
    /// The host name has no number, or too large a number. The text says so.
    pub fn of(&self, count: PartitionCount, host: &str) -> Result<Vec<Partition>, String> {
        let all = count.partitions();
        Ok(match self {
            Self::All => all.collect(),
            Self::Numbers(numbers) => all.filter(|it| numbers.contains(&it.number())).collect(),
            Self::Ordinal { processes } => {
                let name = host.split('.').next().unwrap_or_default();
                let ordinal = name.rsplit_once('-').and_then(|(_, number)| number.parse().ok());
                let ordinal: u64 = ordinal.ok_or_else(|| {
                    format!(
                        "partitions.run is \"ordinal\", and the host name {host:?} does not end \
                         with - and a number, like crawl-3 in a StatefulSet; name the partitions, \
                         as in \"0-3,8\""
                    )
                })?;
                let processes = processes.unwrap_or(count.get());
                if ordinal >= processes.into() {
                    return Err(format!(
                        "partitions.run is \"ordinal\", and the host name {host:?} has the number \
                         of process {}: there are only {processes} processes, and the first one \
                         has the number 0; run fewer, or write their number, as in \"ordinal/4\"",
                        ordinal + 1
                    ));
                }
                all.filter(|it| u64::from(it.number() % processes) == ordinal).collect()
            }
        })
    }

    /// Returns the largest number of a partition or of processes that the choice names.
    pub(super) fn largest(&self) -> u16 {
        match self {
            Self::All | Self::Ordinal { processes: None } => 0,
            Self::Numbers(numbers) => numbers.last().copied().unwrap_or(0),
            Self::Ordinal { processes: Some(processes) } => processes - 1,
        }
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        if let Some(ordinal) = text.strip_prefix("ordinal") {
            let Some(number) = ordinal.strip_prefix('/') else {
                return ordinal.is_empty().then_some(Self::Ordinal { processes: None });
            };
            let processes = number.parse().ok().filter(|number| (1..=256).contains(number))?;
            return Some(Self::Ordinal { processes: Some(processes) });
        }
        if text == "all" {
            return Some(Self::All);
        }
        let number = |text: &str| text.parse().ok().filter(|&number: &u16| number < 256);
        let mut numbers = BTreeSet::new();
        for range in text.split(',').map(str::trim) {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let (first, last) = (number(first)?, number(last)?);
            numbers.extend((first <= last).then_some(first..=last)?);
        }
        Some(Self::Numbers(numbers))
    }
}

impl fmt::Display for PartitionChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("all"),
            Self::Numbers(numbers) => {
                let numbers: Vec<_> = numbers.iter().map(ToString::to_string).collect();
                f.write_str(&numbers.join(","))
            }
            Self::Ordinal { processes: None } => f.write_str("ordinal"),
            Self::Ordinal { processes: Some(processes) } => write!(f, "ordinal/{processes}"),
        }
    }
}

impl Config {
    /// Returns the name of the crawl, with the number of the partition if there are others.
    pub fn crawl_name(&self) -> String {
        if self.partition.has_others() {
            format!("{}, partition {}", self.crawl.name, self.partition)
        } else {
            self.crawl.name.clone()
        }
    }

    /// Returns the configurations of all partitions, in order.
    pub fn all_partitions(&self) -> impl ExactSizeIterator<Item = Self> {
        self.partitions.count.partitions().map(|partition| self.of_partition(partition))
    }

    /// Returns the configuration of a partition. It is that of a crawl with its own keys, its own
    /// folder, and an equal part of the capacity and the memory. A crawl with one partition keeps
    /// its names.
    #[must_use]
    pub fn of_partition(&self, partition: Partition) -> Self {
        let mut config = self.clone();
        if !partition.has_others() {
            return config;
        }
        let tag = partition_tag(partition);
        let Self { source, sink, rejects, forget, filter, storage, .. } = &mut config;
        let keys = [&mut source.key, &mut sink.key, &mut rejects.key, &mut forget.key];
        for key in keys.into_iter().chain([&mut filter.key]) {
            *key = partition_key(key, &tag);
        }
        storage.dir.push(partition.number().to_string());
        for size in [&mut filter.capacity, &mut filter.grow_to, &mut filter.max_memory] {
            *size = size.div_ceil(partition.count().get().into());
        }
        config.partition = partition;
        config.find_node();
        config
    }
}

/// Returns true if a key already has a hash tag, so that it cannot get the tag of a partition.
pub(super) fn has_tag(key: &str) -> bool {
    hashed(key).len() < key.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(text: &str, count: u64, host: &str) -> Result<Vec<u16>, String> {
        let choice = PartitionChoice::parse(text).unwrap();
        let partitions = choice.of(PartitionCount::new(count).unwrap(), host)?;
        Ok(partitions.into_iter().map(Partition::number).collect())
    }

    #[test]
    fn a_process_runs_all_the_named_or_its_share_of_the_partitions() {
        let host = "crawl-2.crawls.default.svc";
        assert_eq!(chosen("all", 4, host), Ok(vec![0, 1, 2, 3]));
        assert_eq!(chosen("0-1, 3,1", 4, host), Ok(vec![0, 1, 3]));
        assert_eq!(chosen("ordinal", 4, host), Ok(vec![2]));
        assert_eq!(chosen("ordinal/3", 8, host), Ok(vec![2, 5]));
        for (text, host) in [("ordinal", "crawl"), ("ordinal", "crawl-x"), ("ordinal/2", host)] {
            let error = chosen(text, 4, host).unwrap_err();
            assert!(error.contains(host), "{error}");
        }
    }

    #[test]
    fn other_words_and_ranges_are_refused() {
        for text in
            ["", "none", "1-", "-1", "3-1", "256", "0;1", "ordinal/", "ordinal/0", "ordinal3"]
        {
            assert_eq!(PartitionChoice::parse(text), None, "{text}");
        }
    }

    #[test]
    fn partitions_share_no_key_and_no_folder() {
        let config = Config::default();
        assert!(config.all_partitions().eq([config.clone()]));
        let mut config = config;
        config.partitions.count = PartitionCount::new(16).unwrap();
        let parts: Vec<_> = config.all_partitions().collect();
        assert_eq!(parts[3].source.key, "demo:discovered:{3.0}");
        assert_eq!(parts[3].crawl_name(), "demo, partition 3 of 16");
        assert_eq!(parts[3].storage.dir, std::path::Path::new("storage/demo/3"));
        assert_eq!(parts[3].filter.capacity, 6250);
        let sources: BTreeSet<_> = parts.iter().map(|it| it.keys().state).collect();
        assert_eq!(sources.len(), 16);
    }
}
