//! Limits on the bytes that a server accepts at once.
//!
//! `proto-max-bulk-len` limits one argument of a command. `client-query-buffer-limit` limits the
//! commands that Redis has received on a connection and has not run yet. Since Redis 7.0, these
//! include all commands of a transaction. A server that receives more closes the connection.
//!
//! A commit sends at most [`most_made`](crate::reject::bounded::most_made) bytes for an
//! item, as item for the sink or as reject, and the last item for the sink twice. An item has at
//! most an eighth of both limits, a batch of several items at most an eighth of the second one. So
//! an argument stays under a half of the first limit. A transaction stays under three quarters of
//! the second one: a quarter for the batch, one for [`BESIDE`] bytes for each item, and one for the
//! last item.

use indicatif::BinaryBytes;
use redis::cmd;

use super::link::Link;
use crate::error::LinkError;
use crate::reject::bounded::BESIDE;

/// Maximum sizes of an item and a batch that are sent to Redis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerLimits {
    /// Maximum number of bytes of an item.
    pub item: usize,
    /// Maximum number of bytes of all items in a batch of several items.
    pub batch: usize,
    /// Maximum number of items in a batch.
    pub items: usize,
    /// True if the server reported its settings.
    pub is_told: bool,
}

/// Error: `source.item_bytes` exceeds the limits of the server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "source.item_bytes is {}, and this Redis permits at most {}, an eighth of its settings \
     proto-max-bulk-len and client-query-buffer-limit; lower source.item_bytes, or raise these \
     settings to at least {}",
    BinaryBytes(*wanted as u64), BinaryBytes(*most as u64), BinaryBytes(8 * *wanted as u64)
)]
pub struct ItemBytesError {
    wanted: usize,
    most: usize,
}

impl ServerLimits {
    /// Assumed limits of a server that does not report its settings: those of Redis's defaults.
    pub const ASSUMED: Self = Self { is_told: false, ..of(512 << 20, 1 << 30) };

    /// Asks the server for its limits. Returns [`ServerLimits::ASSUMED`] if the server does not
    /// report its settings.
    pub async fn ask(link: &mut Link) -> Result<Self, LinkError> {
        let bulk = setting(link, "proto-max-bulk-len").await?;
        let buffer = setting(link, "client-query-buffer-limit").await?;
        Ok(bulk.zip(buffer).map_or(Self::ASSUMED, |(bulk, buffer)| of(bulk, buffer)))
    }

    /// Checks that the server accepts all commits with items of at most `item_bytes` bytes.
    pub fn check(self, item_bytes: usize) -> Result<(), ItemBytesError> {
        if item_bytes <= self.item {
            return Ok(());
        }
        Err(ItemBytesError { wanted: item_bytes, most: self.item })
    }
}

/// Computes the limits from `proto-max-bulk-len` and `client-query-buffer-limit`, both in bytes.
const fn of(bulk: usize, buffer: usize) -> ServerLimits {
    let item = (if bulk < buffer { bulk } else { buffer }) / 8;
    ServerLimits { item, batch: buffer / 8, items: buffer / 4 / BESIDE, is_told: true }
}

/// Reads a number from the server's settings. Returns `None` if this user has no permission to read
/// the setting, or if the server permits no user to read settings.
async fn setting(link: &mut Link, name: &str) -> Result<Option<usize>, LinkError> {
    let reply = link.call(cmd("CONFIG").arg("GET").arg(name)).await;
    match reply {
        Ok(reply) => Ok(redis::from_redis_value::<Vec<String>>(reply)
            .ok()
            .and_then(|pair| pair.get(1)?.parse().ok())),
        Err(
            LinkError::NoPermission { .. }
            | LinkError::UnknownCommand { .. }
            | LinkError::Refused { .. },
        ) => Ok(None),
        Err(trouble) => Err(trouble),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reject::bounded::most_made;

    #[test]
    fn two_settings_of_redis_limit_items_and_batches() {
        const MIB: usize = 1 << 20;
        for (bulk, buffer, item, items) in [
            (512 * MIB, 1024 * MIB, 64 * MIB, 16_384),
            (MIB, 1024 * MIB, MIB / 8, 16_384),
            (512 * MIB, MIB, MIB / 8, 16),
        ] {
            let limits = of(bulk, buffer);
            assert_eq!(limits, ServerLimits { item, batch: buffer / 8, items, is_told: true });
            assert_eq!(limits.check(item), Ok(()));
            assert!(limits.check(item + 1).is_err());
        }
    }

    /// The worst batches: items of all sizes whose texts are as long as they may be.
    #[test]
    fn no_commit_exceeds_the_limits() {
        let mut state = 1_u64;
        let mut draw = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as usize % below
        };
        for _ in 0..20_000 {
            let (bulk, buffer) = (1 << (20 + draw(12)), 1 << (20 + draw(12)));
            let limits = of(bulk, buffer);
            let largest = [limits.item, 1 + draw(limits.item), 1 + draw(1000)][draw(3)];
            let (mut bytes, mut made) = (0, 0);
            for number in 0..=draw(limits.items.min(500)) {
                let item = draw(largest + 1);
                if number > 0 && bytes + item > limits.batch {
                    break;
                }
                bytes += item;
                made += most_made(item);
            }
            let last = most_made(largest);
            assert!(last <= bulk / 2, "{last} of {bulk}");
            assert!(made + last <= buffer - buffer / 8, "{made} and {last} of {buffer}");
        }
        let limits = of(1 << 20, 1 << 20);
        let made = 2 * limits.batch + limits.items * BESIDE + most_made(limits.item);
        assert!(made <= (1 << 20) - (1 << 17), "{made}");
    }
}
