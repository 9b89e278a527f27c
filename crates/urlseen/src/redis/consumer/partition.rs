//! Partition of a crawl, with its own keys. A crawl that is not divided is one partition.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redis::{Cmd, FromRedisValue, RedisError, RedisResult, Value};

use super::deliveries::Deliveries;
use crate::redis::link::Link;
use crate::{Error, ErrorKind};
use urlseen_fingerprint::PartitionCount;
use urlseen_redis::protocol::{HeldCalls, HeldKeys, HeldRecord, RecordError, Requeued};

/// Fields of a crawl record or of a partition table, with their values.
pub(super) type RecordFields = BTreeMap<String, String>;

/// Partition as a consumer sees it: its crawl record, and the deliveries of the consumer.
pub(super) struct Partition {
    pub(super) source: String,
    /// Name of the consumer, with a random suffix.
    pub(super) consumer: String,
    pub(super) deliveries: Deliveries,
    /// True if the last pop found no request.
    pub(super) is_idle: AtomicBool,
    /// Lock of the thread that pops with the next id.
    pub(super) popping: Mutex<()>,
    /// Names of the consumers that existed at the last count of requests.
    consumers: Mutex<Vec<String>>,
    /// Calls with the settings of the last record that was read, or the reason why that record
    /// cannot be used. `None` if no daemon has written a record yet.
    calls: Mutex<Option<Result<Arc<HeldCalls>, RecordError>>>,
    /// Number of records that differed from the one before.
    pub(super) changes: AtomicU64,
}

impl Partition {
    /// Prepares the calls of the partition whose source has the key `source`. `fields` is its crawl
    /// record, if there is one, and `count` the number of partitions of the crawl.
    pub(super) fn new(
        source: &str,
        consumer: &str,
        fields: &RecordFields,
        count: PartitionCount,
    ) -> Result<Self, Error> {
        let partition = Self {
            source: source.to_owned(),
            consumer: consumer.to_owned(),
            deliveries: Deliveries::new(),
            is_idle: AtomicBool::new(false),
            popping: Mutex::new(()),
            consumers: Mutex::new(Vec::new()),
            calls: Mutex::new(None),
            changes: AtomicU64::new(0),
        };
        partition.update(fields);
        match partition.calls() {
            Ok(calls) if calls.record.partitions != count => {
                Err(other_count(source, calls.record.partitions, count))
            }
            Err(error) if error.kind() != ErrorKind::NoCrawl => Err(error),
            _ => Ok(partition),
        }
    }

    /// Returns the calls with the settings of the crawl's record.
    ///
    /// # Errors
    /// The daemon has written a record that this version cannot use, or no record yet.
    pub(super) fn calls(&self) -> Result<Arc<HeldCalls>, Error> {
        let calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match calls {
            Some(calls) => calls.map_err(|error| refused(&self.source, &error)),
            None => Err(no_record(&self.source)),
        }
    }

    /// Returns true if no daemon has written a record yet.
    pub(super) fn is_missing(&self) -> bool {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }

    /// Returns the time without a heartbeat after which a consumer counts as stopped.
    pub(super) fn timeout(&self) -> Result<Duration, Error> {
        Ok(self.calls()?.record.timeout)
    }

    /// Reads the crawl record again, because a restarted daemon may have other settings.
    pub(super) fn refresh(&self, link: &mut Link) -> Result<(), Error> {
        if let Some(fields) = read(link, &self.source)? {
            self.update(&fields);
        }
        Ok(())
    }

    /// Uses these fields of the record from now on, unless there are none.
    pub(super) fn update(&self, fields: &RecordFields) {
        if fields.is_empty() {
            return;
        }
        let found = HeldRecord::parse(fields);
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        match (found, &*calls) {
            (Ok(record), Some(Ok(known))) if known.record == record => {}
            (found, _) => {
                *calls = Some(found.map(|record| Arc::new(HeldCalls::new(record))));
                self.changes.fetch_add(1, Relaxed);
            }
        }
    }

    /// Renews the heartbeat. Returns the ids of the deliveries that Redis holds for this
    /// consumer.
    pub(super) fn beat(&self, link: &mut Link) -> Result<Vec<u64>, Error> {
        let calls = self.calls()?;
        let ids: Vec<String> = read_as(link.call(&calls.beat(&self.consumer))?)?;
        Ok(ids.iter().filter_map(|id| id.parse().ok()).collect())
    }

