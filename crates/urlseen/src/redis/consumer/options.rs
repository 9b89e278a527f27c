//! Limits, timeouts and retries of a consumer.

use std::time::Duration;

use crate::{Error, ErrorKind, RedisOptions};
use urlseen_filter::id;

/// Largest allowed `max_held`. Each heartbeat lists all requests that the consumer holds.
const MOST_HELD: usize = 2000;

/// Largest allowed `max_push_bytes`. A push of this size is below every default limit of Redis.
const MOST_PUSHED: usize = 128 << 20;

/// Maximum length of a name in bytes. The name is a part of Redis keys.
const MOST_NAME: usize = 200;

/// Limits, timeouts and retries of a [`Consumer`](crate::Consumer).
///
/// ```
/// use urlseen::ConsumerOptions;
///
/// let options = ConsumerOptions { max_held: 50, ..ConsumerOptions::default() };
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsumerOptions {
    /// Name of the consumer. `urlseen held list` shows this name with `#` and a random number. The
    /// name has 1 to 200 bytes, without white space, control characters and `#`. The default is the
    /// host name and the process id.
    pub name: String,
    /// Numbers of the partitions from which the consumer pops, in a crawl with several partitions.
    /// The default is an empty list: the consumer pops from all of them. Together, the consumers of
    /// a crawl must pop from all partitions.
    pub partitions: Vec<u16>,
    /// Maximum number of requests that the consumer holds at the same time, 1 to 2000. The default
    /// is 1000.
    pub max_held: usize,
    /// Maximum size in bytes of the links of one [`finish`](crate::Consumer::finish), 1 byte to 128
    /// MiB. The default is 16 MiB.
    pub max_push_bytes: usize,
    /// Maximum number of repetitions of a failed call, each on a new connection. The wait before a
    /// repetition is at most 50 ms at first, and doubles each time up to 2 s. A repeated call does
    /// not make a change a second time. The default is 6. With 0 in a Redis Cluster, a failed call
    /// opens a circuit breaker: until the node is found again, calls to it fail at once, and pops
    /// go on with other partitions.
    pub retries: u32,
    /// Maximum time to wait for a connection. The default is 2 s.
    pub connect_timeout: Duration,
    /// Maximum time to wait for an answer. The default is 10 s.
    pub response_timeout: Duration,
    /// Maximum time for which a consumer requeues its held requests when the program drops it.
    /// Other consumers requeue the remaining requests after `held.timeout`, a setting of the
    /// daemon. The default is 10 s.
    pub stop_timeout: Duration,
}

impl Default for ConsumerOptions {
    fn default() -> Self {
        let redis = RedisOptions::default();
        Self {
            name: process(),
            partitions: Vec::new(),
            max_held: 1000,
            max_push_bytes: 16 << 20,
            retries: redis.retries,
            connect_timeout: redis.connect_timeout,
            response_timeout: redis.response_timeout,
            stop_timeout: Duration::from_secs(10),
        }
    }
}

impl ConsumerOptions {
    /// Returns an error if a consumer cannot have these options.
    pub(super) fn check(&self) -> Result<(), Error> {
        let is_odd = |c: char| c.is_whitespace() || c.is_control() || c == '#';
        let problem = if self.name.is_empty() || self.name.contains(is_odd) {
            format!("name is {:?}; it must have characters, but no white space and no #", self.name)
        } else if self.name.len() > MOST_NAME {
            format!("name has {} bytes; at most {MOST_NAME} are allowed", self.name.len())
        } else if !(1..=MOST_HELD).contains(&self.max_held) {
            format!("max_held is {}; it may be 1 to {MOST_HELD}", self.max_held)
        } else if !(1..=MOST_PUSHED).contains(&self.max_push_bytes) {
            format!("max_push_bytes is {}; it may be 1 to {MOST_PUSHED}", self.max_push_bytes)
        } else {
            return Ok(());
        };
        Err(Error::new(ErrorKind::Spec, format!("ConsumerOptions: {problem}")))
    }

    /// Returns the numbers of the partitions from which the consumer pops, in ascending order, if
    /// the crawl has `count` of them.
    pub(super) fn own(&self, count: usize) -> Result<Vec<usize>, Error> {
        let mut chosen: Vec<usize> = self.partitions.iter().copied().map(usize::from).collect();
        if let Some(missing) = chosen.iter().find(|&&number| number >= count) {
            let text = format!(
                "ConsumerOptions: partitions has {missing}; the crawl has {count}, with the \
                 numbers 0 to {}. urlseen divides a crawl at its start (partitions.count in its \
                 config), so start it before the consumers",
                count - 1
            );
            return Err(Error::new(ErrorKind::Spec, text));
        }
        chosen.sort_unstable();
        chosen.dedup();
        Ok(if chosen.is_empty() { (0..count).collect() } else { chosen })
    }

    /// Returns the name with a random suffix, so that no two processes share a name.
    pub(super) fn incarnation(&self) -> String {
        format!("{}#{:016x}", self.name, id::random())
    }

    /// Returns the timeouts and retries of all calls except heartbeats.
    pub(super) fn redis(&self) -> RedisOptions {
        RedisOptions {
            retries: self.retries,
            connect_timeout: self.connect_timeout,
            response_timeout: self.response_timeout,
        }
    }
}

/// Returns the host name and the process id.
fn process() -> String {
    let system = rustix::system::uname();
    let host = system.nodename().to_str().unwrap_or_default();
    let host: String = host.chars().filter(|c| c.is_ascii_graphic() && *c != '#').collect();
    format!("{host}-{}", std::process::id())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_allowed() {
        ConsumerOptions::default().check().unwrap();
    }

    #[test]
    fn options_out_of_bounds_are_refused_by_name() {
        let options = ConsumerOptions::default;
        let name = |name: &str| ConsumerOptions { name: name.to_owned(), ..options() };
        for (wrong, part) in [
            (name(""), "name"),
            (name("a b"), "name"),
            (name("a#1"), "name"),
            (name("a\n"), "name"),
            (name(&"a".repeat(201)), "name"),
            (ConsumerOptions { max_held: 0, ..options() }, "max_held"),
            (ConsumerOptions { max_held: 2001, ..options() }, "max_held"),
            (ConsumerOptions { max_push_bytes: 0, ..options() }, "max_push_bytes"),
            (ConsumerOptions { max_push_bytes: 1 << 30, ..options() }, "max_push_bytes"),
        ] {
            let error = wrong.check().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Spec);
            assert!(error.to_string().contains(part), "{error}");
        }
    }

    #[test]
    fn a_partition_that_the_crawl_does_not_have_is_refused() {
        let own = |partitions: &[u16], count| {
            let partitions = partitions.to_vec();
            ConsumerOptions { partitions, ..ConsumerOptions::default() }.own(count)
        };
        assert_eq!(own(&[7, 2, 4, 2], 8).unwrap(), [2, 4, 7]);
        assert_eq!(own(&[], 3).unwrap(), [0, 1, 2]);
        let error = own(&[0, 4], 4).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Spec);
        assert!(error.to_string().contains("has 4; the crawl has 4, with the numbers 0 to 3"));
    }

    #[test]
    fn each_consumer_gets_a_suffix_of_its_own() {
        let options = ConsumerOptions::default();
        assert_ne!(options.incarnation(), options.incarnation());
    }
}
