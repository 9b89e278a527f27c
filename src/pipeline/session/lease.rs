//! The lease that a session holds.

use tokio::time::Instant;

use super::{Pending, RunError, Session};
use urlseen_core::redis::protocol::{LEASE, MARGIN, Token};

/// The lease, under the token of one connection.
#[derive(Debug)]
pub(in crate::pipeline) struct Lease {
    pub(in crate::pipeline) token: Token,
    /// Time at which the lease counts as lost unless it is renewed before.
    pub(in crate::pipeline) until: Instant,
    /// Time of the last request for the lease or for a renewal.
    asked: Instant,
    /// True if a renewal was due while the disk did not answer.
    is_due: bool,
}

impl Lease {
    /// Notes a lease that was requested at `asked`.
    pub(in crate::pipeline) fn new(token: Token, asked: Instant) -> Self {
        Self { token, until: asked + LEASE - MARGIN, asked, is_due: false }
    }

    /// Notes that a renewal is requested now.
    pub(in crate::pipeline) fn ask(&mut self) {
        self.asked = Instant::now();
    }

    /// Notes that Redis granted the last renewal.
    pub(in crate::pipeline) fn renewed(&mut self) {
        self.until = self.asked + LEASE - MARGIN;
    }
}

impl Session<'_> {
    /// Requests a renewal, unless one is under way. If the disk does not answer, only notes that a
    /// renewal is due.
    pub(super) fn renew(&mut self) {
        if self.requests.is_asking(&Pending::Renewal) {
            return;
        }
        self.lease.is_due = self.pipeline.filter.hang().is_some();
        if !self.lease.is_due {
            let renew = self.pipeline.parts.protocol.renew(&self.lease.token);
            self.lease.ask();
            self.requests.ask(Pending::Renewal, &renew);
        }
    }

    /// Requests a renewal that was delayed by the disk, if the disk answers again.
    pub(super) fn renew_if_due(&mut self) {
        if self.lease.is_due {
            self.renew();
        }
    }

    /// Returns the reason why the lease was not renewed in time.
    pub(super) fn lapsed(&self) -> RunError {
        let disk = self.pipeline.filter.disk();
        let hang = disk.and_then(|disk| disk.hang().or_else(|| disk.hang_until(self.lease.asked)));
        hang.map_or(RunError::Lapsed, RunError::Hanging)
    }
}
