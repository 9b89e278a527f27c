//! Round with a fixed sequence of events instead of random faults. It leads to a state that random
//! faults would seldom reach.

mod histories;

use anyhow::Result;

use crate::daemon::SOURCE;
use crate::plan::{Plan, Scenario};
use crate::round::{Outcome, Round};

impl Round {
    /// Runs the scenario of the plan.
    pub(crate) fn tell(mut self, plan: &Plan) -> Result<Outcome> {
        match plan.scenario {
            Scenario::Faults => self.faults(&plan.steps)?,
            Scenario::Histories => self.histories()?,
        }
        self.end()
    }

    /// Lets the daemon commit this number of batches, one after the other.
    fn commit(&mut self, batches: u64) -> Result<()> {
        for _ in 0..batches {
            self.feeder.feed(&self.server, SOURCE, self.runner.settings.batch)?;
            self.wait_until_done()?;
        }
        Ok(())
    }
}
