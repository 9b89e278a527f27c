//! Choice of the partitions of a crawl that a process runs.

use std::collections::BTreeSet;
use std::fmt;

use urlseen_fingerprint::{Partition, PartitionCount};

/// Partitions that a process runs, as configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PartitionChoice {
    /// All partitions of the crawl.
    All,
    /// Partitions with these numbers.
    Numbers(BTreeSet<u16>),
    /// The share of a process whose host name ends with `-0`, `-1` and so on, with the number of
    /// processes that share the partitions; `None` for one process for each partition.
    Ordinal(Option<u16>),
}

impl PartitionChoice {
    /// Returns the chosen partitions, in order. `host` is the name of this host.
    ///
    /// # Errors
    /// The host name has no number, or too large a number. The text says so.
    pub(crate) fn of(&self, count: PartitionCount, host: &str) -> Result<Vec<Partition>, String> {
        let all = count.partitions();
        Ok(match self {
            Self::All => all.collect(),
            Self::Numbers(numbers) => all.filter(|it| numbers.contains(&it.number())).collect(),
            Self::Ordinal(processes) => {
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
            Self::All | Self::Ordinal(None) => 0,
            Self::Numbers(numbers) => numbers.last().copied().unwrap_or(0),
            Self::Ordinal(Some(processes)) => processes - 1,
        }
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        if let Some(ordinal) = text.strip_prefix("ordinal") {
            let Some(number) = ordinal.strip_prefix('/') else {
                return ordinal.is_empty().then_some(Self::Ordinal(None));
            };
            let processes = number.parse().ok().filter(|number| (1..=256).contains(number))?;
            return Some(Self::Ordinal(Some(processes)));
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
            Self::Ordinal(None) => f.write_str("ordinal"),
            Self::Ordinal(Some(processes)) => write!(f, "ordinal/{processes}"),
        }
    }
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
}
