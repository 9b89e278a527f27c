//! Keys and commands that a server must permit for a filter in Redis.

use urlseen_core::filter::RedisFilterKeys;
use urlseen_core::filter::redis_kind::Content;
use urlseen_core::redis::preflight::{CommandNeed, KeyKind, KeyOwner, Needs};

/// Adds the keys and commands of a filter in Redis to `needs`. The server must permit them.
pub(super) fn add(filter: &RedisFilterKeys, needs: &mut Needs) {
    let used = filter.kind().used();
    for &number in &used {
        let kind = match filter.kind().content(number) {
            Content::Bits { .. } | Content::Count => KeyKind::String,
            Content::Members => KeyKind::Set,
        };
        needs.key(KeyOwner::Setting("filter.key"), filter.key(number), kind);
    }
    let Some(&first) = used.first() else { return };
    let key = filter.key(first);
    for words in filter.kind().commands() {
        let [word, arguments @ ..] = words else { continue };
        let command = CommandNeed::new(word).key(key.as_str());
        needs.command(arguments.iter().fold(command, |command, word| command.arg(*word)));
    }
}
