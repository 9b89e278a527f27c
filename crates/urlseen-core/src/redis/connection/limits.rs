//! Limits on the bytes that a server accepts at once.
//!
//! `proto-max-bulk-len` limits one argument of a command. `client-query-buffer-limit` limits the
//! commands of a connection that wait; since Redis 7.0 that includes a whole transaction. A server
//! that receives more closes the connection.

use redis::cmd;

use super::link::Link;
use crate::redis::error::LinkError;

/// Bytes beside an item in its argument: the score of a sorted set.
const BESIDE: usize = 64;

/// Bytes beside the items in a transaction.
const FRAME: usize = 64 << 10;

/// Bytes that one item and one batch may have on their way to Redis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Most bytes that one item may have.
    pub word: usize,
    /// Most bytes that the items of a batch may have together.
    pub batch: usize,
    /// True if the server reported its settings.
    pub is_told: bool,
}

impl Limits {
    /// Assumed limits of a server that does not report its settings: half of the default of
    /// `proto-max-bulk-len`.
    pub const ASSUMED: Self = Self { word: 256 << 20, batch: 128 << 20, is_told: false };

    /// Smallest possible [`Limits::word`]: Redis allows neither setting below a mebibyte.
    pub const LEAST: usize = of(1 << 20, 1 << 20).word;

    /// Asks the server. [`Limits::ASSUMED`] stands in if it does not report its settings.
    pub async fn ask(link: &mut Link) -> Result<Self, LinkError> {
        let bulk = setting(link, "proto-max-bulk-len").await?;
        let buffer = setting(link, "client-query-buffer-limit").await?;
        Ok(bulk.zip(buffer).map_or(Self::ASSUMED, |(bulk, buffer)| of(bulk, buffer)))
    }
}

/// Computes the limits from the two settings.
const fn of(bulk: usize, buffer: usize) -> Limits {
    // The commit of a list names its last item twice.
    let half = (buffer / 2).saturating_sub(FRAME);
    let word = (if bulk < half { bulk } else { half }).saturating_sub(BESIDE);
    // The reject of an unreadable item is up to six times as long as the item.
    Limits { word, batch: buffer / 8, is_told: true }
}

/// Reads a number from the server's settings. Returns `None` if this user may not ask, or if the
/// server allows no user to ask.
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
    fn both_settings_bound_an_item() {
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
