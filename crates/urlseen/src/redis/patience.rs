//! Waits between the repetitions of a failed call, and the error of a call that is not repeated.

use std::time::Duration;

use redis::{ErrorKind as Kind, RedisError, ServerErrorKind};

use crate::{Error, ErrorKind};
use urlseen_filter::id;
use urlseen_redis::error::LinkError;

/// Returns true if the server does not know the script that was called.
pub(super) fn is_unknown_script(error: &RedisError) -> bool {
    error.kind() == Kind::Server(ServerErrorKind::NoScript)
}

const FIRST: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_secs(2);

/// Counter of the tries of a call.
#[derive(Debug, Clone)]
pub(super) struct Patience {
    retries: u32,
    tried: u32,
    /// True if another node of a cluster may execute a call that one node has refused.
    is_cluster: bool,
}

impl Patience {
    pub(super) fn new(retries: u32, is_cluster: bool) -> Self {
        Self { retries, tried: 0, is_cluster }
    }

    /// Returns the time to wait before the next try, after a try failed with this error.
    ///
    /// # Errors
    /// Another try would not help, or the maximum number of tries is reached.
    pub(super) fn after(&mut self, error: &RedisError) -> Result<Duration, Error> {
        let last = last(error, self.is_cluster);
        if last.kind() == ErrorKind::Refused {
            return Err(last);
        }
        if self.tried >= self.retries {
            let tries = self.tried + 1;
            let text = format!("Redis is unreachable: {last} (tried {tries} times)");
            return Err(Error::new(ErrorKind::Redis, text));
        }
        let wait = FIRST.saturating_mul(1 << self.tried.min(16)).min(LONGEST);
        self.tried += 1;
        // Waiting clients must not all try again at the same time.
        let share = (id::random() >> 32) as f64 / f64::from(u32::MAX);
        Ok(wait.mul_f64(0.5 + share / 2.0))
    }
}

/// Returns the error of a call that failed with this error, and that is not repeated. Its kind is
/// [`ErrorKind::Refused`] if another try would not help.
pub(super) fn last(error: &RedisError, is_cluster: bool) -> Error {
    let cause = LinkError::from(error.clone());
    let is_elsewhere = !is_cluster && matches!(cause, LinkError::Moved { .. });
    if is_elsewhere || !cause.is_passing() {
        let remedy = "; write the address of a Redis Cluster as redis+cluster://HOST:PORT";
        let remedy = if is_elsewhere { remedy } else { "" };
        let text = format!("Redis refuses the call: {error}{remedy}");
        return Error::new(ErrorKind::Refused, text);
    }
    if error.is_timeout() {
        return Error::new(ErrorKind::Redis, "no answer in the time allowed");
    }
    Error::new(ErrorKind::Redis, error.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the error that the `redis` crate makes of a server's error reply.
    fn reply(line: &str) -> RedisError {
        let value = redis::parse_redis_value(format!("-{line}\r\n").as_bytes()).unwrap();
        value.extract_error().unwrap_err()
    }

    #[test]
    fn only_errors_that_may_pass_are_retried() {
        let in_script = "ERR Error running script (call to f_a94ea23bc16b): @user_script:1: \
                         @user_script: 1: -OOM command not allowed when used memory > 'maxmemory'.";
        for line in [
            "LOADING Redis is loading the dataset in memory",
            "NOREPLICAS Not enough good replicas to write.",
            "ERR max number of clients reached",
            in_script,
        ] {
            assert!(Patience::new(1, true).after(&reply(line)).is_ok(), "{line}");
            assert!(Patience::new(0, true).after(&reply(line)).is_err(), "{line}");
        }
        let moved = reply("MOVED 903 127.0.0.1:7000");
        assert!(Patience::new(1, true).after(&moved).is_ok());
        let refused = Patience::new(1, false).after(&moved).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Refused);
        assert!(refused.to_string().contains("redis+cluster://HOST:PORT"), "{refused}");
        let refused = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
        assert!(Patience::new(1, true).after(&refused.into()).is_ok());
        for line in ["WRONGTYPE Operation against a key", "NOAUTH Authentication required."] {
            assert!(Patience::new(1, true).after(&reply(line)).is_err(), "{line}");
        }
    }
}
