//! Calls for the Scrapy package, whose reactor must not wait for an absent server, and which keeps
//! the links of a page in its own order.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use redis::{Cmd, Value};

use super::Consumer;
use super::links::Addressed;
use super::partition::{RecordFields, put_back, read_as, reading};
use crate::{Error, ErrorKind};
use urlseen_fingerprint::Fingerprint;
use urlseen_redis::protocol::HeldRecord;

/// Maximum time to wait for the end of the heartbeats.
const STOP: Duration = Duration::from_secs(1);

#[doc(hidden)]
impl Consumer {
    /// Returns the sources of all partitions.
    pub fn sources(&self) -> Vec<String> {
        self.crawl.partitions.iter().map(|partition| partition.source.clone()).collect()
    }

    /// Returns the number of the partition to which a fingerprint belongs, from its hex digits.
    pub fn partition_of(&self, fingerprint: &str) -> usize {
        self.crawl.number(&Fingerprint::from_text(fingerprint.as_bytes()))
    }

    /// Returns a number that grows when a crawl record changes.
    ///
    /// # Errors
    /// The partition table has changed.
    pub fn changes(&self) -> Result<u64, Error> {
        self.crawl.check_table()?;
        Ok(self.crawl.partitions.iter().map(|it| it.changes.load(Relaxed)).sum())
    }

    /// Returns the records of all partitions. `None` stands for a missing one.
    ///
    /// # Errors
    /// This version cannot use a record.
    pub fn records(&self) -> Result<Vec<Option<HeldRecord>>, Error> {
        let record = |number| match self.crawl.calls(number) {
            Ok(calls) => Ok(Some(calls.record().clone())),
            Err(error) if error.kind() == ErrorKind::NoCrawl => Ok(None),
            Err(error) => Err(error),
        };
        (0..self.crawl.partitions.len()).map(record).collect()
    }

    /// Reads the records that were missing so far, and the partition table.
    ///
    /// # Errors
    /// Redis refuses a call, or no partition answers.
    pub fn read_missing(&self) -> Result<(), Error> {
        let missing: Vec<usize> = self.crawl.missing().collect();
        let question =
            |&number: &usize| (Some(number), reading(&self.crawl.partitions[number].source).into());
        let questions: Vec<Addressed> = missing.iter().map(question).collect();
        for (number, answer) in missing.into_iter().zip(self.ask_all(&questions, 0)) {
            match answer.and_then(read_as::<RecordFields>) {
                Ok(fields) => self.crawl.partitions[number].update(&fields),
                Err(error) if error.kind() == ErrorKind::Redis && !self.is_away() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Sends commands to partitions, or to the whole crawl (`None`), before it waits for the
    /// answers. Repeats none of them.
    pub fn ask(&self, commands: &[(Option<usize>, Vec<Vec<u8>>)]) -> Vec<Result<Value, Error>> {
        let question = |(partition, words): &(Option<usize>, Vec<Vec<u8>>)| {
            let mut command = Cmd::new();
            command.arg(words);
            (*partition, command.into())
        };
        let questions: Vec<Addressed> = commands.iter().map(question).collect();
        self.ask_all(&questions, 0)
    }

    /// Returns true if no partition can be asked now. Call this after a failed call.
    pub fn is_away(&self) -> bool {
        self.links.are_away()
    }

    /// Returns the error because of which the calls of a partition now fail at once.
    pub fn rests(&self, partition: usize) -> Option<String> {
        self.links.open_circuit(self.links.place(Some(partition)))
    }

    /// Counts the items that wait in all sources. Those of partitions that are away count 0.
    ///
    /// # Errors
    /// Redis refuses a call, or no partition answers.
    pub fn source_len(&self) -> Result<u64, Error> {
        let length = |partition, key: &str| (partition, Cmd::llen(key).into());
        let all = self.crawl.partitions.iter().enumerate();
        let mut questions: Vec<Addressed> =
            all.map(|(number, it)| length(Some(number), &it.source)).collect();
        if self.crawl.is_divided() {
            questions.extend(self.crawl.unrouted().iter().map(|key| length(None, key)));
        }
        let read = |answer: Result<Value, Error>| match answer.and_then(read_as) {
            Err(error) if error.kind() == ErrorKind::Redis && !self.is_away() => Ok(0),
            length => length,
        };
        self.ask_all(&questions, 0).into_iter().map(read).sum()
    }

    /// Requeues all deliveries, and removes the consumer from the crawl. Returns the number of
    /// requeued deliveries, and the error of a partition that was not left. Then the program may
    /// repeat the call.
    pub fn leave(&self) -> (u64, Option<Error>) {
        self.abandon(STOP);
        let (mut requeued, mut failed) = (0, None);
        let requeue = |number: usize| {
            // Also a consumer of a crawl with another table now may leave.
            let calls = self.crawl.partitions[number].calls().ok()?;
            Some((Some(number), calls.requeue(&self.crawl.consumer, "", &[])))
        };
        let questions: Vec<Addressed> = self.own().into_iter().filter_map(requeue).collect();
        for answer in self.ask_all(&questions, 0) {
            match answer.and_then(put_back) {
                Ok(count) => requeued += count,
                Err(error) => failed = Some(error),
            }
        }
        (requeued, failed)
    }

    /// Ends the heartbeats, and leaves the deliveries to other consumers.
    pub fn abandon(&self, timeout: Duration) {
        self.crawl.is_abandoned.store(true, Relaxed);
        self.stop(timeout);
    }
}
