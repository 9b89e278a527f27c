//! Waiting for an idle source, on a connection of its own, as that blocks it.

use redis::Value;

use super::{Session, Supply};
use urlseen_core::redis::error::LinkError;
use urlseen_core::redis::link::{Link, Reply};

/// How long one wait for an idle source lasts before it is made anew, in seconds.
const WAIT_S: f64 = 10.0;

impl Session<'_> {
    /// Waits where the source is idle and nothing else does.
    pub(super) fn wait_if_idle(&mut self) {
        if self.supply == Supply::Empty
            && let (Some(waiter), Some(after)) = (&mut self.waiter, self.read_to)
            && waiter.is_idle()
        {
            waiter.send(&self.pipeline.parts.protocol.wait(after, WAIT_S));
        }
    }

    /// The wait for an idle source is over, whether it found something or not.
    pub(super) fn woken(&mut self, found: &Value) {
        if self.supply == Supply::Empty && self.pipeline.parts.protocol.wakes(found) {
            self.supply = Supply::Unknown;
            self.linger.begin();
        }
    }
}

/// The next reply on a link that may not be there.
pub(super) async fn receive(link: Option<&mut Link>) -> Result<Reply, LinkError> {
    match link {
        Some(link) => link.receive().await,
        None => std::future::pending().await,
    }
}
