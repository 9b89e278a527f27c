//! Keys and commands that a server must permit, so that the daemon can requeue the held requests of
//! stopped consumers.

use redis::Cmd;

use super::Protocol;
use urlseen_core::redis::held::Calls;
use urlseen_core::redis::preflight::{KeyKind, KeyOwner, Needs};

impl Protocol {
    /// Asks for the number of requests that these consumers hold.
    pub(crate) fn held_length<'c>(&self, consumers: impl Iterator<Item = &'c str>) -> Cmd {
        let keys: Vec<_> = consumers.map(|consumer| self.held.keys().held(consumer)).collect();
        let keys: Vec<_> = keys.iter().map(String::as_str).collect();
        self.eval("held_length", &keys)
    }
}

/// Adds to `needs` the keys and commands for requeuing held requests.
pub(super) fn add(calls: &Calls, needs: &mut Needs) {
    let (keys, record) = (calls.keys(), calls.record());
    let (consumers, requeues) = (keys.consumers.as_str(), keys.requeues.as_str());
    let (rejected, sink) = (record.rejects.as_str(), record.sink.as_str());
    needs.key(KeyOwner::Own("consumers"), consumers, KeyKind::Hash);
    needs.key(KeyOwner::Own("requeues"), requeues, KeyKind::Hash);
    let held = keys.held("");
    let held = held.as_str();
    needs.commands(consumers, &["HGETALL", "HGET 0", "HDEL 0"]);
    needs.commands(held, &["HKEYS", "HGET 0", "HDEL 0"]);
    needs.commands(requeues, &["HGET 0", "HSET 0 0", "HDEL 0"]);
    needs.commands(rejected, &["RPUSH 0"]);
    let is_sorted = record.sink_kind == "zset";
    needs.commands(
        sink,
        if is_sorted { &["ZADD 0 0", "ZRANGE 0 0"] } else { &["LPUSH 0", "RPUSH 0"] },
    );
}
