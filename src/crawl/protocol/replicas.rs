//! Wait until replicas have the commits.

use std::time::Duration;

use redis::{Cmd, Value, cmd};

use super::reply::value;
use super::{Protocol, ProtocolError};
use urlseen_core::redis::preflight::{CommandNeed, Needs};

/// Maximum time of one `WAIT`. Redis executes no later command of the connection in this time. So
/// this time must be much shorter than the time between two renewals of the lease.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Adds to `needs` the command that waits for replicas.
pub(super) fn add(needs: &mut Needs) {
    needs.command(CommandNeed::new("WAIT").arg("0").arg("1"));
}

impl Protocol {
    /// Returns the number of replicas that must have a commit, `redis.wait_replicas`.
    pub(crate) fn wanted_replicas(&self) -> u64 {
        self.wanted_replicas
    }

    /// Waits until the wanted replicas have all earlier writes of the connection, or until a
    /// time-out. Inside a transaction or a script, Redis would not wait.
    pub(crate) fn wait(&self) -> Cmd {
        let mut wait = cmd("WAIT");
        wait.arg(self.wanted_replicas).arg(TIMEOUT.as_millis().to_string());
        wait
    }

    /// Reads the reply to [`Protocol::wait`]: the number of replicas that have the writes.
    pub(crate) fn waited(&self, reply: Value) -> Result<u64, ProtocolError> {
        value("WAIT", reply)
    }
}
