//! Renewing the lease.

use tokio::time::Instant;

use super::{Pending, RunError, Session};

impl Session<'_> {
    /// Asks for a renewal, unless one is under way or the disk hangs: then it is due.
    pub(super) fn renew(&mut self) {
        if self.is_asking(&Pending::Renewal) {
            return;
        }
        self.is_renewal_due = self.pipeline.hang().is_some();
        if !self.is_renewal_due {
            let renew = self.pipeline.parts.protocol.renew(&self.token);
            self.renewal_asked = Instant::now();
            self.ask(Pending::Renewal, &renew);
        }
    }

    /// Asks for a renewal that the disk has delayed, as soon as it answers.
    pub(super) fn renew_if_due(&mut self) {
        if self.is_renewal_due {
            self.renew();
        }
    }

    /// Why the lease was not renewed in time.
    pub(super) fn lapsed(&self) -> RunError {
        let asked = self.renewal_asked.into_std();
        let disk = self.pipeline.disk.as_ref();
        // A session that waited for the disk itself comes here once it has the answer.
        let hang = disk.and_then(|disk| disk.hang().or_else(|| disk.hang_until(asked)));
        hang.map_or(RunError::Lapsed, RunError::Hanging)
    }
}
