//! Calls for the Scrapy package, whose reactor must not wait for an absent server.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::{Duration, Instant};

use redis::Cmd;

use super::crawl::{Crawl, RecordFields, put_back, reading};
use super::push::Items;
use super::{Consumer, PAUSES};
use crate::redis::links::{Addressed, read_as};
use crate::{Error, ErrorKind};
use urlseen_fingerprint::Fingerprint;
use urlseen_redis::protocol::{HeldRecord, push_once};

/// Maximum time to wait for the end of the heartbeats.
const STOP: Duration = Duration::from_secs(1);

#[doc(hidden)]
impl Consumer {
    /// Returns the sources of all crawls.
    pub fn sources(&self) -> Vec<String> {
        self.crawls.all.iter().map(|crawl| crawl.source.clone()).collect()
    }

    /// Returns the number of the crawl to which a fingerprint belongs, from its hex digits.
    pub(super) fn number_of(&self, fingerprint: &str) -> usize {
        self.crawls.number(&Fingerprint::from_text(fingerprint.as_bytes()))
    }

    /// Returns the records of all crawls, if one has changed since the last call. Reads those that
    /// were missing so far. `None` stands for a missing one.
    ///
    /// # Errors
    /// The table has changed, this version cannot use a record, Redis refuses a call, or no server
    /// answers.
    pub fn changed_records(&self) -> Result<Option<Vec<Option<HeldRecord>>>, Error> {
        self.read_missing()?;
        self.crawls.check_table()?;
        let changed = |crawl: &&Arc<Crawl>| crawl.is_changed.swap(false, Relaxed);
        if self.crawls.all.iter().filter(changed).count() == 0 {
            return Ok(None);
        }
        let record = |crawl: &Arc<Crawl>| match crawl.calls() {
            Ok(calls) => Ok(Some(calls.record.clone())),
            Err(error) if error.kind() == ErrorKind::NoCrawl => Ok(None),
            Err(error) => Err(error),
        };
        self.crawls.all.iter().map(record).collect::<Result<_, _>>().map(Some)
    }

    fn read_missing(&self) -> Result<(), Error> {
        let missing: Vec<&Crawl> = self.crawls.missing().collect();
        let questions: Vec<Addressed> =
            missing.iter().map(|it| (it.place, reading(&it.source).into())).collect();
        for (crawl, answer) in missing.into_iter().zip(self.ask_all(&questions, 0)) {
            if let Some(fields) = self.unless_away(answer.and_then(read_as::<RecordFields>))? {
                crawl.update(&fields);
            }
        }
        Ok(())
    }

    /// Counts the requests of the crawl as [`Consumer::pending`] does, and those in the sources of
    /// crawls without a record. Returns at least 1 if a server is away.
    ///
    /// # Errors
    /// Redis refuses a call, or no server answers.
    pub(super) fn count(&self) -> Result<u64, Error> {
        let waiting = self.lengths(self.crawls.missing().map(source_length));
        let counted = waiting.into_iter().sum::<Result<u64, Error>>().and_then(|waiting| {
            // A daemon that began meanwhile may hold items that are in neither source nor sink.
            self.read_missing()?;
            Ok(waiting + self.pending()?)
        });
        Ok(self.unless_away(counted)?.unwrap_or(1))
    }

    /// Pushes a batch of items with their fingerprints (hex digits) to their sources. Pushes
    /// nothing to a source if this batch was the last one that this call pushed there. `name` is
    /// the name of the batch.
    ///
    /// # Errors
    /// Redis refuses a call, or a server does not answer. Then the program may repeat the call.
    pub fn push_once(&self, name: &str, items: Vec<(String, Vec<u8>)>) -> Result<(), Error> {
        let mut batches = Items::new();
        for (fingerprint, item) in items {
            batches.entry(self.number_of(&fingerprint)).or_default().push(item);
        }
        let question = |(number, items): (usize, _)| {
            let crawl = &self.crawls.all[number];
            (crawl.place, push_once(&crawl.source, name, items))
        };
        let questions: Vec<Addressed> = batches.into_iter().map(question).collect();
        self.ask_all(&questions, 0).into_iter().try_for_each(|answer| answer.map(drop))
    }

    /// Returns the number of rejects that came since the last call, and the newest one of them.
    /// Leaves out those of servers that are away.
    ///
    /// # Errors
    /// Redis refuses a call, or no server answers.
    pub fn new_rejects(&self) -> Result<(u64, Option<Vec<u8>>), Error> {
        let recorded: Vec<&Crawl> = self.crawls.recorded().collect();
        let lengths = self.ask_each(&recorded, 0, |_, calls| Cmd::llen(&calls.record.rejects))?;
        let (mut new, mut last) = (0, None);
        for (crawl, length) in recorded.into_iter().zip(lengths) {
            let Some(length) = self.unless_away(length.and_then(read_as))? else { continue };
            let before = crawl.rejects.swap(length, Relaxed);
            if length > before {
                new += length - before;
                last = Some(crawl);
            }
        }
        let Some(crawl) = last else { return Ok((0, None)) };
        let newest = Cmd::lindex(&self.crawls.calls(crawl)?.record.rejects, -1);
        Ok((new, read_as(self.ask_one(crawl, newest.into())?)?))
    }

    /// Returns `None` in place of an error if only some servers are away.
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

    /// Returns true if no server can be asked now. Call this after a failed call.
    pub(super) fn is_away(&self) -> bool {
        self.links.are_away()
    }

    /// Returns the error because of which the calls of a crawl now fail at once.
    pub fn rests(&self, number: usize) -> Option<String> {
        self.links.open_circuit(self.crawls.all[number].place)
    }

    /// Counts the items that wait in all sources. Those of servers that are away count 0.
    ///
    /// # Errors
    /// Redis refuses a call, or no server answers.
    pub fn source_len(&self) -> Result<u64, Error> {
        let sources = self.crawls.all.iter().map(|crawl| source_length(crawl));
        let lengths = self.lengths(sources.chain(self.crawls.unrouted()));
        lengths.into_iter().map(|it| Ok(self.unless_away(it)?.unwrap_or(0))).sum()
    }

    /// Requeues all deliveries, and removes the consumer from the crawl. Repeats this for `wait` if
    /// a server is away. Returns the number of requeued deliveries, and the last error.
    pub(super) fn leave(&self, wait: Duration) -> (u64, Option<Error>) {
        let end = Instant::now() + wait;
        self.abandon(STOP);
        let mut requeued = 0;
        loop {
            let mut failed = None;
            let requeue = |crawl: &Arc<Crawl>| {
                // Also a consumer of a crawl with another table now may leave.
                Some((crawl.place, crawl.calls().ok()?.requeue(self.name(), "", &[])))
            };
            let questions: Vec<Addressed> = self.own().filter_map(requeue).collect();
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
    pub(super) fn abandon(&self, timeout: Duration) {
        self.crawls.is_abandoned.store(true, Relaxed);
        self.stop(timeout);
    }
}

/// Asks for the length of a source.
fn source_length(crawl: &Crawl) -> Addressed {
    (crawl.place, Cmd::llen(&crawl.source).into())
}
