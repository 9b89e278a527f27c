//! Counts of the unfinished requests of a crawl.

use std::collections::BTreeMap;

use redis::Cmd;
use urlseen_redis::protocol::{HeldCalls, HeldCount};

use super::Consumer;
use super::partition::{read_as, unexpected};
use crate::Error;

/// Maximum number of tries to count the requests of a crawl. A try fails if consumers came or went
/// since the previous try.
const COUNTS: usize = 5;

impl Consumer {
    /// Returns the number of unfinished requests of the crawl. An unfinished request waits in the
    /// source or the sink, is processed by the daemon, or is held by a consumer. If the number is
    /// 0, the crawl is complete.
    ///
    /// The partitions of a crawl cannot be counted at one moment. So the number is at least 1 if a
    /// consumer pops a request during the count.
    ///
    /// # Errors
    /// Redis is unreachable.
    pub fn pending(&self) -> Result<u64, Error> {
        // The partitions are not counted at one moment, and a page that is finished meanwhile leads
        // to requests in other partitions. So 0 counts only if it is also the result of a second
        // count, and if no consumer has popped a request in between, which would change its
        // heartbeat. The number is 1 if consumers pop or beat during every try.
        let total = self.total()?;
        if total > 0 || !self.crawl.is_divided() {
            return Ok(total);
        }
        for _ in 0..COUNTS {
            let before = self.beats()?;
            for _ in 0..2 {
                let total = self.total()?;
                if total > 0 {
                    return Ok(total);
                }
            }
            if self.beats()? == before {
                return Ok(0);
            }
        }
        Ok(1)
    }

    /// Returns the sum of the counts of all partitions, and of the items that wait for `urlseen
    /// route`.
    fn total(&self) -> Result<u64, Error> {
        let mut total = self.unrouted()?;
        let mut uncounted: Vec<usize> = self.crawl.recorded().collect();
        for _ in 0..COUNTS {
            let count = |number: usize, calls: &HeldCalls| {
                calls.count(&self.crawl.partitions[number].consumers())
            };
            let answers = self.ask_each(&uncounted, self.options.retries, count)?;
            let mut again = Vec::new();
            for (&number, answer) in uncounted.iter().zip(answers) {
                match HeldCalls::counted(answer?).map_err(|error| unexpected(&error))? {
                    HeldCount::Requests(count) => total += count,
                    HeldCount::Consumers(consumers) => {
                        *self.crawl.partitions[number].consumers() = consumers;
                        again.push(number);
                    }
                }
            }
            uncounted = again;
            if uncounted.is_empty() {
                break;
            }
        }
        // If the consumers of a partition change all the time, the crawl is still active.
        Ok(total + uncounted.len() as u64)
    }

    /// Counts the items that wait for `urlseen route`.
    fn unrouted(&self) -> Result<u64, Error> {
        if !self.crawl.is_divided() {
            return Ok(0);
        }
        let questions = self.crawl.unrouted().map(|key| (None, Cmd::llen(key).into()));
        let answers = self.ask_all(&questions, self.options.retries);
        answers.into_iter().map(|answer| read_as::<u64>(answer?)).sum()
    }

    /// Returns the heartbeats of all consumers, in each partition.
    fn beats(&self) -> Result<Vec<BTreeMap<String, String>>, Error> {
        let all: Vec<usize> = self.crawl.recorded().collect();
        let answers = self.ask_each(&all, self.options.retries, |_, calls| calls.consumers())?;
        answers.into_iter().map(|answer| read_as(answer?)).collect()
    }
}
