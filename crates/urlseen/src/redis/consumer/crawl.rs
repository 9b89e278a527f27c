//! State of a crawl that the threads of a consumer share.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use redis::{FromRedisValue, RedisError, RedisResult, Value, cmd};

use super::deliveries::Deliveries;
use crate::redis::link::Link;
use crate::{Error, ErrorKind};
use urlseen_core::redis::held::{Calls, HeldKeys, HeldRecord, RecordError, Requeued};

/// Crawl as a consumer sees it: the crawl record, and the deliveries of the consumer.
pub(super) struct Crawl {
    source: String,
    /// Name of the consumer, with a random suffix.
    pub(super) consumer: String,
    pub(super) deliveries: Deliveries,
    /// True if the last pop found no request.
    pub(super) is_idle: AtomicBool,
    /// True if the stopping consumer leaves its deliveries to other consumers.
    pub(super) is_abandoned: AtomicBool,
    /// Calls with the settings of the last record that was read, or the reason why that record
    /// cannot be used.
    calls: Mutex<Result<Arc<Calls>, RecordError>>,
}

impl Crawl {
    /// Reads the crawl record for the source with the key `source`.
    pub(super) fn open(link: &mut Link, source: &str, consumer: String) -> Result<Self, Error> {
        let record = read(link, source)?.ok_or_else(|| no_record(source))?;
        let record = record.map_err(|error| refused(source, &error))?;
        Ok(Self {
            source: source.to_owned(),
            consumer,
            deliveries: Deliveries::new(),
            is_idle: AtomicBool::new(false),
            is_abandoned: AtomicBool::new(false),
            calls: Mutex::new(Ok(Arc::new(Calls::new(record)))),
        })
    }

    /// Returns the calls with the settings of the crawl's record.
    ///
    /// # Errors
    /// The daemon has written a record that this version cannot use.
    pub(super) fn calls(&self) -> Result<Arc<Calls>, Error> {
        let calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner).clone();
        calls.map_err(|error| refused(&self.source, &error))
    }

    /// Reads the crawl record again, because a restarted daemon may have other settings.
    pub(super) fn refresh(&self, link: &mut Link) -> Result<(), Error> {
        let Some(found) = read(link, &self.source)? else { return Ok(()) };
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        match (found, &*calls) {
            (Ok(record), Ok(known)) if *known.record() == record => {}
            (found, _) => *calls = found.map(|record| Arc::new(Calls::new(record))),
        }
        Ok(())
    }

    /// Increments the heartbeat. Returns the ids of the deliveries that Redis holds for this
    /// consumer.
    pub(super) fn beat(&self, link: &mut Link) -> Result<Vec<u64>, Error> {
        let calls = self.calls()?;
        let ids: Vec<String> = read_as(link.call(&calls.beat(&self.consumer))?)?;
        Ok(ids.iter().filter_map(|id| id.parse().ok()).collect())
    }

    /// Requeues the deliveries `ids` of this consumer, or all of its deliveries if `ids` is empty.
    /// Returns the number of requeued deliveries.
    pub(super) fn give_back(&self, link: &mut Link, ids: &[u64]) -> Result<u64, Error> {
        let calls = self.calls()?;
        match requeued(link.call(&calls.requeue(&self.consumer, "", ids))?)? {
            Requeued::Done { put_back, .. } => Ok(put_back),
            Requeued::Alive => Ok(0),
        }
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

    /// Returns the names of all consumers, with their heartbeats.
    pub(super) fn heartbeats(&self, link: &mut Link) -> Result<Vec<(String, String)>, Error> {
        let consumers = self.calls()?.consumers();
        let reply = link.ask(|connection| consumers.query(connection))?;
        Calls::heartbeats(reply).map_err(|error| unexpected(&error))
    }
}

/// Reads the crawl record, if a daemon has written one.
fn read(link: &mut Link, source: &str) -> Result<Option<Result<HeldRecord, RecordError>>, Error> {
    let mut command = cmd("HGETALL");
    command.arg(HeldKeys::of_source(source).record);
    let fields: BTreeMap<String, String> = link.ask(|connection| command.query(connection))?;
    Ok((!fields.is_empty()).then(|| HeldRecord::parse(&fields)))
}

fn requeued(reply: Value) -> Result<Requeued, Error> {
    Calls::requeued(reply).map_err(|error| unexpected(&error))
}

/// Converts a reply to the expected type.
pub(super) fn read_as<T: FromRedisValue>(reply: Value) -> Result<T, Error> {
    let read: RedisResult<T> = T::from_redis_value(reply).map_err(Into::into);
    read.map_err(|error| unexpected(&error))
}

pub(super) fn unexpected(error: &RedisError) -> Error {
    let text = format!("Redis returned an unexpected answer to a script of held requests: {error}");
    Error::new(ErrorKind::Redis, text)
}

fn no_record(source: &str) -> Error {
    let text = format!(
        "no daemon has run for the source {source} yet: Redis has no crawl record {}. Start \
         urlseen run with source.key = {source:?}, or open the consumer with the daemon's \
         source.key and database",
        HeldKeys::of_source(source).record
    );
    Error::new(ErrorKind::NoCrawl, text)
}

fn refused(source: &str, error: &RecordError) -> Error {
    let key = HeldKeys::of_source(source).record;
    Error::new(ErrorKind::Mismatch, format!("the crawl record {key} cannot be used: {error}"))
}
