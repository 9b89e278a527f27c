//! Claim of a run on the lease of its crawl, and the lease that a session holds.

use tokio::time::Instant;

use super::{RunError, Session};
use urlseen_engine::engine::store::Storage;
use urlseen_filter::id::RandomId;
use urlseen_redis::link::Reply;
use urlseen_redis::protocol::{LEASE, MARGIN, Token};

/// Identity of a run, and its claim on the lease.
#[derive(Debug)]
pub(in crate::pipeline) struct LeaseClaim {
    run: RandomId,
    /// Earlier runs that the folder lists. All of them have ended. `None` until the folder also
    /// lists this run.
    dead: Option<Vec<RandomId>>,
    /// True if the run has asked for the lease. The run may then hold the lease.
    pub(in crate::pipeline) is_made: bool,
}

impl LeaseClaim {
    /// Makes the claim of a new run, with a random id.
    pub(in crate::pipeline) fn new() -> Self {
        Self { run: RandomId::random(), dead: None, is_made: false }
    }

    /// Makes a token for a connection.
    pub(in crate::pipeline) fn token(&self) -> Token {
        Token::new(self.run)
    }

    /// Records the run in the folder, once, and returns the earlier runs that the folder lists. All
    /// earlier runs have ended, because this process holds the lock of the folder. If Redis came
    /// back with older data, any of these runs may hold the lease in that data. The folder lists
    /// this run before Redis does. So a later run with the lock can prove that this run has ended.
    pub(in crate::pipeline) async fn announce(
        &mut self,
        storage: Option<&Storage>,
    ) -> Result<&[RandomId], RunError> {
        let dead = match (self.dead.take(), storage) {
            (Some(dead), _) => dead,
            (None, None) => Vec::new(),
            (None, Some(storage)) => {
                let run = self.run;
                let dead = storage.call(move |store| store.kept.folder.announce(run)).await?;
                dead.map_err(RunError::Folder)?
            }
        };
        Ok(self.dead.insert(dead))
    }
}

/// The lease, under the token of one connection.
#[derive(Debug)]
pub(super) struct Lease {
    pub(super) token: Token,
    /// Time at which the lease counts as lost unless it is renewed before.
    pub(super) until: Instant,
    /// Time of the last request for the lease or for a renewal.
    pub(super) asked: Instant,
    /// True if a renewal was due while the disk did not answer.
    pub(super) is_due: bool,
}

impl Lease {
    /// Notes a lease that was requested at `asked`.
    pub(super) fn new(token: Token, asked: Instant) -> Self {
        Self { token, until: asked + LEASE - MARGIN, asked, is_due: false }
    }

    /// Notes that Redis granted the last renewal.
    pub(super) fn renewed(&mut self) {
        self.until = self.asked + LEASE - MARGIN;
    }
}

impl Session<'_> {
    /// Requests a renewal, unless one is under way. If the disk does not answer, only notes that a
    /// renewal is due.
    pub(super) fn renew(&mut self) {
        const NAME: &str = "renewal";
        if self.requests.is_asking(NAME) {
            return;
        }
        self.lease.is_due = self.pipeline.filter.hang().is_some();
        if !self.lease.is_due {
            let renew = self.pipeline.parts.protocol.renew(&self.lease.token);
            self.lease.asked = Instant::now();
            let take = Box::new(|session: &mut Session<'_>, reply: Reply, _| {
                session.pipeline.parts.protocol.done(reply.into_value()?)?;
                session.lease.renewed();
                Ok(())
            });
            self.requests.ask_once(NAME, &renew, take);
        }
    }

    /// Returns the reason why the lease was not renewed in time.
    pub(super) fn lapsed(&self) -> RunError {
        let disk = self.pipeline.filter.disk.as_ref();
        let hang = disk.and_then(|disk| disk.hang().or_else(|| disk.hang_until(self.lease.asked)));
        hang.map_or(RunError::Lapsed, RunError::Hanging)
    }
}
