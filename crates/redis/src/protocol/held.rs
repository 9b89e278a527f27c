//! Calls of the scripts for held requests, and their replies.

use std::fmt::Display;
use std::time::SystemTime;

use redis::{FromRedisValue, RedisResult, Value};

use super::{Call, HeldKeys, HeldRecord, Script, Stopped};
use crate::reject;

/// Maximum size in bytes of a request that its reject contains. It is the largest permitted value
/// of `source.item_bytes`.
const MOST: usize = 64 << 20;

/// Script calls and commands for the held requests of one crawl.
#[derive(Debug)]
pub struct HeldCalls {
    /// Keys of the held requests.
    pub keys: HeldKeys,
    /// Crawl record of this crawl.
    pub record: HeldRecord,
    pop: Script,
    finish: Script,
    beat: Script,
    count: Script,
    held_length: Script,
    requeue: Script,
}

/// Reply to [`HeldCalls::pop`].
#[derive(Debug, PartialEq, Eq)]
pub enum Popped {
    /// Nothing, because the sink is empty.
    Empty,
    /// Nothing, because the consumer holds the maximum number of requests.
    Full,
    /// Nothing yet, because a suspect is first and the consumer holds other requests.
    Suspect,
    /// Request that the consumer holds from now on.
    Request(HeldRequest),
}

/// Reply to [`HeldCalls::count`].
#[derive(Debug, PartialEq, Eq)]
pub enum HeldCount {
    /// Number of requests in the source, the processing list and the sink, and of requests that any
    /// consumer holds.
    Requests(u64),
    /// Names of all existing consumers. The caller did not name exactly these consumers, so no
    /// requests were counted.
    Consumers(Vec<String>),
}

/// Reply to [`HeldCalls::requeue`].
#[derive(Debug, PartialEq, Eq)]
pub enum Requeued {
    /// Nothing was done, because the consumer's heartbeat has changed.
    Alive,
    /// Nothing was done, because another program wrote the key of the held requests.
    Foreign,
    /// All requests are in the sink again, except requests that were delivered too often.
    Done {
        /// Number of requests that are in the sink again.
        put_back: u64,
        /// Requests that were delivered too often. The consumer still holds them, and the caller
        /// must reject them.
        too_often: Vec<TooOften>,
    },
}

/// Request that was delivered too often, or that cannot be read.
#[derive(Debug, PartialEq, Eq)]
pub struct TooOften {
    /// Content of the held request.
    pub request: HeldRequest,
    /// Delivery id, which another program may have written in any bytes.
    id: Vec<u8>,
    /// Earlier consumers of the request, separated by spaces.
    before: String,
}

impl TooOften {
    /// Returns the reason of the reject, if this consumer held the request.
    pub fn reason(&self, consumer: &str) -> String {
        if !self.request.is_readable {
            return "the held value is not of the form SCORE COUNT ITEM: another program wrote it"
                .to_owned();
        }
        let (count, before) = (self.request.count + 1, &self.before);
        format!(
            "delivered {count} times and never finished (consumers: {before} {consumer}): its page \
             may crash the consumer. Requeue it after the consumer is repaired"
        )
    }
}

/// Pushes a batch of items to a source, unless it was the last one that such a call pushed there.
/// `name` is the name of the batch.
pub fn push_once(source: &str, name: &str, items: Vec<Vec<u8>>) -> Call {
    let arguments = [name.into()].into_iter().chain(items).collect();
    let moved = HeldKeys::of_source(source).moved;
    Script::new(include_str!("push_once.lua")).call(&[source, &moved], arguments)
}

impl HeldCalls {
    /// Prepares the calls for the crawl with this record.
    pub fn new(record: HeldRecord) -> Self {
        Self {
            keys: HeldKeys::of_source(&record.source),
            record,
            pop: Script::new(include_str!("pop.lua")),
            finish: Script::new(include_str!("finish.lua")),
            beat: Script::new(include_str!("beat.lua")),
            count: Script::new(include_str!("count.lua")),
            held_length: Script::new(include_str!("held_length.lua")),
            requeue: Script::new(include_str!("requeue.lua")),
        }
    }

    /// Returns the call that pops a request under this delivery id. A repeated call pops the same
    /// request. `holds_others` is true if the consumer holds any other request. Then it does not
    /// get a suspect: see [`HeldRecord::is_suspect`].
    pub fn pop(&self, consumer: &str, delivery: u64, most: usize, holds_others: bool) -> Call {
        let suspect = if holds_others { self.record.suspect().to_string() } else { String::new() };
        self.sink_call(&self.pop, consumer, [delivery.to_string(), most.to_string(), suspect])
    }

