//! Work of a command on the partitions of a crawl, one after the other.

use urlseen_core::fingerprint::Partition;
use urlseen_engine::config::Config;

use super::Outcome;
use crate::admin::printable::say;

/// Part of a command's work that belongs to one partition.
pub(super) trait Part {
    /// Returns the partition.
    fn partition(&self) -> Partition;
}

impl Part for Config {
    fn partition(&self) -> Partition {
        self.partition
    }
}

impl<T> Part for (Config, T) {
    fn partition(&self) -> Partition {
        self.0.partition
    }
}

/// Does the work for each partition, in order. Names each partition on standard error, if there are
/// several. If the work fails for a partition of a crawl with several
/// ones, prints the failure and goes on with the others. Returns the gravest of all outcomes.
///
/// # Errors
/// The work for the only partition fails, or the program that reads the output has closed it.
pub(super) fn each<P: Part>(
    parts: impl IntoIterator<Item = P>,
    mut work: impl FnMut(P) -> anyhow::Result<Outcome>,
) -> anyhow::Result<Outcome> {
    let mut gravest = Outcome::Done;
    for part in parts {
        let partition = part.partition();
        if partition.has_others() {
            say(format_args!("partition {partition}:"));
        }
        let outcome = work(part).or_else(|error| failed(partition, error))?;
        gravest = gravest.max(outcome);
    }
    Ok(gravest)
}

/// Prints the failure of the work for a partition, if the crawl has others.
fn failed(partition: Partition, error: anyhow::Error) -> anyhow::Result<Outcome> {
    if !partition.has_others() || super::is_broken_pipe(&error) {
        return Err(error);
    }
    say(format_args!("urlseen: partition {partition}: {error:#}"));
    Ok(Outcome::of(&error))
}
