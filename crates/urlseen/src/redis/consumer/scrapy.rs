//! Calls for the Scrapy package, whose reactor must not wait for an absent server.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::{Duration, Instant};

use redis::Cmd;

use super::links::Addressed;
use super::partition::{Partition, RecordFields, put_back, read_as, reading};
use super::{Consumer, PAUSES};
use crate::{Error, ErrorKind};
use urlseen_fingerprint::Fingerprint;
use urlseen_redis::protocol::{HeldRecord, push_once};

/// Maximum time to wait for the end of the heartbeats.
const STOP: Duration = Duration::from_secs(1);

#[doc(hidden)]
impl Consumer {
    /// Returns the sources of all partitions.
    pub fn sources(&self) -> Vec<String> {
        self.crawl.partitions.iter().map(|partition| partition.source.clone()).collect()
    }

    /// Returns the number of the partition to which a fingerprint belongs, from its hex digits.
    pub(super) fn partition_of(&self, fingerprint: &str) -> usize {
        self.crawl.number(&Fingerprint::from_text(fingerprint.as_bytes()))
    }

    /// Reads the records that were missing so far. Returns a number that grows when a record
    /// changes.
    ///
    /// # Errors
    /// The partition table has changed, Redis refuses a call, or no partition answers.
    pub fn changes(&self) -> Result<u64, Error> {
        if self.crawl.missing().next().is_some() {
            self.read_missing()?;
        }
        self.crawl.check_table()?;
        Ok(self.crawl.partitions.iter().map(|it| it.changes.load(Relaxed)).sum())
    }

    /// Returns the records of all partitions. `None` stands for a missing one.
    ///
    /// # Errors
    /// This version cannot use a record.
    pub fn records(&self) -> Result<Vec<Option<HeldRecord>>, Error> {
        let record = |number| match self.crawl.calls(number) {
            Ok(calls) => Ok(Some(calls.record.clone())),
            Err(error) if error.kind() == ErrorKind::NoCrawl => Ok(None),
            Err(error) => Err(error),
        };
        (0..self.crawl.partitions.len()).map(record).collect()
    }

    fn read_missing(&self) -> Result<(), Error> {
        let missing: Vec<usize> = self.crawl.missing().collect();
        let question =
            |&number: &usize| (Some(number), reading(&self.crawl.partitions[number].source).into());
        let questions: Vec<Addressed> = missing.iter().map(question).collect();
        for (number, answer) in missing.into_iter().zip(self.ask_all(&questions, 0)) {
            if let Some(fields) = self.unless_away(answer.and_then(read_as::<RecordFields>))? {
                self.crawl.partitions[number].update(&fields);
            }
        }
        Ok(())
    }

    /// Counts the requests of the crawl as [`Consumer::pending`] does, and those in the sources of
    /// partitions without a record. Returns at least 1 if a partition is away.
    ///
    /// # Errors
    /// Redis refuses a call, or no partition answers.
    pub fn count(&self) -> Result<u64, Error> {
        let missing: Vec<usize> = self.crawl.missing().collect();
        let counted = self.lengths(missing.iter().map(|&number| {
            (Some(number), Cmd::llen(&self.crawl.partitions[number].source).into())
        }));
        let counted = counted.into_iter().sum::<Result<u64, Error>>().and_then(|waiting| {
            if !missing.is_empty() {
                // A daemon that began meanwhile may hold items that are in neither source nor sink.
                self.read_missing()?;
            }
            Ok(waiting + self.pending()?)
        });
        Ok(self.unless_away(counted)?.unwrap_or(1))
    }

    /// Pushes a batch of items with their fingerprints (hex digits) to the sources of their
    /// partitions. Pushes nothing to a source if this batch was the last one that this call pushed
    /// there. `name` is the name of the batch.
    ///
    /// # Errors
    /// Redis refuses a call, or a partition does not answer. Then the program may repeat the call.
    pub fn push_once(&self, name: &str, items: Vec<(String, Vec<u8>)>) -> Result<(), Error> {
        let mut batches = BTreeMap::<usize, Vec<Vec<u8>>>::new();
        for (fingerprint, item) in items {
            batches.entry(self.partition_of(&fingerprint)).or_default().push(item);
        }
        let question = |(number, items)| {
            let partition: &Partition = &self.crawl.partitions[number];
            (Some(number), push_once(&partition.source, name, items))
        };
        let questions: Vec<Addressed> = batches.into_iter().map(question).collect();
        self.ask_all(&questions, 0).into_iter().try_for_each(|answer| answer.map(drop))
    }

    /// Returns the number of rejects of each partition with a record, if it answers.
    ///
    /// # Errors
    /// Redis refuses a call, or no partition answers.
    pub fn rejects(&self) -> Result<BTreeMap<usize, u64>, Error> {
        let recorded: Vec<usize> = self.crawl.recorded().collect();
        let lengths = self.ask_each(&recorded, 0, |_, calls| Cmd::llen(&calls.record.rejects))?;
        let mut found = BTreeMap::new();
        for (number, length) in recorded.into_iter().zip(lengths) {
            if let Some(length) = self.unless_away(length.and_then(read_as))? {
                found.insert(number, length);
            }
        }
        Ok(found)
    }

    /// Returns the newest reject of a partition.
    ///
    /// # Errors
    /// Redis refuses the call, or does not answer.
    pub fn last_reject(&self, partition: usize) -> Result<Option<Vec<u8>>, Error> {
        let key = self.crawl.calls(partition)?.record.rejects.clone();
        read_as(self.ask_one(partition, Cmd::lindex(key, -1).into())?)
    }

    /// Returns `None` in place of an error if only some partitions are away.
    fn unless_away<T>(&self, answer: Result<T, Error>) -> Result<Option<T>, Error> {
        match answer {
            Err(error) if error.kind() == ErrorKind::Redis && !self.is_away() => Ok(None),
            answer => answer.map(Some),
        }
    }

    /// Asks for the lengths of lists.
    fn lengths(&self, questions: impl Iterator<Item = Addressed>) -> Vec<Result<u64, Error>> {
        let answers = self.ask_all(&questions.collect::<Vec<_>>(), 0);
        answers.into_iter().map(|answer| answer.and_then(read_as)).collect()
    }

    /// Returns true if no partition can be asked now. Call this after a failed call.
    pub(super) fn is_away(&self) -> bool {
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
        let sources = all.map(|(number, it)| length(Some(number), &it.source));
        let unrouted = self.crawl.unrouted();
        let unrouted = unrouted.iter().filter(|_| self.crawl.is_divided());
        let lengths = self.lengths(sources.chain(unrouted.map(|key| length(None, key))));
        lengths.into_iter().map(|it| Ok(self.unless_away(it)?.unwrap_or(0))).sum()
    }

    /// Requeues all deliveries, and removes the consumer from the crawl. Repeats this for `wait` if
    /// a partition is away. Returns the number of requeued deliveries, and the last error.
    pub fn leave(&self, wait: Duration) -> (u64, Option<Error>) {
        let end = Instant::now() + wait;
        self.abandon(STOP);
        let mut requeued = 0;
        loop {
            let mut failed = None;
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
            if failed.is_none() || Instant::now() >= end {
                return (requeued, failed);
            }
            thread::sleep(PAUSES[0]);
        }
    }

    /// Ends the heartbeats, and leaves the deliveries to other consumers.
    pub fn abandon(&self, timeout: Duration) {
        self.crawl.is_abandoned.store(true, Relaxed);
        self.stop(timeout);
    }
}
