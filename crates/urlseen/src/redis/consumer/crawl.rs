//! Crawl of a consumer, shared by the consumer's threads.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use redis::{FromRedisValue, RedisError, RedisResult, Value, cmd};

use super::deliveries::Deliveries;
use crate::redis::link::Link;
use crate::{Error, ErrorKind};
use urlseen_core::redis::held::{Calls, HeldKeys, HeldRecord, RecordError, Requeued};

/// The crawl, its record, and the consumer's deliveries.
pub(super) struct Crawl {
    source: String,
    /// The consumer's name with a random suffix.
    pub(super) consumer: String,
    pub(super) deliveries: Deliveries,
    /// True if the last pop found nothing.
    pub(super) is_idle: AtomicBool,
    /// True if the stopping consumer leaves its deliveries to other consumers.
    pub(super) is_abandoned: AtomicBool,
    /// The calls that follow from the record that was read last.
    calls: Mutex<Result<Arc<Calls>, RecordError>>,
}

impl Crawl {
    /// Reads the record of the crawl that reads `source`.
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

    /// Returns the calls that follow from the crawl's record.
    ///
    /// # Errors
    /// The daemon has written a record that this version cannot use.
    pub(super) fn calls(&self) -> Result<Arc<Calls>, Error> {
        let calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner).clone();
        calls.map_err(|error| refused(&self.source, &error))
    }

    /// Reads the record again, because a restarted daemon may have other settings.
    pub(super) fn refresh(&self, link: &mut Link) -> Result<(), Error> {
        let Some(found) = read(link, &self.source)? else { return Ok(()) };
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        match (found, &*calls) {
            (Ok(record), Ok(known)) if *known.record() == record => {}
            (found, _) => *calls = found.map(|record| Arc::new(Calls::new(record))),
        }
        Ok(())
    }

    /// Increments the heartbeat, and returns the deliveries that Redis holds for this consumer.
    pub(super) fn beat(&self, link: &mut Link) -> Result<Vec<u64>, Error> {
        let calls = self.calls()?;
        let ids: Vec<String> = read_as(link.call(&calls.beat(&self.consumer))?)?;
        Ok(ids.iter().filter_map(|id| id.parse().ok()).collect())
    }

    /// Requeues deliveries of this consumer, or all of them if `ids` is empty. Returns the number
    /// of deliveries that it held.
    pub(super) fn give_back(&self, link: &mut Link, ids: &[u64]) -> Result<u64, Error> {
        let calls = self.calls()?;
        match requeued(link.call(&calls.requeue(&self.consumer, "", ids))?)? {
            Requeued::Done { put_back, .. } => Ok(put_back),
            Requeued::Alive => Ok(0),
        }
    }

    /// Requeues deliveries that `consumer` did not finish, or all of them if `ids` is empty.
    /// Rejects those that were delivered too often. Returns false if the consumer's heartbeat has
    /// changed.
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

    /// Returns each consumer and its heartbeat.
    pub(super) fn heartbeats(&self, link: &mut Link) -> Result<Vec<(String, String)>, Error> {
        let consumers = self.calls()?.consumers();
        let reply = link.ask(|connection| consumers.query(connection))?;
        Calls::heartbeats(reply).map_err(|error| unexpected(&error))
    }
}

/// Reads the record, if a daemon has written one.
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
    let text =
        format!("Redis gives a script of held requests an answer that it never has: {error}");
    Error::new(ErrorKind::Redis, text)
}

fn no_record(source: &str) -> Error {
    let text = format!(
        "no urlseen has run for the source {source} yet: there is no crawl record {} in Redis. \
         Start urlseen run with source.key = {source:?}, or give the key and the database that \
         it has",
        HeldKeys::of_source(source).record
    );
    Error::new(ErrorKind::NoCrawl, text)
}

fn refused(source: &str, error: &RecordError) -> Error {
    let key = HeldKeys::of_source(source).record;
    Error::new(ErrorKind::Mismatch, format!("the crawl record {key} cannot be used: {error}"))
}
