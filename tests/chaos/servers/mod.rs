//! Crawls with 16 partitions on a group of servers. Servers and processes of urlseen are killed,
//! paused and replaced, and slots move.

mod crawl;
mod group;
mod node;
mod round;

pub(crate) use round::Plan;

/// Redis servers of a round. The comments are the help of the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Servers {
    /// one server, which crashes and goes back to older data
    Single,
    /// Redis Cluster of three primaries, each with a replica
    Cluster,
    /// a primary with two replicas, and three Sentinels
    Sentinel,
}

impl Servers {
    pub(crate) fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }
}
