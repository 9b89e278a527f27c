//! Crawl, with all its partitions, as the threads of a consumer share it.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use redis::Value;

use super::ConsumerOptions;
use super::item::Item;
use super::links::{Addressed, Links};
use super::partition::{Partition, RecordFields, read_as};
use super::partition::{no_partition, no_record, read, reading, refused};
use crate::Error;
use crate::redis::address::Address;
use crate::redis::link::Link;
use urlseen_fingerprint::{Fingerprint, Fingerprinter, PartitionCount};
use urlseen_redis::hash_tag::{partition_key, partition_tag};
use urlseen_redis::protocol::{HeldCalls, HeldKeys, PartitionTable, RecordError};

/// Crawl as a consumer sees it.
pub(super) struct Crawl {
    /// Key of the source, without the tag of a partition.
    source: String,
    /// Name of the consumer, with a random suffix.
    pub(super) consumer: String,
    /// True if the stopping consumer leaves its deliveries to other consumers.
    pub(super) is_abandoned: AtomicBool,
    /// All partitions, in order. A crawl that is not divided has one.
    pub(super) partitions: Vec<Partition>,
    /// Partition table at the start of the consumer. `None` if the crawl is not divided.
    table: Option<PartitionTable>,
    /// Reason why the calls cannot be used: the table has changed.
    problem: Mutex<Option<RecordError>>,
    /// Number of pops that wait for an answer.
    popping: Mutex<usize>,
}

/// Place of an item in the crawl.
pub(super) enum Home {
    /// Partition with this number.
    Partition(usize),
    /// Any partition. If the item belongs to no page, it goes to the partition with this number.
    Any(usize),
}

impl Crawl {
    /// Reads the partition table and the crawl records for the source with the key `source`.
    /// Records may be missing.
    pub(super) fn open(
        address: &Address,
        source: &str,
        options: &ConsumerOptions,
    ) -> Result<(Self, Links), Error> {
        let consumer = options.incarnation();
        let link_for = |key: &str| Link::new(address.for_key(key), options.redis());
        let mut link = link_for(source);
        let fields = read(&mut link, source)?.unwrap_or_default();
        let table = if fields.is_empty() { Ok(None) } else { PartitionTable::parse(&fields) };
        let table = table.map_err(|error| refused(source, &error))?;
        let count = table.as_ref().map_or(PartitionCount::ONE, |table| table.partitions);
        let key = |partition| partition_key(source, &partition_tag(partition));
        let sources = match &table {
            Some(table) => table.partitions.partitions().map(key).collect(),
            None => vec![source.to_owned()],
        };
        let is_divided = table.is_some() && address.is_cluster();
        let divided = sources.iter().filter(|_| is_divided).map(|key| link_for(key));
        let links = Links::new(link, divided, address.is_cluster(), options.retries);
        let partitions = partitions(&links, &sources, &consumer, options.retries, count)?;
        let crawl = Self {
            source: source.to_owned(),
            consumer,
            is_abandoned: AtomicBool::new(false),
            partitions,
            table,
            problem: Mutex::new(None),
            popping: Mutex::new(0),
        };
        Ok((crawl, links))
    }

    /// Returns an error if no daemon has written the record of a partition yet.
    pub(super) fn check_records(&self) -> Result<(), Error> {
        let count = self.partitions.len();
        match self.missing().next() {
            Some(number) if self.is_divided() => {
                Err(no_partition(number, &self.partitions[number].source, count))
            }
            Some(_) => Err(no_record(&self.source)),
            None => Ok(()),
        }
    }

    /// Returns the numbers of the partitions without a record.
    pub(super) fn missing(&self) -> impl Iterator<Item = usize> {
        (0..self.partitions.len()).filter(|&number| self.partitions[number].is_missing())
    }

    /// Returns the numbers of the partitions that have a record.
    pub(super) fn recorded(&self) -> impl Iterator<Item = usize> {
        (0..self.partitions.len()).filter(|&number| !self.partitions[number].is_missing())
    }

    /// Returns an error if the partition table has changed.
    pub(super) fn check_table(&self) -> Result<(), Error> {
        match &*self.problem() {
            Some(error) => Err(refused(&self.source, error)),
            None => Ok(()),
        }
    }

    /// Returns true if the crawl has several partitions.
    pub(super) fn is_divided(&self) -> bool {
        self.table.is_some()
    }

    /// Returns the calls of a partition.
    ///
    /// # Errors
    /// The table has changed, or the daemon has written a record that this version cannot use.
    pub(super) fn calls(&self, partition: usize) -> Result<Arc<HeldCalls>, Error> {
        self.check_table()?;
        self.partitions[partition].calls()
    }