    /// Reads the reply to [`HeldCalls::pop`]. Returns `None` if the hash holds a value that no pop
    /// has written.
    pub fn popped(delivery: u64, reply: Value) -> RedisResult<Option<Popped>> {
        Ok(match Option::<Vec<u8>>::from_redis_value(reply)? {
            None => Some(Popped::Empty),
            Some(word) if word == b"full" => Some(Popped::Full),
            Some(word) if word == b"suspect" => Some(Popped::Suspect),
            Some(value) => HeldRequest::parse(delivery.to_string(), &value).map(Popped::Request),
        })
    }

    /// Returns the call that acknowledges a delivery and pushes the links of its page. The reply is
    /// 1, or 0 if the consumer does not hold the delivery.
    pub fn finish(&self, consumer: &str, delivery: u64, links: Vec<Vec<u8>>) -> Call {
        let keys = [&*self.record.source, &*self.keys.held(consumer), &*self.keys.requeues];
        let words = [self.record.push.clone(), delivery.to_string()].map(String::into_bytes);
        self.finish.call(&keys, words.into_iter().chain(links).collect())
    }

    /// Returns the call that renews the heartbeat. The reply lists the deliveries that the
    /// consumer holds.
    pub fn beat(&self, consumer: &str) -> Call {
        let keys = [&*self.keys.consumers, &*self.keys.held(consumer)];
        self.beat.call(&keys, vec![consumer.into()])
    }

    /// Returns the call that counts requests in one step: those in the source, in the processing
    /// list and in the sink, and those that the `known` consumers hold.
    pub fn count(&self, known: &[String]) -> Call {
        let HeldRecord { source, processing, sink, sink_kind, .. } = &self.record;
        let held: Vec<String> = known.iter().map(|consumer| self.keys.held(consumer)).collect();
        let mut keys = vec![&**source, processing, sink, &*self.keys.consumers];
        keys.extend(held.iter().map(String::as_str));
        let mut words = vec![sink_kind.as_bytes().to_vec()];
        words.extend(known.iter().map(|consumer| consumer.as_bytes().to_vec()));
        self.count.call(&keys, words)
    }

    /// Reads the reply to [`HeldCalls::count`].
    pub fn counted(reply: Value) -> RedisResult<HeldCount> {
        Ok(match reply {
            Value::Array(_) => HeldCount::Consumers(Vec::from_redis_value(reply)?),
            number => HeldCount::Requests(u64::from_redis_value(number)?),
        })
    }

