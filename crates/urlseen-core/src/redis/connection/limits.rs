//! Limits on the bytes that a server takes at once.
//!
//! A word of a command may have `proto-max-bulk-len` bytes, and what waits of a connection's
//! commands `client-query-buffer-limit`; since Redis 7.0 that counts a whole transaction. A server
//! that is sent more closes the connection.

use redis::cmd;

use super::link::Link;
use crate::redis::error::LinkError;

/// Bytes that stand beside an item in its word: a sorted set's score.
const BESIDE: usize = 64;

/// Bytes that stand beside the items in a transaction.
const FRAME: usize = 64 << 10;

/// Bytes that one item and one batch may have on their way to Redis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes that may be sent of one item.
    pub word: usize,
    /// Bytes that the items of a batch may have together.
    pub batch: usize,
    /// True if the server told its settings.
    pub is_told: bool,
}

impl Limits {
    /// The assumption for a server that does not tell: half of the default of
    /// `proto-max-bulk-len`.
    pub const ASSUMED: Self = Self { word: 256 << 20, batch: 128 << 20, is_told: false };

    /// The least that [`Limits::word`] can be: neither setting of Redis goes below a mebibyte.
    pub const LEAST: usize = of(1 << 20, 1 << 20).word;

    /// Asks the server. One that does not tell is assumed to have half of the default.
    pub async fn ask(link: &mut Link) -> Result<Self, LinkError> {
        let bulk = setting(link, "proto-max-bulk-len").await?;
        let buffer = setting(link, "client-query-buffer-limit").await?;
        Ok(bulk.zip(buffer).map_or(Self::ASSUMED, |(bulk, buffer)| of(bulk, buffer)))
    }
}

/// The limits of a server with these settings.
const fn of(bulk: usize, buffer: usize) -> Limits {
    // A list's commit names its last item twice.
    let half = (buffer / 2).saturating_sub(FRAME);
    let word = (if bulk < half { bulk } else { half }).saturating_sub(BESIDE);
    // What cannot be read becomes up to six times as long.
    Limits { word, batch: buffer / 8, is_told: true }
}

/// A number among the server's settings; `None` if this user, or nobody, may ask for it.
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
