//! All crawls of a consumer: one for each partition.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use redis::Cmd;

use super::ConsumerOptions;
use super::crawl::{Crawl, RecordFields, no_record, read, reading, refused};
use super::item::Item;
use crate::redis::address::Address;
use crate::redis::link::Link;
use crate::redis::links::{Addressed, Links, read_as};
use crate::{Error, ErrorKind};
use urlseen_fingerprint::{Fingerprint, Fingerprinter, PartitionCount};
use urlseen_redis::hash_tag::{partition_key, partition_tag};
use urlseen_redis::protocol::{HeldCalls, HeldKeys, PartitionTable, RecordError};

/// Crawls as the threads of a consumer share them. Each partition is a crawl with keys of its own.
pub(super) struct Crawls {
    /// Key of the source, without the tag of a partition.
    pub(super) source: String,
    /// Name of the consumer, with a random suffix.
    pub(super) consumer: String,
    /// True if the stopping consumer leaves its deliveries to other consumers.
    pub(super) is_abandoned: AtomicBool,
    /// All partitions, in order, or the only crawl.
    pub(super) all: Vec<Arc<Crawl>>,
    /// Partition table at the start of the consumer. `None` if there is only one crawl.
    table: Option<PartitionTable>,
    /// Reason why the calls cannot be used: the table has changed.
    problem: Mutex<Option<RecordError>>,
    /// Number of pops that wait for an answer.
    popping: Mutex<usize>,
}

impl Crawls {
    /// Reads the partition table and the crawl records for the source with the key `source`.
    /// Records may be missing.
    pub(super) fn open(
        address: &Address,
        source: &str,
        options: &ConsumerOptions,
    ) -> Result<(Self, Links), Error> {
        let consumer = options.incarnation();
        let link_for = |key: &str| Link::new(address.for_key(key), options.redis());
        let links = Links::new(vec![link_for(source)], options.retries);
        let fields = read(&links, source)?.unwrap_or_default();
        let table = if fields.is_empty() { Ok(None) } else { PartitionTable::parse(&fields) };
        let table = table.map_err(|error| refused(source, &error))?;
        let count = table.as_ref().map_or(PartitionCount::ONE, |table| table.partitions);
        let key = |partition| partition_key(source, &partition_tag(partition));
        let sources = match &table {
            Some(table) => table.partitions.partitions().map(key).collect(),
            None => vec![source.to_owned()],
        };
        // In a cluster, each partition has a connection of its own, because its keys can be on
        // another node.
        let is_spread = table.is_some() && address.is_cluster();
        let spread = sources.iter().filter(|_| is_spread).map(|key| link_for(key));
        let links = Links::new(links.into_all().chain(spread).collect(), options.retries);
        let place = |number| if is_spread { number + 1 } else { 0 };
        let crawl =
            |(number, source)| Arc::new(Crawl::new(number, place(number), source, &consumer));
        let all: Vec<Arc<Crawl>> = sources.into_iter().enumerate().map(crawl).collect();
        let questions: Vec<_> =
            all.iter().map(|it| (it.place, reading(&it.source).into())).collect();
        let answers = links.ask_all(&questions, options.retries, |_| {});
        for (crawl, answer) in all.iter().zip(answers) {
            crawl.update(&read_as::<RecordFields>(answer?)?);
            match crawl.calls() {
                Ok(calls) if calls.record.partitions != count => {
                    return Err(other_count(&crawl.source, calls.record.partitions, count));
                }
                Err(error) if error.kind() != ErrorKind::NoCrawl => return Err(error),
                _ => {}
            }
        }
        let crawls = Self {
            source: source.to_owned(),
            consumer,
            is_abandoned: AtomicBool::new(false),
            all,
            table,
            problem: Mutex::new(None),
            popping: Mutex::new(0),
        };
        Ok((crawls, links))
    }

    /// Returns an error if no daemon has written the record of a partition yet.
    pub(super) fn check_records(&self) -> Result<(), Error> {
        match self.missing().next() {
            Some(crawl) if self.is_divided() => {
                let text = format!(
                    "no daemon has run for partition {} of {} yet: Redis has no crawl record {}. \
                     Start a process that runs this partition (partitions.run)",
                    crawl.number,
                    self.all.len(),
                    HeldKeys::of_source(&crawl.source).record
                );
                Err(Error::new(ErrorKind::NoCrawl, text))
            }
            Some(_) => Err(no_record(&self.source)),
            None => Ok(()),
        }
    }

    /// Returns the crawls without a record.
    pub(super) fn missing(&self) -> impl Iterator<Item = &Crawl> {
        self.all.iter().map(|it| &**it).filter(|it| it.is_missing())
    }

    /// Returns the crawls that have a record.
    pub(super) fn recorded(&self) -> impl Iterator<Item = &Crawl> {
        self.all.iter().map(|it| &**it).filter(|it| !it.is_missing())
    }

