//! The calls that reclaim held requests, and their replies.

use std::time::SystemTime;

use redis::{Cmd, FromRedisValue, RedisResult, Value, cmd};

use super::{HeldRequest, Stopped};
use crate::config::{Config, End, SinkKind};
use crate::redis::keys::Keys;
use crate::redis::preflight::{CommandNeed, KeyKind, KeyOwner, Needs};
use crate::rejects::reject;
use crate::script::{COMMON, Script};

/// Most bytes of a reject with its item in it; a larger item is kept beside its reject.
const MOST: usize = 1 << 20;

/// The calls, for one crawl's keys and sink.
#[derive(Debug)]
pub struct Calls {
    keys: Keys,
    kind: SinkKind,
    pop_from: &'static str,
    deliveries: u64,
    requeue: Script,
    reject: Script,
}

/// The reply to [`Calls::requeue`].
#[derive(Debug, PartialEq, Eq)]
pub enum Requeued {
    /// Nothing was done: the consumer's heartbeat is another one by now.
    Alive,
    /// The requests are back, but for those that were delivered too often.
    Done {
        /// Requests that are in the sink again.
        put_back: u64,
        /// Requests that were delivered too often: still held, to be rejected.
        too_often: Vec<TooOften>,
    },
}

/// A request that was delivered too often.
#[derive(Debug, PartialEq, Eq)]
pub struct TooOften {
    /// The request.
    pub request: HeldRequest,
    /// The consumers that held it before, separated by spaces.
    before: String,
}

/// The reason of a reject: a request that no consumer finished.
#[derive(Debug, thiserror::Error)]
#[error(
    "delivered {count} times and never finished, to {before} {consumer}: its page may kill its \
     consumer. Requeue it once that is mended"
)]
struct NeverFinished<'a> {
    count: u64,
    before: &'a str,
    consumer: &'a str,
}

/// The end of a list that consumers pop from, so that the item found first comes first.
pub(super) fn pop_from(push_to: End) -> &'static str {
    match push_to {
        End::Right => "LEFT",
        End::Left => "RIGHT",
    }
}

impl Calls {
    /// The calls of the crawl that is configured.
    pub fn new(config: &Config, keys: Keys) -> Self {
        let script = |parts: &[&str]| Script::new(&[&[COMMON], parts].concat().join("\n"));
        Self {
            keys,
            kind: config.sink.kind,
            pop_from: pop_from(config.sink.push_to),
            deliveries: config.held.deliveries,
            requeue: script(&[include_str!("sink.lua"), include_str!("requeue.lua")]),
            reject: script(&[include_str!("reject.lua")]),
        }
    }

    /// Asks for all consumers and their heartbeats.
    pub fn consumers(&self) -> Cmd {
        let mut command = cmd("HGETALL");
        command.arg(&self.keys.consumers);
        command
    }

    /// The reply to [`Calls::consumers`].
    pub fn heartbeats(reply: Value) -> RedisResult<Vec<(String, String)>> {
        Ok(Vec::from_redis_value(reply)?)
    }

    /// Asks for the held requests of a consumer.
    pub fn held(&self, consumer: &str) -> Cmd {
        let mut command = cmd("HGETALL");
        command.arg(self.keys.held(consumer));
        command
    }

    /// The reply to [`Calls::held`].
    pub fn requests(reply: Value) -> RedisResult<Vec<HeldRequest>> {
        let pairs = Vec::<(String, Vec<u8>)>::from_redis_value(reply)?;
        Ok(pairs.into_iter().filter_map(|(id, value)| HeldRequest::parse(id, &value)).collect())
    }

    /// Puts the held requests of a stopped consumer back into the sink.
    pub fn requeue(&self, stopped: &Stopped) -> Cmd {
        self.requeue_all(&stopped.consumer, &stopped.heartbeat)
    }

    /// Puts the held requests of a consumer back that a person says has stopped.
    pub fn requeue_by_hand(&self, consumer: &str) -> Cmd {
        self.requeue_all(consumer, "")
    }

    fn requeue_all(&self, consumer: &str, heartbeat: &str) -> Cmd {
        let Keys { sink, consumers, requeues, .. } = &self.keys;
        let mut command =
            eval(&self.requeue, &[sink, consumers, &self.keys.held(consumer), requeues]);
        command.arg(self.kind.name()).arg(self.pop_from).arg(consumer).arg(heartbeat);
        command.arg(self.deliveries);
        command
    }

    /// The reply to [`Calls::requeue`].
    pub fn requeued(reply: Value) -> RedisResult<Requeued> {
        let mut values = match reply {
            Value::Array(values) => values.into_iter(),
            _ => return Ok(Requeued::Alive),
        };
        let put_back = u64::from_redis_value(values.next().unwrap_or(Value::Nil))?;
        let mut too_often = Vec::new();
        while let (Some(id), Some(value), Some(before)) =
            (values.next(), values.next(), values.next())
        {
            let value = Vec::<u8>::from_redis_value(value)?;
            let request = HeldRequest::parse(String::from_redis_value(id)?, &value);
            let before = String::from_redis_value(before)?;
            too_often.extend(request.map(|request| TooOften { request, before }));
        }
        Ok(Requeued::Done { put_back, too_often })
    }

    /// Moves a request that was delivered too often to the rejects.
    pub fn reject(&self, consumer: &str, too_often: &TooOften, time: SystemTime) -> Cmd {
        let Keys { requeues, rejected, oversize, .. } = &self.keys;
        let held = self.keys.held(consumer);
        let mut command = eval(&self.reject, &[&held, requeues, rejected, oversize]);
        let TooOften { request, before } = too_often;
        let reason = NeverFinished { count: request.count + 1, before, consumer };
        let reject = reject::write(&request.item, &reason, time, MOST);
        command.arg(&request.delivery).arg(reject.json).arg(u8::from(reject.is_oversize));
        command
    }

    /// Adds what all this needs of the server.
    pub fn needs(&self, needs: &mut Needs) {
        let Keys { consumers, requeues, rejected, sink, .. } = &self.keys;
        let (consumers, requeues) = (consumers.as_str(), requeues.as_str());
        let (rejected, sink) = (rejected.as_str(), sink.as_str());
        needs.key(KeyOwner::Own("consumers"), consumers, KeyKind::Hash);
        needs.key(KeyOwner::Own("requeues"), requeues, KeyKind::Hash);
        let held = self.keys.held("");
        let held = held.as_str();
        let command = CommandNeed::new;
        needs.command(command("HGETALL").key(consumers));
        needs.command(command("HGET").key(consumers).arg(""));
        needs.command(command("HDEL").key(consumers).arg(""));
        needs.command(command("HKEYS").key(held));
        needs.command(command("HGET").key(held).arg(""));
        needs.command(command("HDEL").key(held).arg(""));
        needs.command(command("HGET").key(requeues).arg(""));
        needs.command(command("HSET").key(requeues).arg("").arg(""));
        needs.command(command("HDEL").key(requeues).arg(""));
        needs.command(command("RPUSH").key(rejected).arg(""));
        match self.kind {
            SinkKind::Zset => {
                needs.command(command("ZADD").key(sink).arg("0").arg(""));
                needs.command(command("ZRANGE").key(sink).arg("0").arg("0"));
            }
            SinkKind::List => {
                needs.command(command("LPUSH").key(sink).arg(""));
                needs.command(command("RPUSH").key(sink).arg(""));
            }
        }
    }
}

fn eval(script: &Script, keys: &[&str]) -> Cmd {
    let mut command = cmd("EVAL");
    command.arg(script.text()).arg(keys.len()).arg(keys);
    command
}
