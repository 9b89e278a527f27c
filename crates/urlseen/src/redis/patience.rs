//! How often something is tried again.

use std::time::Duration;

use redis::{RedisError, RetryMethod};

use crate::{Error, ErrorKind};
use urlseen_core::filter::id;

const FIRST: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_secs(2);

/// What is left of the tries of one question.
#[derive(Debug)]
pub(super) struct Patience {
    retries: u32,
    tried: u32,
}

impl Patience {
    pub(super) fn new(retries: u32) -> Self {
        Self { retries, tried: 0 }
    }

    /// How long to wait before the next try after this error.
    ///
    /// # Errors
    /// It would not help, or enough was tried.
    pub(super) fn after(&mut self, error: &RedisError) -> Result<Duration, Error> {
        if !is_passing(error) {
            return Err(Error::new(ErrorKind::Redis, format!("Redis refuses: {error}")));
        }
        if self.tried >= self.retries {
            let tries = self.tried + 1;
            let text = format!("Redis is not there: {error} (tried {tries} times)");
            return Err(Error::new(ErrorKind::Redis, text));
        }
        let wait = FIRST.saturating_mul(1 << self.tried.min(16)).min(LONGEST);
        self.tried += 1;
        // Not all that wait come back at once.
        let share = (id::random() >> 32) as f64 / f64::from(u32::MAX);
        Ok(wait.mul_f64(0.5 + share / 2.0))
    }
}

/// Whether it may be over soon.
fn is_passing(error: &RedisError) -> bool {
    let is_said = |code: &str| error.code() == Some(code);
    error.is_io_error()
        || error.is_timeout()
        || error.is_connection_dropped()
        || matches!(error.retry_method(), RetryMethod::WaitAndRetry | RetryMethod::RetryImmediately)
        || ["LOADING", "BUSY", "MASTERDOWN", "READONLY", "OOM", "MISCONF"].into_iter().any(is_said)
}
