//! Measured error rate of the filter.

use serde::{Deserialize, Serialize};
use statrs::distribution::{Beta, ContinuousCDF};

use urlseen_core::filter::Measured;

/// Probability that the error rate is at most the upper bound.
const CONFIDENCE: f64 = 0.95;

/// Measured error rate: the answers of the filter on an even sample of all URLs of the crawl. Each
/// URL counts once, by the first answer on it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct MeasuredStatus {
    /// Number of URLs in the sample. None of them was seen before it was asked.
    pub asked: u64,
    /// Number of these URLs that the filter reported as seen. They are lost.
    pub wrong: u64,
    /// Share of wrong answers.
    pub error_rate: f64,
    /// Upper bound of the error rate, with a confidence of 95 %. `None` if wrong answers may be
    /// missing; then `error_rate` is a lower bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_rate_max: Option<f64>,
}

impl MeasuredStatus {
    /// Adds the sample of another partition.
    pub(super) fn and(&self, other: &Self) -> Self {
        let measured = |it: &Self| Measured {
            asked: it.asked,
            wrong: it.wrong,
            is_partial: it.error_rate_max.is_none(),
        };
        (measured(self) + measured(other)).into()
    }
}

impl From<Measured> for MeasuredStatus {
    fn from(Measured { asked, wrong, is_partial }: Measured) -> Self {
        let error_rate = wrong as f64 / asked.max(1) as f64;
        let error_rate_max = (!is_partial).then(|| upper_bound(asked, wrong));
        Self { asked, wrong, error_rate, error_rate_max }
    }
}

/// Returns the one-sided bound of Clopper and Pearson (1934), which is exact for a binomial
/// distribution. It is the quantile of a beta distribution.
fn upper_bound(asked: u64, wrong: u64) -> f64 {
    let right = asked - wrong;
    // There is no such distribution if no answer is right; every rate is possible then.
    let beta = Beta::new(wrong as f64 + 1.0, right as f64);
    beta.map_or(1.0, |beta| beta.inverse_cdf(CONFIDENCE))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares with the bounds that `scipy.stats.beta.ppf(0.95, wrong + 1, asked - wrong)` of
    /// Python's package scipy computes. Four digits are enough for an upper bound.
    #[test]
    fn the_bound_is_that_of_clopper_and_pearson() {
        for (asked, wrong, bound) in [
            (100, 0, 0.029_513_049_607_039_925),
            (200_000, 0, 1.497_854_918_818_866_6e-5),
            (200_000, 3, 3.876_782_191_407_880_6e-5),
            (100_000, 100, 0.001_180_685_969_173_453_4),
            (200_000, 150_000, 0.751_592_440_082_445_1),
        ] {
            let found = upper_bound(asked, wrong);
            assert!((found / bound - 1.0).abs() < 1e-4, "{wrong} of {asked}: {found}");
        }
        assert!(upper_bound(0, 0) >= 1.0);
        assert!(upper_bound(5, 5) >= 1.0);
    }
}
