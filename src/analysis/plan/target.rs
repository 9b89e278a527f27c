//! Target of a plan: an error rate, or a number of lost URLs.

use urlseen_filter::number::parse_number;
use urlseen_filter::{Capacity, ErrorRate, Kind, Parameters, SpecError};

use super::{grouped, lost_text, parameters};

/// Index of the largest error rate that is tried. The tried rates ascend from 1e-12, at index 0, to
/// 0.1, and have two digits each.
const RATES: u64 = 11 * PER_DECADE;
const PER_DECADE: u64 = 90;

/// Number that sets the error rates of the planned filters.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Target {
    /// Error rate of each filter at its capacity.
    ErrorRate(ErrorRate),
    /// Largest expected number of URLs that a whole crawl loses. Each kind has an error rate of its
    /// own then.
    Lost(f64),
}

/// Reason why no filter can be planned.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(crate) enum PlanError {
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
        self.plan_with(kind, keys, |rate| parameters(kind, [keys; 2], rate, None))
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
        let most = match self {
            Self::ErrorRate(error_rate) => return planned(error_rate),
            Self::Lost(most) => most,
        };
        let lost = |error_rate: ErrorRate| make(error_rate.get())?.lost_urls(capacity);
        let rates: Vec<_> = (0..=RATES).map(rate).collect();
        if !kind.keys().contains(&"filter.error_rate") {
            return match lost(rates[0])? {
                lost if lost > most => Err(PlanError::NoErrorRate { lost }),
                _ => planned(rates[0]),
            };
        }
        // A kind may have no filter at low error rates, because such a filter would be too large.
        // So an error counts as no loss here.
        let loses_more = |&rate: &_| lost(rate).is_ok_and(|lost| lost > most);
        match rates.partition_point(|rate| !loses_more(rate)).checked_sub(1) {
            Some(number) => planned(rates[number]),
            None => Err(PlanError::Lost { capacity, lost: lost(rates[0])? }),
        }
    }
}

/// Reads a number over 0 and up to 10^15, written as 100, `10_000`, 1e9, 2.5k, 10M, 1G or 1T. A
/// float represents all whole numbers up to this limit exactly.
pub(crate) fn amount(text: &str) -> Result<f64, String> {
    match parse_number(&text.trim().replace('_', "")) {
        Ok(number) if number > 0.0 && number <= 1e15 => Ok(number),
        _ => Err("not a number above 0 and up to 1e15, such as 100, 1e9 or 10M".to_owned()),
    }
}

/// Returns the error rate at this index in the list of tried rates.
fn rate(number: u64) -> ErrorRate {
    let (decade, step) = (number / PER_DECADE, 10 + number % PER_DECADE);
    let text = format!("{}.{}e-{}", step / 10, step % 10, 12 - decade);
    text.parse().expect("a rate from 1e-12 to 0.1")
}

#[cfg(test)]
#[allow(clippy::float_cmp)] // The test compares rates that must be equal, bit for bit.
mod tests {
    use super::*;

    #[test]
    fn tried_rates_have_two_digits() {
        assert_eq!(
            [0, 1, 89, 90, RATES].map(|it| rate(it).get()),
            [1e-12, 1.1e-12, 9.9e-12, 1e-11, 0.1]
        );
    }
}
