//! Rounds that tell a story instead of drawing faults: each takes the crawl to a place where chance
//! would hardly take it.

mod histories;
mod lacking;
mod torn;

use anyhow::Result;

use crate::daemon::SOURCE;
use crate::plan::{Plan, Scenario};
use crate::round::{Outcome, Round};

impl Round {
    /// What the plan's scenario does after the beginning.
    pub(crate) fn tell(mut self, plan: &Plan) -> Result<Outcome> {
        match plan.scenario {
            Scenario::Faults => self.faults(&plan.steps)?,
            Scenario::Histories => self.histories()?,
            Scenario::Torn => self.torn()?,
            Scenario::Lacking => return self.lacking(),
        }
        self.end()
    }

    /// Lets the daemon commit so many batches, one after the other.
    fn commit(&mut self, batches: u64) -> Result<()> {
        for _ in 0..batches {
            self.feeder.feed(&self.server, SOURCE, self.runner.settings.batch)?;
            self.wait_until_done()?;
        }
        Ok(())
    }
}
