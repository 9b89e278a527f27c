//! Numbers that a plan is asked for.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

/// A number over 0 and up to 10^15, written as 100, `10_000`, 1e9, 2.5k, 10M, 1G or 1T.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Amount(f64);

/// The most that is planned for: numbers are exact up to there.
const MOST: f64 = 1e15;

impl Amount {
    pub(super) fn get(self) -> f64 {
        self.0
    }
}

impl FromStr for Amount {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let plain = text.trim().replace('_', "");
        let (digits, unit) = match plain.char_indices().last() {
            Some((at, 'k' | 'K')) => (&plain[..at], 1e3),
            Some((at, 'M')) => (&plain[..at], 1e6),
            Some((at, 'G')) => (&plain[..at], 1e9),
            Some((at, 'T')) => (&plain[..at], 1e12),
            _ => (plain.as_str(), 1.0),
        };
        match digits.parse::<f64>().map(|number| number * unit) {
            Ok(number) if number > 0.0 && number <= MOST => Ok(Self(number)),
            _ => Err("not a number over 0 and up to 1e15, as 100, 1e9 or 10M".to_owned()),
        }
    }
}

/// A part of a whole, 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Share(f64);

impl Share {
    pub(super) fn get(self) -> f64 {
        self.0
    }
}

impl FromStr for Share {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.trim().parse::<f64>() {
            Ok(number) if (0.0..=1.0).contains(&number) => Ok(Self(number)),
            _ => Err("not a number from 0 to 1, as 0.1".to_owned()),
        }
    }
}

impl fmt::Display for Share {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Rounded, as 0.07 is not 7 hundredths to the last bit.
        write!(formatter, "{} %", (self.0 * 1e8).round() / 1e6)
    }
}