    /// Returns the call that counts the requests that these consumers hold.
    pub fn held_length<'c>(&self, consumers: impl Iterator<Item = &'c str>) -> Call {
        let keys: Vec<_> = consumers.map(|consumer| self.keys.held(consumer)).collect();
        self.held_length.call(&keys.iter().map(String::as_str).collect::<Vec<_>>(), Vec::new())
    }

    /// Returns the message about a consumer that cannot be requeued, because another program wrote
    /// its name, its heartbeat or its held requests. Text that is not UTF-8 is no name of a
    /// consumer and no heartbeat.
    pub fn foreign(&self, stopped: &Stopped, requeued: &Requeued) -> Option<String> {
        let Stopped { consumer, heartbeat } = stopped;
        let (key, held) = (&self.keys.consumers, self.keys.held(consumer));
        if consumer.contains(char::REPLACEMENT_CHARACTER) {
            Some(format!(
                "the hash {key} has the field {consumer:?}, which is no name of a consumer: HDEL it"
            ))
        } else if heartbeat.contains(char::REPLACEMENT_CHARACTER) {
            Some(format!(
                "the hash {key} has the value {heartbeat:?} in the field {consumer:?}, which is no \
                 heartbeat. If this consumer has stopped, name it to urlseen held requeue"
            ))
        } else if *requeued == Requeued::Foreign {
            Some(format!(
                "the key {held} must be the hash of the requests that a consumer holds, and \
                 another program wrote a value of another type: RENAME it"
            ))
        } else {
            None
        }
    }

    /// Reads all consumers and their heartbeats, from their hash.
    pub fn heartbeats(reply: Value) -> RedisResult<Vec<(String, String)>> {
        let pairs = Vec::<(Vec<u8>, Vec<u8>)>::from_redis_value(reply)?;
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Ok(pairs.into_iter().map(|(name, heartbeat)| (text(name), text(heartbeat))).collect())
    }

    /// Reads the held requests of a consumer, from their hash.
    pub fn requests(reply: Value) -> RedisResult<Vec<HeldRequest>> {
        let pairs = Vec::<(Vec<u8>, Vec<u8>)>::from_redis_value(reply)?;
        Ok(pairs.into_iter().map(|(id, value)| HeldRequest::read(&id, &value)).collect())
    }

    /// Returns the call that puts held requests of a consumer back into the sink: the given
    /// deliveries, or all deliveries if the list is empty. `heartbeat` is the last heartbeat that
    /// the caller saw, and must be unchanged. An empty `heartbeat` means that the consumer itself
    /// or a person asked for the requeue. Such a requeue does not count as a delivery.
    pub fn requeue(&self, consumer: &str, heartbeat: &str, deliveries: &[u64]) -> Call {
        let words = [heartbeat.to_owned(), self.record.deliveries.to_string()];
        let deliveries = deliveries.iter().map(ToString::to_string);
        self.sink_call(&self.requeue, consumer, words.into_iter().chain(deliveries))
    }

    /// Prepares a call that moves requests between the sink and the held requests of a consumer.
    fn sink_call(
        &self,
        script: &Script,
        consumer: &str,
        words: impl IntoIterator<Item = String>,
    ) -> Call {
        let HeldRecord { sink, sink_kind, pop, .. } = &self.record;
        let HeldKeys { consumers, requeues, .. } = &self.keys;
        let keys = [sink, consumers, &*self.keys.held(consumer), requeues];
        let first = [&**sink_kind, pop, consumer].map(Vec::from);
        script.call(
            &keys,
            first.into_iter().chain(words.into_iter().map(String::into_bytes)).collect(),
        )
    }

    /// Reads the reply to [`HeldCalls::requeue`].
    pub fn requeued(reply: Value) -> RedisResult<Requeued> {
        let mut values = match reply {
            Value::Array(values) => values.into_iter(),
            word if String::from_redis_value(word.clone())? == "foreign" => {
                return Ok(Requeued::Foreign);
            }
            _ => return Ok(Requeued::Alive),
        };
        let put_back = u64::from_redis_value(values.next().unwrap_or(Value::Nil))?;
        let mut too_often = Vec::new();
        while let (Some(id), Some(value), Some(before)) =
            (values.next(), values.next(), values.next())
        {
            let [id, value, before] = [id, value, before].map(Vec::<u8>::from_redis_value);
            let id = id?;
            let request = HeldRequest::read(&id, &value?);
            let before = String::from_utf8_lossy(&before?).into_owned();
            too_often.push(TooOften { request, id, before });
        }
        Ok(Requeued::Done { put_back, too_often })
    }

    /// Returns the call that moves a request to the rejects, because it was delivered too often.
    pub fn reject_too_often(&self, consumer: &str, too_often: &TooOften) -> Call {
        let TooOften { request, id, .. } = too_often;
        self.reject(consumer, id, &request.item, &too_often.reason(consumer))
    }

    /// Returns the call that moves a held request to the rejects. The reply is 1, or 0 if the
    /// consumer does not hold the request.
    pub fn reject(
        &self,
        consumer: &str,
        delivery: &[u8],
        item: &[u8],
        reason: &impl Display,
    ) -> Call {
        let keys = [&*self.record.rejects, &*self.keys.held(consumer), &*self.keys.requeues];
        let write = if item.len() > MOST { reject::shortened } else { reject::write };
        let reject = write(item, reason, SystemTime::now());
        self.finish.call(&keys, vec![b"RPUSH".into(), delivery.into(), reject])
    }
}

/// Request that a consumer popped and has not acknowledged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldRequest {
    /// Delivery id, unique among the deliveries of the consumer.
    pub delivery: String,
    /// Number of earlier deliveries of the request.
    pub count: u64,
    /// Item as popped, byte for byte. The whole value, if another program wrote it.
    pub item: Vec<u8>,
    /// False for a value that another program wrote.
    pub is_readable: bool,
}

impl HeldRequest {
    /// Reads the value of a held request in Redis, which another program may have written.
    fn read(delivery: &[u8], value: &[u8]) -> Self {
        let delivery = String::from_utf8_lossy(delivery).into_owned();
        let (item, is_readable) = (value.to_vec(), false);
        let foreign = Self { delivery: delivery.clone(), count: 0, item, is_readable };
        Self::parse(delivery, value).unwrap_or(foreign)
    }

    /// Reads the value of a held request in Redis: `SCORE COUNT BYTES`. Returns `None` for any
    /// other value.
    pub(crate) fn parse(delivery: String, value: &[u8]) -> Option<Self> {
        let mut parts = value.splitn(3, |&byte| byte == b' ');
        let mut text = || std::str::from_utf8(parts.next()?).ok();
        text()?.parse::<f64>().ok().filter(|score| !score.is_nan())?;
        let count = text()?.parse().ok()?;
        Some(Self { delivery, count, item: parts.next()?.to_vec(), is_readable: true })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_held_value_has_score_count_and_bytes() {
        let held = HeldRequest::parse("7".to_owned(), b"-1.5e3 2 a b\n\xff").unwrap();
        assert_eq!((held.count, &held.item[..]), (2, &b"a b\n\xff"[..]));
        assert_eq!(HeldRequest::parse("7".to_owned(), b"inf 0 ").unwrap().item, b"");
        for other in [&b""[..], b"1", b"1 2", b"x 0 a", b"0 -1 a", b"0 x a", b"nan 0 a"] {
            assert_eq!(HeldRequest::parse("7".to_owned(), other), None);
        }
    }
}
