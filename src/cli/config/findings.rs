//! Results of the checks of a crawl, as rows of a table and as problems.

use std::fmt::Display;
use std::io::{self, Write};

use super::super::Outcome;
use super::super::rows::Rows;
use crate::admin::printable::{say, stderr, stdout};

/// Width of the names in the table, in columns.
const WIDTHS: [usize; 2] = [13, 0];

/// Results of the checks so far.
#[derive(Default)]
pub(super) struct Findings {
    outcome: Option<Outcome>,
    problems: usize,
}

impl Findings {
    /// Prints the result of a check: a row of the table, or the problem on standard error. Returns
    /// the value if there is no problem.
    ///
    /// # Errors
    /// The program that reads the output has closed it.
    pub(super) fn note<T>(
        &mut self,
        name: &str,
        result: anyhow::Result<(T, impl Display)>,
    ) -> io::Result<Option<T>> {
        match result {
            Ok((value, text)) => {
                Rows::new(stdout(), WIDTHS).row(name, text)?;
                Ok(Some(value))
            }
            Err(error) => {
                // If standard error fails, no other output is left for a message.
                let _ = writeln!(stderr(), "urlseen: {error:#}");
                self.problems += 1;
                self.outcome = self.outcome.max(Some(Outcome::of(&error)));
                Ok(None)
            }
        }
    }

    /// Prints the number of problems, if there are any. Returns the gravest result.
    pub(super) fn end(self) -> Outcome {
        match self.problems {
            0 => {}
            1 => say("urlseen: 1 problem, nothing was started"),
            count => say(format_args!("urlseen: {count} problems, nothing was started")),
        }
        self.outcome.unwrap_or(Outcome::Done)
    }
}
