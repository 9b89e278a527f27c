//! Target of a plan: an error rate, or a number of lost URLs.

use std::str::FromStr;

use serde::Serialize;
use urlseen_core::filter::number::parse_number;
use urlseen_core::filter::{Capacity, ErrorRate, Kind, Parameters, SpecError};

use super::{grouped, lost_text, parameters};

/// Index of the largest error rate that is tried. The tried rates ascend from 1e-12, at index 0, to
/// 0.1, and have two digits each.
const RATES: u64 = 11 * PER_DECADE;
const PER_DECADE: u64 = 90;

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
        self.plan_with(kind, keys, |rate| parameters(kind, keys, rate))
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

/// Number over 0 and up to 10^15, written as 100, `10_000`, 1e9, 2.5k, 10M, 1G or 1T.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Amount(f64);

/// Largest number that a plan accepts. A float represents all whole numbers up to it exactly.
const MOST: f64 = 1e15;

impl Amount {
    /// Returns the number itself.
    pub fn get(self) -> f64 {
        self.0
    }
}

impl FromStr for Amount {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match parse_number(&text.trim().replace('_', "")) {
            Ok(number) if number > 0.0 && number <= MOST => Ok(Self(number)),
            _ => Err("not a number above 0 and up to 1e15, such as 100, 1e9 or 10M".to_owned()),
        }
    }
}

/// Returns the first number in `from..to` for which `holds` is true. Returns `to` if there is no
/// such number. If `holds` is true for a number, it must also be true for all larger numbers up to
/// `to`.
fn first(mut from: u64, mut to: u64, holds: impl Fn(u64) -> bool) -> u64 {
    while from < to {
        let middle = from.midpoint(to);
        if holds(middle) {
            to = middle;
        } else {
            from = middle + 1;
        }
    }
    to
}

/// Returns the error rate at this index in the list of tried rates.
fn rate(number: u64) -> f64 {
    let (decade, step) = (number / PER_DECADE, 10 + number % PER_DECADE);
    let text = format!("{}.{}e-{}", step / 10, step % 10, 12 - decade);
    text.parse().unwrap_or(ErrorRate::MIN)
}

#[cfg(test)]
#[allow(clippy::float_cmp)] // The test compares rates that must be equal, bit for bit.
mod tests {
    use super::*;

    #[test]
    fn tried_rates_have_two_digits() {
        assert_eq!([0, 1, 89, 90, RATES].map(rate), [1e-12, 1.1e-12, 9.9e-12, 1e-11, 0.1]);
    }
}