    /// Reads the partition table again. All calls fail while it is another one.
    pub(super) fn refresh(&self, link: &mut Link) -> Result<(), Error> {
        let Some(table) = &self.table else { return Ok(()) };
        let Some(fields) = read(link, &self.source)? else { return Ok(()) };
        *self.problem() = match PartitionTable::parse(&fields) {
            Ok(Some(found)) if found.divides_like(table) => None,
            Ok(_) => Some(RecordError::OtherTable { partitions: table.partitions }),
            Err(error) => Some(error),
        };
        Ok(())
    }

    /// Returns a key to which a connection of [`Links`] leads.
    pub(super) fn key_at(&self, place: usize) -> &str {
        match place.checked_sub(1) {
            Some(number) => &self.partitions[number].source,
            None => &self.source,
        }
    }

    /// Creates a fingerprinter for [`Crawl::home`].
    pub(super) fn fingerprinter(&self) -> Fingerprinter {
        self.table.as_ref().map(PartitionTable::fingerprinter).unwrap_or_default()
    }

    /// Finds the partition of an item.
    ///
    /// # Errors
    /// The crawl has several partitions, and the fingerprint of the item is not known.
    pub(super) fn home(
        &self,
        item: &Item,
        fingerprinter: &mut Fingerprinter,
    ) -> Result<Home, Error> {
        let Some(table) = &self.table else { return Ok(Home::Partition(0)) };
        let of = |fingerprint| self.number(&fingerprint);
        Ok(match item.fingerprint(table.item, fingerprinter)? {
            Some(fingerprint) => Home::Partition(of(fingerprint)),
            // `urlseen route` sends these items to the same partition.
            None => Home::Any(of(Fingerprint::Text(item.bytes.as_slice().into()))),
        })
    }

    /// Returns the number of the partition of a fingerprint.
    pub(super) fn number(&self, fingerprint: &Fingerprint) -> usize {
        let number = |table: &PartitionTable| table.partitions.of(fingerprint).number();
        self.table.as_ref().map_or(0, |table| usize::from(number(table)))
    }

    /// Returns the keys of the lists with the items that wait for `urlseen route`.
    pub(super) fn unrouted(&self) -> [String; 2] {
        [self.source.clone(), HeldKeys::of_source(&self.source).processing]
    }

    /// Returns the number of requests that the consumer may hold in a partition if it may hold
    /// `most` in all partitions together. Counts a pop that waits for an answer as a held request,
    /// until the reservation is dropped. Returns `None` while the consumer holds a suspect.
    pub(super) fn reserve(&self, partition: usize, most: usize) -> Option<Reservation<'_>> {
        if self.partitions.iter().any(|it| it.deliveries.holds_suspect()) {
            return None;
        }
        let mut popping = self.popping.lock().unwrap_or_else(PoisonError::into_inner);
        let others = self.partitions.iter().enumerate().filter(|(number, _)| *number != partition);
        let elsewhere = *popping + others.map(|(_, it)| it.deliveries.held()).sum::<usize>();
        *popping += 1;
        let holds_others = elsewhere + self.partitions[partition].deliveries.held() > 0;
        let most = most.saturating_sub(elsewhere);
        Some(Reservation { crawl: self, partition, most, holds_others })
    }

    fn problem(&self) -> MutexGuard<'_, Option<RecordError>> {
        self.problem.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Room for one more held request.
pub(super) struct Reservation<'a> {
    crawl: &'a Crawl,
    partition: usize,
    /// Maximum number of requests that the consumer may hold in the partition.
    pub(super) most: usize,
    /// True if the consumer holds any request.
    pub(super) holds_others: bool,
}

impl Reservation<'_> {
    /// Records that the next delivery of the partition was popped.
    pub(super) fn popped(self, is_suspect: bool) {
        let _popping = self.crawl.popping.lock().unwrap_or_else(PoisonError::into_inner);
        self.crawl.partitions[self.partition].deliveries.popped(is_suspect);
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        *self.crawl.popping.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
    }
}

/// Reads the records of all partitions.
fn partitions(
    links: &Links,
    sources: &[String],
    consumer: &str,
    retries: u32,
    count: PartitionCount,
) -> Result<Vec<Partition>, Error> {
    let question = |(number, source): (usize, &String)| (Some(number), reading(source).into());
    let questions: Vec<Addressed> = sources.iter().enumerate().map(question).collect();
    let answers = links.ask_all(&questions, retries, |_| {});
    let read = |(source, answer): (&String, Result<Value, Error>)| {
        let fields: RecordFields = read_as(answer?)?;
        Partition::new(source, consumer, &fields, count)
    };
    sources.iter().zip(answers).map(read).collect()
}
