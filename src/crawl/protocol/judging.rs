//! What judging by a filter in Redis needs of the server.

use urlseen_core::filter::{Placing, RedisFilterKeys};
use urlseen_core::redis::preflight::{CommandNeed, KeyKind, KeyOwner, Needs};

/// Adds it.
pub(super) fn add(filter: &RedisFilterKeys, needs: &mut Needs) {
    let kind = match filter.placing() {
        Placing::Blocks(_) | Placing::Bits(_) => KeyKind::String,
        Placing::Set => KeyKind::Set,
    };
    let used = filter.used();
    for &number in &used {
        needs.key(KeyOwner::Setting("filter.key"), filter.key(number), kind);
    }
    let Some(&first) = used.first() else { return };
    let key = filter.key(first);
    let command = |words| CommandNeed::new(words).key(key.as_str());
    match filter.placing() {
        Placing::Blocks(_) => {
            needs.command(command("GETRANGE").arg("0").arg("1"));
            needs.command(command("SETRANGE").arg("0").arg(""));
            needs.command(command("BITCOUNT"));
        }
        Placing::Bits(_) => {
            needs.command(command("BITFIELD_RO").arg("GET").arg("u1").arg("0"));
            let set = ["SET", "u1", "0", "0"];
            needs.command(set.into_iter().fold(command("BITFIELD"), CommandNeed::arg));
            needs.command(command("BITCOUNT"));
        }
        Placing::Set => {
            needs.command(command("SMISMEMBER").arg(""));
            needs.command(command("SADD").arg(""));
            needs.command(command("SCARD"));
        }
    }
}
