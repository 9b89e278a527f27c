//! Mean of a function of a binomially distributed count.

use super::number::whole;

/// Minimum mean for which the normal distribution replaces the binomial distribution. At such a
/// mean, the skew of the binomial distribution, 1/σ, is below 0.004. The skew changes an error rate
/// by less than one part in a thousand.
const NORMAL_FROM: f64 = 1e5;

/// Returns the mean of `f(count)`. Each of `trials` trials falls into one of `parts` equal parts,
/// and `count` is the number of trials in the first part. `f` must be smooth, with values from 0 to
/// 1.
///
/// The weights of the terms are computed by recurrence from the mode outwards, and divided by their
/// sum. So no number overflows, and no factorial is needed. Only terms with a distance
/// of σ/3 between them are summed. For a bell curve, this changes the result by less than a
/// rounding error.
pub(super) fn over_binomial(trials: u64, parts: u64, f: impl Fn(u64) -> f64) -> f64 {
    if parts == 1 {
        return f(trials);
    }
    let chance = 1.0 / parts as f64;
    let mean = trials as f64 * chance;
    let sigma = (mean * (1.0 - chance)).sqrt();
    if mean > NORMAL_FROM {
        return over_normal(mean, sigma, f);
    }
    let (mode, stride) = (whole(mean), whole(sigma / 3.0).max(1));
    // Terms whose weight is below this share of the mode's weight do not matter for error rates of
    // 1e-12 and more.
    let negligible = 1e-20;
    let odds = 1.0 / (parts - 1) as f64;
    let (mut sum, mut weights) = (f(mode), 1.0);

    let (mut weight, mut count) = (1.0, mode);
    while weight > negligible && count < trials {
        weight *= (trials - count) as f64 / (count + 1) as f64 * odds;
        count += 1;
        if (count - mode).is_multiple_of(stride) {
            sum += weight * f(count);
            weights += weight;
        }
    }
    let (mut weight, mut count) = (1.0, mode);
    while weight > negligible && count > 0 {
        weight *= count as f64 / ((trials - count + 1) as f64 * odds);
        count -= 1;
        if (mode - count).is_multiple_of(stride) {
            sum += weight * f(count);
            weights += weight;
        }
    }
    sum / weights
}

/// Returns the mean of `f(count)`. The mean of the count itself is large, so the count has nearly a
/// normal distribution.
fn over_normal(mean: f64, sigma: f64, f: impl Fn(u64) -> f64) -> f64 {
    let (mut sum, mut weights) = (0.0, 0.0);
    for step in -30..=30 {
        let z = f64::from(step) / 3.0;
        let weight = (-0.5 * z * z).exp();
        // The count is positive, because the mean is far more than ten sigma.
        sum += weight * f(whole((mean + z * sigma).round()));
        weights += weight;
    }
    sum / weights
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares each mean of `1 - e^(-count t)` with a closed form. The closed form follows from
    /// the generating function of the binomial distribution: `(1 - q + q e^(-t))^trials`.
    #[test]
    fn means_are_those_of_the_generating_function() {
        for trials in [0, 1, 2, 7, 255, 256, 5_000, 1_000_000, 20_000_000, 30_000_000_000] {
            for parts in [1, 2, 7, 256] {
                let chance = 1.0 / parts as f64;
                let t = 1.0 / (1.0 + trials as f64 * chance);
                let got = over_binomial(trials, parts, |count| (-(count as f64) * t).exp());
                let want = (trials as f64 * (chance * (-t).exp_m1()).ln_1p()).exp();
                let allowed = if trials as f64 * chance > NORMAL_FROM { 1e-6 } else { 1e-9 };
                assert!((got / want - 1.0).abs() < allowed, "{trials}/{parts}: {got} {want}");
            }
        }
    }
}
