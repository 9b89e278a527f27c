//! The needs of a daemon that reclaims held requests.

use urlseen_core::redis::held::Calls;
use urlseen_core::redis::preflight::{CommandNeed, KeyKind, KeyOwner, Needs};

/// Adds the keys and commands that reclaiming needs of the server.
pub(super) fn add(calls: &Calls, needs: &mut Needs) {
    let (keys, record) = (calls.keys(), calls.record());
    let (consumers, requeues) = (keys.consumers.as_str(), keys.requeues.as_str());
    let (rejected, sink) = (record.rejects.as_str(), record.sink.as_str());
    needs.key(KeyOwner::Own("consumers"), consumers, KeyKind::Hash);
    needs.key(KeyOwner::Own("requeues"), requeues, KeyKind::Hash);
    let held = keys.held("");
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
    if record.sink_kind == "zset" {
        needs.command(command("ZADD").key(sink).arg("0").arg(""));
        needs.command(command("ZRANGE").key(sink).arg("0").arg("0"));
    } else {
        needs.command(command("LPUSH").key(sink).arg(""));
        needs.command(command("RPUSH").key(sink).arg(""));
    }
}
