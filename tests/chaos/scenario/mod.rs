//! Rounds with a fixed story instead of drawn faults. Each leads the crawl to a state that chance
//! would hardly reach.

mod histories;
mod horizon;
mod lacking;
mod torn;

use anyhow::Result;

use crate::daemon::SOURCE;
use crate::plan::{Plan, Scenario};
use crate::round::{Outcome, Round};

impl Round {
    /// Runs the plan's scenario after the start.
    pub(crate) fn tell(mut self, plan: &Plan) -> Result<Outcome> {
        match plan.scenario {
            Scenario::Faults => self.faults(&plan.steps)?,
            Scenario::Histories => self.histories()?,
            Scenario::Torn => self.torn()?,
            Scenario::Lacking => return self.lacking(),
            Scenario::Horizon => return self.horizon(),
        }
        self.end()
    }

    /// Lets the daemon commit this many batches, one after the other.
    fn commit(&mut self, batches: u64) -> Result<()> {
        for _ in 0..batches {
            self.feeder.feed(&self.server, SOURCE, self.runner.settings.batch)?;
            self.wait_until_done()?;
        }
        Ok(())
    }
}
