//! Counts of the unfinished requests of a crawl.

use std::collections::BTreeMap;

use redis::Cmd;
use urlseen_redis::protocol::{HeldCalls, HeldCount};

use super::Consumer;
use super::crawl::Crawl;
use crate::Error;
use crate::redis::links::{read_as, unexpected};

/// Maximum number of tries to count the requests of a crawl. A try fails if consumers came or went
/// since the previous try.
const COUNTS: usize = 5;

impl Consumer {
    /// Returns the number of unfinished requests of the crawl. An unfinished request waits in the
    /// source or the sink, is processed by the daemon, or is held by a consumer. If the number is
    /// 0, the crawl is complete.
    ///
    /// A crawl that several daemons share cannot be counted at one moment. So the number is at
    /// least 1 if a consumer pops a request during the count.
    ///
    /// # Errors
    /// Redis is unreachable.
    pub fn pending(&self) -> Result<u64, Error> {
        // Several crawls are not counted at one moment, and a page that is finished meanwhile leads
        // to requests in others. So 0 counts only if it is also the result of a second count, and
        // if no consumer has popped a request in between, which would change its heartbeat. The
        // number is 1 if consumers pop or beat during every try.
        let total = self.total()?;
        if total > 0 || !self.crawls.is_divided() {
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

    /// Returns the sum of the counts of all crawls, and of the items that wait for `urlseen route`.
    fn total(&self) -> Result<u64, Error> {
        let unrouted = self.ask_all(&self.crawls.unrouted(), self.options.retries);
        let unrouted = unrouted.into_iter().map(|answer| read_as::<u64>(answer?));
        let mut total = unrouted.sum::<Result<u64, Error>>()?;
        let mut uncounted: Vec<&Crawl> = self.crawls.recorded().collect();
        for _ in 0..COUNTS {
            let count = |crawl: &Crawl, calls: &HeldCalls| calls.count(&crawl.consumers());
            let answers = self.ask_each(&uncounted, self.options.retries, count)?;
            let mut again = Vec::new();
            for (&crawl, answer) in uncounted.iter().zip(answers) {
                match HeldCalls::counted(answer?).map_err(unexpected)? {
                    HeldCount::Requests(count) => total += count,
                    HeldCount::Consumers(consumers) => {
                        *crawl.consumers() = consumers;
                        again.push(crawl);
                    }
                }
            }
            uncounted = again;
            if uncounted.is_empty() {
                break;
            }
        }
        // If the consumers of a crawl change all the time, the crawl is still active.
        Ok(total + uncounted.len() as u64)
    }

    /// Returns the heartbeats of all consumers, in each crawl.
    fn beats(&self) -> Result<Vec<BTreeMap<String, String>>, Error> {
        let all: Vec<&Crawl> = self.crawls.recorded().collect();
        let answers = self
            .ask_each(&all, self.options.retries, |_, calls| Cmd::hgetall(&calls.keys.consumers))?;
        answers.into_iter().map(|answer| read_as(answer?)).collect()
    }
}
