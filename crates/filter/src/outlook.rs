//! Computed memory and error rate of a filter with a given number of keys, and the expected number
//! of URLs that a crawl loses: unseen fingerprints that the filter reports as seen.
//!
//! The error rate of a filter grows with its number of keys. So the number of lost URLs is the
//! integral of the error rate, from an empty filter to the number of keys.

/// Computed size and error rate of a filter that holds some number of keys.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Outlook {
    /// Number of strings or layers that have bits; 0 for a set of keys.
    pub strings: usize,
    /// Number of bits of the strings or layers; 0 for a set of keys.
    pub bits: u64,
    /// Number of bits that a key sets in the newest layer; 0 for a set of keys.
    pub hashes: u32,
    /// Minimum and maximum of the memory in bytes.
    pub bytes: [u64; 2],
    /// Share of unseen keys that the filter reports as seen.
    pub error_rate: f64,
    /// Reason why the filter cannot have the requested error rate.
    pub warning: Option<String>,
}

impl Outlook {
    /// Computes the outlook of Redis strings with these numbers of bits.
    pub(super) fn of_strings(bits: &[u64], hashes: u32, error_rate: f64) -> Self {
        let bytes = bits.iter().map(|bits| allocated(bits.div_ceil(8))).sum();
        let (strings, bits) = (bits.len(), bits.iter().sum());
        Self { strings, bits, hashes, bytes: [bytes; 2], error_rate, ..Self::default() }
    }
}

/// Returns the memory that Redis takes for a string of this length, in bytes. Redis allocates with
/// jemalloc, which has four sizes from one power of two to the next. A string below a mebibyte may
/// take more, because Redis reserves up to twice the length.
fn allocated(bytes: u64) -> u64 {
    // Upper bound for the flags, the lengths and the zero after the last byte.
    const HEADER: u64 = 32;
    let taken = bytes + HEADER;
    taken.next_multiple_of(taken.next_power_of_two() / 8)
}

/// Largest number of parts of the integral. The rate of a Bloom filter grows nearly with the k-th
/// power of its keys. With 64 parts, the error of the integral is below 0.1 % up to k = 40.
const PARTS: u64 = 64;

/// Integrates an error rate from 0 to this number of keys, by Simpson's rule. Calls `rate` at most
/// 66 times.
pub(super) fn integral<E>(keys: u64, rate: impl Fn(u64) -> Result<f64, E>) -> Result<f64, E> {
    // The number of parts is even, and all parts have the same whole number of keys. The keys that
    // are left over come first, where the error rate is lowest.
    let parts = PARTS.min(keys - keys % 2);
    let step = keys.checked_div(parts).unwrap_or(0);
    let first = keys - parts * step;
    let mut sum = 0.0;
    for part in 0..=parts {
        let weight = match part {
            0 => 1.0,
            _ if part == parts => 1.0,
            _ if part % 2 == 1 => 4.0,
            _ => 2.0,
        };
        sum += weight * rate(first + part * step)?;
    }
    let before = first as f64 * f64::midpoint(rate(0)?, rate(first)?);
    Ok(before + sum * step as f64 / 3.0)
}

#[cfg(test)]
mod tests {

    use super::super::{Geometry, Kind, Parameters, Sizing};
    use super::*;

    fn parameters(kind: Kind, capacity: u64, error_rate: f64) -> Parameters {
        let value = |name| match name {
            "filter.capacity" | "filter.grow_to" => Some(capacity.to_string()),
            "filter.error_rate" => Some(error_rate.to_string()),
            name => kind.usual(name).map(str::to_owned),
        };
        kind.read(&value).unwrap()
    }

    /// Sums the error rate of `steps` equal steps, each in its middle.
    fn fine_sum(parameters: &Parameters, keys: u64, steps: u64) -> f64 {
        let step = keys / steps;
        let middles = (0..steps).map(|number| number * step + step / 2);
        let rates = middles.map(|keys| parameters.outlook(keys).unwrap().error_rate);
        rates.sum::<f64>() * step as f64
    }

    #[test]
    fn lines_and_powers_are_integrated() {
        for keys in [0, 1, 2, 3, 63, 64, 65, 127, 1000, 12_345_678, 1_000_000_000_000] {
            let whole = keys as f64;
            let line = integral(keys, |keys| Ok::<_, ()>(keys as f64)).unwrap();
            assert!((line - whole * whole / 2.0).abs() <= 1e-9 * whole * whole, "{keys}: {line}");
            let power = |keys: u64| Ok::<_, ()>((keys as f64 / whole).powi(40));
            let share = integral(keys, power).unwrap() / whole;
            assert!(keys < 64 || (share * 41.0 - 1.0).abs() < 0.02, "{keys}: {share}");
            assert!(keys < 10_000 || (share * 41.0 - 1.0).abs() < 1e-3, "{keys}: {share}");
        }
        assert_eq!(integral(10, |keys| if keys < 5 { Ok(0.0) } else { Err(keys) }), Err(5));
    }

    #[test]
    fn each_kind_loses_the_fine_sum_of_its_error_rate() {
        for kind in Kind::all() {
            for (capacity, error_rate) in [(1_000_000, 1e-6), (50_000_000, 1e-3)] {
                let parameters = parameters(kind, capacity, error_rate);
                // A filter that grows has bends in its error rate beyond its capacity.
                for (keys, within) in [(capacity, 2e-3), (3 * capacity, 5e-3)] {
                    let lost = parameters.lost_urls(keys).unwrap();
                    let sum = fine_sum(&parameters, keys, 500);
                    let near = (lost - sum).abs() <= within * sum;
                    assert!(near, "{kind}, {keys} of {capacity}: {lost:e}, not {sum:e}");
                    assert_eq!(lost == 0.0, parameters.is_exact(), "{kind}: {lost:e}");
                }
            }
        }
    }

    #[test]
    fn an_imported_filter_has_no_known_loss() {
        assert!(Parameters::imported().lost_urls(1000).is_err());
    }

    #[test]
    fn the_loss_of_a_recorded_geometry_is_that_of_its_error_rate() {
        let (capacity, rate) = ("1000".parse().unwrap(), "0.001".parse().unwrap());
        let sizing = Sizing::new(capacity, rate);
        let few = Geometry::new(sizing.geometry.blocks, 3, 1).unwrap();
        let parameters = Parameters::native(&Sizing { geometry: few, ..sizing }, None);
        let sum: f64 = (0..1000).map(|keys| few.error_rate_at(keys)).sum();
        let lost = parameters.lost_urls(1000).unwrap();
        assert!((lost / sum - 1.0).abs() < 0.01, "{lost} {sum}");
    }
}
