//! Target of a plan: an error rate, or a number of lost URLs.

use std::str::FromStr;

use serde::Serialize;
use urlseen_core::filter::number::{parse_number, whole};
use urlseen_core::filter::{Capacity, ErrorRate, Kind, Parameters, SpecError};

use super::fits::{RATES, first, rate};
use super::{grouped, lost_text, parameters};

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

/// Amount of memory, 1 byte to 2^60 bytes, written as 8GiB, 512MiB, 2.5GB or 1000000.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bytes(u64);

impl Bytes {
    /// Returns the number of bytes.
    pub fn get(self) -> u64 {
        self.0
    }
}

impl FromStr for Bytes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const UNITS: [(&str, f64); 10] = [
            ("", 1.0),
            ("B", 1.0),
            ("KIB", 1024.0),
            ("MIB", 1_048_576.0),
            ("GIB", 1_073_741_824.0),
            ("TIB", 1_099_511_627_776.0),
            ("KB", 1e3),
            ("MB", 1e6),
            ("GB", 1e9),
            ("TB", 1e12),
        ];
        let plain = text.trim().replace('_', "");
        let digits = plain.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let unit = plain[digits.len()..].to_ascii_uppercase();
        let unit = UNITS.into_iter().find(|(name, _)| *name == unit);
        let number = digits.trim_end().parse::<f64>().ok().zip(unit);
        match number.map(|(number, (_, unit))| (number * unit).floor()) {
            Some(bytes) if (1.0..=2.0_f64.powi(60)).contains(&bytes) => Ok(Self(whole(bytes))),
            _ => Err("not an amount of memory such as 8GiB, 512MiB or 2.5GB".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_as_people_write_it() {
        for (text, bytes) in [
            ("8GiB", 8 << 30),
            ("512 mib", 512 << 20),
            ("2.5GB", 2_500_000_000),
            ("1_000", 1000),
            ("1TiB", 1 << 40),
            ("1e6", 1_000_000),
            ("7B", 7),
        ] {
            assert_eq!(text.parse(), Ok(Bytes(bytes)), "{text}");
        }
        for text in ["", "0", "-1GiB", "8 GiBs", "GiB", "nan", "1e30", "8G"] {
            assert!(text.parse::<Bytes>().is_err(), "{text}");
        }
    }
}
