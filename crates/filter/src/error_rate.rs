//! Error rate of a filter.

use std::str::FromStr;

use super::SpecError;

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
