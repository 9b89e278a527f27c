//! Size of a filter: its capacity in keys, and its error rate.

use std::str::FromStr;

use super::SpecError;
use super::number::{CountError, parse_count};

/// Number of keys up to which a filter keeps its error rate: 1 to [`Capacity::MAX`].
///
/// As text, a capacity can be written as `100000000`, `100_000_000`, `1e8`, `2.5e9` or `100M`. The
/// suffixes `k`, `M`, `G` and `T` are powers of a thousand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Capacity(u64);

impl Capacity {
    /// Largest capacity of a filter. At the smallest error rate and with one block for each key,
    /// each part of a shard then has 1.2e9 blocks, whose index fits into 32 bits.
    pub(crate) const MAX: u64 = 1_000_000_000_000;

    /// Checks a number of keys.
    pub fn new(keys: u64) -> Result<Self, SpecError> {
        Self::checked(keys, &keys.to_string())
    }

    /// Checks a number of keys. `shown` is the number as it is written.
    fn checked(keys: u64, shown: &str) -> Result<Self, SpecError> {
        match keys {
            0 => Err(SpecError(format!("capacity {shown} holds no key; give at least 1"))),
            1..=Self::MAX => Ok(Self(keys)),
            _ => Err(SpecError(format!(
                "capacity {shown} is more than the {:e} keys that one filter can index",
                Self::MAX
            ))),
        }
    }

    /// Returns the number of keys.
    pub fn get(self) -> u64 {
        self.0
    }
}

impl FromStr for Capacity {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        match parse_count(&text.trim().replace('_', "")) {
            Ok(keys) => Self::checked(keys, text),
            Err(CountError::Negative) => Self::checked(0, text),
            Err(CountError::TooLarge) => Self::checked(u64::MAX, text),
            Err(_) => Err(SpecError(format!(
                "capacity {text:?} is not a whole number such as 1e9, 100_000_000 or 10M"
            ))),
        }
    }
}

/// Share of unseen keys that a filter at capacity may report as seen: 1e-12 to 0.1.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct ErrorRate(f64);

impl ErrorRate {
    /// Smallest error rate of a filter. At a lower rate, a filter would take almost as much memory
    /// as a set of the fingerprints themselves.
    pub const MIN: f64 = 1e-12;
    /// Largest error rate of a filter.
    pub(crate) const MAX: f64 = 0.1;

    /// Checks an error rate. It is a share, not a percentage.
    pub fn new(rate: f64) -> Result<Self, SpecError> {
        Self::checked(rate, &rate.to_string())
    }

    /// Checks an error rate. `shown` is the rate as it is written.
    fn checked(rate: f64, shown: &str) -> Result<Self, SpecError> {
        let is_possible = (Self::MIN..=Self::MAX).contains(&rate);
        let why = || SpecError(format!("error rate {shown} is not between 1e-12 and 0.1"));
        is_possible.then_some(Self(rate)).ok_or_else(why)
    }

    /// Returns the error rate as a share.
    pub fn get(self) -> f64 {
        self.0
    }

    /// Returns the smallest number of bits per key with which a plain Bloom filter can have this
    /// error rate. For an error rate p, it is log2(1/p) / ln 2.
    ///
    /// See Bloom 1970, and Broder and Mitzenmacher, "Network applications of Bloom filters", 2004.
    pub fn optimal_bits_per_key(self) -> f64 {
        -self.0.log2() / std::f64::consts::LN_2
    }
}

impl FromStr for ErrorRate {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        match text.trim().parse::<f64>() {
            Ok(rate) => Self::checked(rate, text.trim()),
            Err(_) => {
                Err(SpecError(format!("error rate {text:?} is not a number such as 1e-6 or 0.001")))
            }
        }
    }
}

/// Writes the rate in scientific notation: `1e-6`.
impl std::fmt::Display for ErrorRate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:e}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capacity_is_a_count_from_1_to_1e12() {
        assert_eq!(" 1T ".parse().map(Capacity::get), Ok(Capacity::MAX));
        let refused = |text: &str| text.parse::<Capacity>().unwrap_err().to_string();
        assert!(refused("1.5").starts_with("capacity \"1.5\" is not a whole number"));
        for text in ["0", "-5", "0M"] {
            assert_eq!(refused(text), format!("capacity {text} holds no key; give at least 1"));
        }
        for text in ["1000000000001", "1e13", "2T", "99999999999999999999"] {
            assert!(
                refused(text).starts_with(&format!("capacity {text} is more than the 1e12 keys"))
            );
        }
        assert!(Capacity::new(0).is_err());
        assert!(Capacity::new(Capacity::MAX).is_ok());
        let refused = Capacity::new(u64::MAX).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "capacity 18446744073709551615 is more than the 1e12 keys that one filter can index"
        );
    }

    #[test]
    fn rates_outside_the_limits_are_refused() {
        for text in ["1e-12", "0.1", " 1e-6", "0.000001"] {
            assert!(text.parse::<ErrorRate>().is_ok(), "{text}");
        }
        for text in ["0", "1", "0.11", "9e-13", "-1e-6", "nan", "inf"] {
            let refused = text.parse::<ErrorRate>().unwrap_err().to_string();
            assert_eq!(refused, format!("error rate {text} is not between 1e-12 and 0.1"));
        }
        let refused = "1%".parse::<ErrorRate>().unwrap_err().to_string();
        assert_eq!(refused, "error rate \"1%\" is not a number such as 1e-6 or 0.001");
    }

    #[test]
    fn the_optimum_is_that_of_the_textbook() {
        let bits = |rate| ErrorRate::new(rate).unwrap().optimal_bits_per_key();
        assert!((bits(1e-4) - 19.17).abs() < 0.01);
        assert!((bits(1e-8) - 38.34).abs() < 0.01);
    }
}
