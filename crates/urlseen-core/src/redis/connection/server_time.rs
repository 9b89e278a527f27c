//! Time of day of a server.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use redis::cmd;

use super::link::Link;
use crate::redis::error::LinkError;

/// Asks the server for its time. Returns `None` if this user has no permission to ask.
///
/// # Errors
/// The connection is lost, or the server refuses its commands for now.
pub async fn ask(link: &mut Link) -> Result<Option<SystemTime>, LinkError> {
    match link.call(&cmd("TIME")).await {
        Ok(reply) => {
            let parts = redis::from_redis_value::<(u64, u64)>(reply).ok();
            let since_1970 = parts.map(|(seconds, micros)| {
                Duration::from_secs(seconds).saturating_add(Duration::from_micros(micros))
            });
            Ok(since_1970.and_then(|since| UNIX_EPOCH.checked_add(since)))
        }
        Err(LinkError::NoPermission { .. } | LinkError::UnknownCommand { .. }) => Ok(None),
        Err(trouble) => Err(trouble),
    }
}
