//! Work of a command on the partitions of a crawl, one after the other.

use urlseen_core::fingerprint::Partition;
use urlseen_engine::config::Config;

use super::Outcome;
use crate::admin::printable::say;

/// Does the work for each partition, in order. Names each partition on standard error, if there are
/// several. If the work fails for a partition of a crawl with several ones, prints the failure and
/// goes on with the others. Returns the gravest of all outcomes.
///
/// # Errors
/// The work for the only partition fails, or the program that reads the output has closed it.
pub(super) fn each(
    configs: Vec<Config>,
    mut work: impl FnMut(Config) -> anyhow::Result<Outcome>,
) -> anyhow::Result<Outcome> {
    let mut gravest = Outcome::Done;
    for config in configs {
        let partition = config.partition;
        if partition.has_others() {
            say(format_args!("partition {partition}:"));
        }
        let outcome = work(config).or_else(|error| failed(partition, error))?;
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