    /// Requeues the deliveries `ids` of this consumer, or all of its deliveries if `ids` is empty.
    /// Returns the number of requeued deliveries.
    pub(super) fn give_back(&self, link: &mut Link, ids: &[u64]) -> Result<u64, Error> {
        put_back(link.call(&self.calls()?.requeue(&self.consumer, "", ids))?)
    }

    /// Requeues the deliveries `ids` that `consumer` did not finish, or all of them if `ids` is
    /// empty. Rejects requests that were delivered too often. Returns false, and requeues nothing,
    /// if the heartbeat of that consumer is no longer `heartbeat`.
    pub(super) fn requeue(
        &self,
        link: &mut Link,
        consumer: &str,
        heartbeat: &str,
        ids: &[u64],
    ) -> Result<bool, Error> {
        let calls = self.calls()?;
        let reply = link.call(&calls.requeue(consumer, heartbeat, ids))?;
        let Requeued::Done { too_often, .. } = requeued(reply)? else { return Ok(false) };
        for too_often in &too_often {
            link.call(&calls.reject_too_often(consumer, too_often))?;
        }
        Ok(true)
    }

    /// Returns the names of the consumers that existed at the last count of requests.
    pub(super) fn consumers(&self) -> MutexGuard<'_, Vec<String>> {
        self.consumers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the names of all consumers, with their heartbeats.
    pub(super) fn heartbeats(&self, link: &mut Link) -> Result<Vec<(String, String)>, Error> {
        let reply = link.call(&self.calls()?.consumers().into())?;
        HeldCalls::heartbeats(reply).map_err(|error| unexpected(&error))
    }
}

/// Returns the number of requests that a requeue has put back.
pub(super) fn put_back(reply: Value) -> Result<u64, Error> {
    match requeued(reply)? {
        Requeued::Done { put_back, .. } => Ok(put_back),
        Requeued::Alive | Requeued::Foreign => Ok(0),
    }
}

fn requeued(reply: Value) -> Result<Requeued, Error> {
    HeldCalls::requeued(reply).map_err(|error| unexpected(&error))
}

/// Returns the command that reads the record for the source with the key `source`.
pub(super) fn reading(source: &str) -> Cmd {
    Cmd::hgetall(HeldKeys::of_source(source).record)
}

/// Reads the record, if a daemon has written one.
pub(super) fn read(link: &mut Link, source: &str) -> Result<Option<RecordFields>, Error> {
    let command = reading(source);
    let fields: RecordFields = link.ask(|connection| command.query(connection))?;
    Ok(Some(fields).filter(|fields| !fields.is_empty()))
}

/// Error for a source without a record.
pub(super) fn no_record(source: &str) -> Error {
    let text = format!(
        "no daemon has run for the source {source} yet: Redis has no crawl record {}. Start \
         urlseen run with source.key = {source:?}, or open the consumer with the daemon's \
         source.key and database",
        HeldKeys::of_source(source).record
    );
    Error::new(ErrorKind::NoCrawl, text)
}

/// Error for a partition without a record, in a crawl with this number of partitions.
pub(super) fn no_partition(number: usize, source: &str, count: usize) -> Error {
    let text = format!(
        "no daemon has run for partition {number} of {count} yet: Redis has no crawl record {}. \
         Start a process that runs this partition (partitions.run)",
        HeldKeys::of_source(source).record
    );
    Error::new(ErrorKind::NoCrawl, text)
}

/// Error for a record that cannot be used.
pub(super) fn refused(source: &str, error: &RecordError) -> Error {
    let key = HeldKeys::of_source(source).record;
    Error::new(ErrorKind::Mismatch, format!("the crawl record {key} cannot be used: {error}"))
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

/// Converts a reply to the expected type.
pub(super) fn read_as<T: FromRedisValue>(reply: Value) -> Result<T, Error> {
    let read: RedisResult<T> = T::from_redis_value(reply).map_err(Into::into);
    read.map_err(|error| unexpected(&error))
}

pub(super) fn unexpected(error: &RedisError) -> Error {
    let text = format!("Redis returned an unexpected answer to a script of held requests: {error}");
    Error::new(ErrorKind::Refused, text)
}
