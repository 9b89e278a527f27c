//! Limits on the bytes that a server accepts at once.
//!
//! `proto-max-bulk-len` limits one argument of a command. `client-query-buffer-limit` limits the
//! commands that Redis has received on a connection and has not run yet. Since Redis 7.0, these
//! include all commands of a transaction. A server that receives more closes the connection.

use redis::cmd;

use super::link::Link;
use crate::redis::error::LinkError;

/// Maximum number of bytes that an argument has in addition to its item: the score for a sorted
/// set.
const BESIDE: usize = 64;

/// Number of bytes that a transaction has in addition to its items.
const FRAME: usize = 64 << 10;

/// Maximum sizes of an item and a batch that are sent to Redis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of bytes of an item.
    pub word: usize,
    /// Maximum number of bytes of all items in a batch.
    pub batch: usize,
    /// True if the server reported its settings.
    pub is_told: bool,
}

impl Limits {
    /// Assumed limits of a server that does not report its settings: half of the default of
    /// `proto-max-bulk-len`.
    pub const ASSUMED: Self = Self { word: 256 << 20, batch: 128 << 20, is_told: false };

    /// Smallest possible [`Limits::word`]: Redis does not allow `proto-max-bulk-len` or
    /// `client-query-buffer-limit` to be below a mebibyte.
    pub const LEAST: usize = of(1 << 20, 1 << 20).word;

    /// Asks the server for its limits. Returns [`Limits::ASSUMED`] if the server does not report
    /// its settings.
    pub async fn ask(link: &mut Link) -> Result<Self, LinkError> {
        let bulk = setting(link, "proto-max-bulk-len").await?;
        let buffer = setting(link, "client-query-buffer-limit").await?;
        Ok(bulk.zip(buffer).map_or(Self::ASSUMED, |(bulk, buffer)| of(bulk, buffer)))
    }
}

/// Computes the limits from `proto-max-bulk-len` and `client-query-buffer-limit`, both in bytes.
const fn of(bulk: usize, buffer: usize) -> Limits {
    // The commit to a list sends its last item twice, so an item may fill half of the buffer.
    let half = (buffer / 2).saturating_sub(FRAME);
    let word = (if bulk < half { bulk } else { half }).saturating_sub(BESIDE);
    // The reject of an unreadable item is up to six times as long as the item, so a batch may fill
    // an eighth of the buffer.
    Limits { word, batch: buffer / 8, is_told: true }
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

    #[test]
    fn two_settings_of_redis_limit_the_size_of_an_item() {
        const MIB: usize = 1 << 20;
        for (bulk, buffer, word, batch) in [
            (512 * MIB, 1024 * MIB, 512 * MIB - FRAME - BESIDE, 128 * MIB),
            (MIB, 1024 * MIB, MIB - BESIDE, 128 * MIB),
            (512 * MIB, MIB, MIB / 2 - FRAME - BESIDE, MIB / 8),
        ] {
            assert_eq!(of(bulk, buffer), Limits { word, batch, is_told: true });
        }
        assert_eq!(Limits::LEAST, MIB / 2 - FRAME - BESIDE);
    }
}