    /// Returns an error if the partition table has changed.
    pub(super) fn check_table(&self) -> Result<(), Error> {
        match &*self.problem() {
            Some(error) => Err(refused(&self.source, error)),
            None => Ok(()),
        }
    }

    /// Returns true if there are several partitions.
    pub(super) fn is_divided(&self) -> bool {
        self.table.is_some()
    }

    /// Returns the calls of a crawl.
    ///
    /// # Errors
    /// The table has changed, or the daemon has written a record that this version cannot use.
    pub(super) fn calls(&self, crawl: &Crawl) -> Result<Arc<HeldCalls>, Error> {
        self.check_table()?;
        crawl.calls()
    }

    /// Reads the partition table again. All calls fail while it is another one.
    pub(super) fn refresh(&self, links: &Links) -> Result<(), Error> {
        let Some(table) = &self.table else { return Ok(()) };
        let Some(fields) = read(links, &self.source)? else { return Ok(()) };
        *self.problem() = match PartitionTable::parse(&fields) {
            Ok(Some(found)) if found.divides_like(table) => None,
            Ok(_) => Some(RecordError::OtherTable { partitions: table.partitions }),
            Err(error) => Some(error),
        };
        Ok(())
    }

    /// Creates a fingerprinter for [`Crawls::home`].
    pub(super) fn fingerprinter(&self) -> Fingerprinter {
        self.table.as_ref().map(PartitionTable::fingerprinter).unwrap_or_default()
    }

    /// Finds the partition of an item. Also returns true if it may go to any partition; the number
    /// is then for an item that belongs to no page.
    ///
    /// # Errors
    /// There are several partitions, and the fingerprint of the item is not known.
    pub(super) fn home(
        &self,
        item: &Item,
        fingerprinter: &mut Fingerprinter,
    ) -> Result<(usize, bool), Error> {
        let Some(table) = &self.table else { return Ok((0, false)) };
        Ok(match item.fingerprint(table.item, fingerprinter)? {
            Some(fingerprint) => (self.number(&fingerprint), false),
            // `urlseen route` sends these items to the same partition.
            None => (self.number(&Fingerprint::Text(item.bytes.as_slice().into())), true),
        })
    }

    /// Returns the number of the partition of a fingerprint.
    pub(super) fn number(&self, fingerprint: &Fingerprint) -> usize {
        let number = |table: &PartitionTable| table.partitions.of(fingerprint).number();
        self.table.as_ref().map_or(0, |table| usize::from(number(table)))
    }

    /// Returns the questions for the numbers of items that wait for `urlseen route`.
    pub(super) fn unrouted(&self) -> Vec<Addressed> {
        let keys = [self.source.clone(), HeldKeys::of_source(&self.source).processing];
        let question = |key| (0, Cmd::llen(key).into());
        keys.into_iter().filter(|_| self.is_divided()).map(question).collect()
    }

    /// Returns the number of requests that the consumer may hold in a crawl if it may hold `most`
    /// in all crawls together. Counts a pop that waits for an answer as a held request, until the
    /// reservation is dropped. Returns `None` while the consumer holds a suspect.
    pub(super) fn reserve<'a>(&'a self, crawl: &'a Crawl, most: usize) -> Option<Reservation<'a>> {
        if self.all.iter().any(|it| it.deliveries.holds_suspect()) {
            return None;
        }
        let mut popping = self.popping.lock().unwrap_or_else(PoisonError::into_inner);
        let held = *popping + self.all.iter().map(|it| it.deliveries.held()).sum::<usize>();
        *popping += 1;
        let most = (most + crawl.deliveries.held()).saturating_sub(held);
        Some(Reservation { crawls: self, crawl, most, holds_others: held > 0 })
    }

    fn problem(&self) -> MutexGuard<'_, Option<RecordError>> {
        self.problem.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Room for one more held request.
pub(super) struct Reservation<'a> {
    crawls: &'a Crawls,
    crawl: &'a Crawl,
    /// Maximum number of requests that the consumer may hold in the crawl.
    pub(super) most: usize,
    /// True if the consumer holds any request.
    pub(super) holds_others: bool,
}

impl Reservation<'_> {
    /// Records that the next delivery of the crawl was popped.
    pub(super) fn popped(self, is_suspect: bool) {
        let _popping = self.crawls.popping.lock().unwrap_or_else(PoisonError::into_inner);
        self.crawl.deliveries.popped(is_suspect);
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        *self.crawls.popping.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
    }
}

/// Error for a record of a crawl with `found` partitions, if the crawl has `count`.
fn other_count(source: &str, found: PartitionCount, count: PartitionCount) -> Error {
    let key = HeldKeys::of_source(source).record;
    let remedy = match count {
        PartitionCount::ONE => "open the consumer with source.key, without the tag of a partition",
        _ => "restart the daemon, which writes the record again",
    };
    let text = format!(
        "the crawl record {key} belongs to a crawl with {found} partitions, and the crawl at hand \
         has {count}; {remedy}"
    );
    Error::new(ErrorKind::Mismatch, text)
}
