//! Counts of the unfinished requests of a crawl.

use std::collections::BTreeMap;

use redis::{Cmd, cmd};
use urlseen_core::redis::held::{Calls, Counted};
use urlseen_core::redis::script::Call;

use super::Consumer;
use super::partition::{read_as, unexpected};
use crate::Error;

/// Maximum number of tries to count the requests of a crawl. A try fails if consumers came or went
/// since the previous try.
const COUNTS: usize = 5;

impl Consumer {
    /// Counts the requests of all partitions. The partitions are not counted at one moment, and a
    /// page that is finished meanwhile leads to requests in other partitions. So 0 counts only if
    /// it is also the result of a second count, and if no consumer has popped a request in between,
    /// which would change its heartbeat. Returns 1 if consumers pop or beat during every try.
    pub(super) fn count(&self) -> Result<u64, Error> {
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
            let count = |number: usize, calls: &Calls| {
                calls.count(&self.crawl.partitions[number].consumers())
            };
            let answers = self.ask_each(&uncounted, self.options.retries, count)?;
            let mut again = Vec::new();
            for (&number, answer) in uncounted.iter().zip(answers) {
                match Calls::counted(answer?).map_err(|error| unexpected(&error))? {
                    Counted::Requests(count) => total += count,
                    Counted::Consumers(consumers) => {
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
        let length = |key| {
            let mut command = cmd("LLEN");
            command.arg(key);
            (None, command.into())
        };
        let questions = self.crawl.unrouted().map(length);
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

/// Question that is safe to repeat.
pub(super) enum Question {
    Command(Cmd),
    Script(Call),
}

impl Question {
    /// Returns the command of the question. If `by_text` is true, the command of a script has the
    /// text of the script, not its hash.
    pub(super) fn command(&self, by_text: bool) -> Cmd {
        match self {
            Self::Command(command) => command.clone(),
            Self::Script(call) if by_text => call.by_text(),
            Self::Script(call) => call.by_hash(),
        }
    }
}

impl From<Cmd> for Question {
    fn from(command: Cmd) -> Self {
        Self::Command(command)
    }
}

impl From<Call> for Question {
    fn from(call: Call) -> Self {
        Self::Script(call)
    }
}
