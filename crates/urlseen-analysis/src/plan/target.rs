//! Target of a plan: an error rate, or a number of lost URLs.

use urlseen_core::filter::{Capacity, ErrorRate, Kind, Parameters, SpecError};

use super::amount::Amount;
use super::fits::{RATES, first, rate};
use super::parameters;
use super::{grouped, lost_text};

/// Number that sets the error rates of the planned filters.
#[derive(Debug, Clone, Copy)]
pub enum Target {
    /// Error rate of each filter at its capacity.
    ErrorRate(ErrorRate),
    /// Largest expected number of URLs that a whole crawl loses. Each kind has an error rate of its
    /// own then.
    Lost(Amount),
}

/// Reason why no filter can be planned.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PlanError {
    /// No filter of the kind has this capacity and error rate.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The kind loses too many URLs at the lowest error rate.
    #[error(
        "a crawl of {} URLs loses {} of them even at the lowest error rate, {:e}",
        grouped(*capacity), lost_text(*lost), ErrorRate::MIN
    )]
    Lost {
        /// Number of URLs of the crawl.
        capacity: u64,
        /// Expected number of lost URLs.
        lost: f64,
    },
    /// The kind has no error rate, and it loses too many URLs.
    #[error("it has no error rate to set, and a crawl loses {} URLs", lost_text(*lost))]
    NoErrorRate {
        /// Expected number of lost URLs.
        lost: f64,
    },
}

/// Parameters of a planned filter, with its error rate.
#[derive(Debug)]
pub(super) struct Planned {
    pub(super) parameters: Parameters,
    /// Value for `filter.error_rate`. Some kinds do not have this key.
    pub(super) error_rate: ErrorRate,
}

impl Target {
    /// Plans a filter of this kind.
    pub(super) fn plan(self, kind: Kind, capacity: Capacity) -> Result<Planned, PlanError> {
        let keys = capacity.get();
        self.plan_with(kind, keys, |rate| parameters(kind, keys, rate, None))
    }

    /// Plans a filter of this kind whose parameters `make` makes from an error rate.
    pub(super) fn plan_with(
        self,
        kind: Kind,
        capacity: u64,
        make: impl Fn(f64) -> Result<Parameters, SpecError>,
    ) -> Result<Planned, PlanError> {
        let planned =
            |error_rate: ErrorRate| Ok(Planned { parameters: make(error_rate.get())?, error_rate });
        let rated = |number| ErrorRate::new(rate(number)).expect("a rate from 1e-12 to 0.1");
        let most = match self {
            Self::ErrorRate(error_rate) => return planned(error_rate),
            Self::Lost(most) => most.get(),
        };
        let lost = |error_rate: ErrorRate| make(error_rate.get())?.lost_urls(capacity);
        let lowest = rated(0);
        if !kind.keys().contains(&"filter.error_rate") {
            let lost = lost(lowest)?;
            return if lost > most {
                Err(PlanError::NoErrorRate { lost })
            } else {
                planned(lowest)
            };
        }
        // A kind may have no filter at low error rates, because such a filter would be too large.
        // So an error counts as no loss here.
        let loses_more = |number| lost(rated(number)).is_ok_and(|lost| lost > most);
        match first(0, RATES + 1, loses_more).checked_sub(1) {
            Some(number) => planned(rated(number)),
            None => Err(PlanError::Lost { capacity, lost: lost(lowest)? }),
        }
    }
}
