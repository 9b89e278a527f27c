//! Expected number of URLs that a run has lost, kept up to date while the filter fills.

use urlseen_core::filter::Parameters;

/// Largest change of the number of keys that is followed by a trapezoid, as a part of all keys. A
/// larger change repeats the whole integral, which takes milliseconds.
const PART: u64 = 64;

/// Expected number of lost URLs: unseen fingerprints that the filter of a run reported as seen.
#[derive(Debug)]
pub(super) struct LostUrls {
    parameters: Parameters,
    last: Option<Point>,
}

/// State of the filter for which the number was last computed.
#[derive(Debug, Clone, Copy)]
struct Point {
    keys: u64,
    error_rate: f64,
    urls: f64,
}

impl LostUrls {
    /// Observes a filter with these parameters.
    pub(super) fn new(parameters: Parameters) -> Self {
        Self { parameters, last: None }
    }

    /// Returns the number for a filter that has this many keys, and this error rate now. `None` if
    /// the parameters do not tell it, because the filter is imported.
    pub(super) fn at(&mut self, keys: u64, error_rate: f64) -> Option<f64> {
        let expires = self.parameters.expire_after().is_some();
        let is_near = |last: &Point| expires || keys.abs_diff(last.keys) <= last.keys / PART;
        let urls = match self.last.filter(is_near) {
            Some(last) => {
                let least = if expires { 0.0 } else { f64::NEG_INFINITY };
                // URLs that were lost remain lost when other fingerprints expire.
                let more = (keys as f64 - last.keys as f64).max(least);
                (last.urls + more * f64::midpoint(last.error_rate, error_rate)).max(0.0)
            }
            None => self.parameters.lost_urls(keys).ok()?,
        };
        self.last = Some(Point { keys, error_rate, urls });
        Some(urls)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use urlseen_core::filter::Sizing;

    fn native(capacity: u64) -> Parameters {
        let (capacity, error_rate) = (capacity.to_string(), "1e-3");
        let sizing = Sizing::new(capacity.parse().unwrap(), error_rate.parse().unwrap());
        Parameters::native(&sizing, None)
    }

    fn error_rate(parameters: &Parameters, keys: u64) -> f64 {
        parameters.outlook(keys).unwrap().error_rate
    }

    #[test]
    fn small_steps_add_up_to_the_whole_integral() {
        let parameters = native(1_000_000);
        let mut lost = LostUrls::new(parameters.clone());
        let all = (0..=300).map(|step| {
            let keys = step * 4000;
            let urls = lost.at(keys, error_rate(&parameters, keys)).unwrap();
            let whole = parameters.lost_urls(keys).unwrap();
            assert!((urls - whole).abs() <= 0.02 * whole, "{keys}: {urls}, not {whole}");
            urls
        });
        assert!(all.collect::<Vec<_>>().is_sorted());
    }

    /// A small step uses the error rate that it is given, and not the parameters.
    #[test]
    fn only_a_large_step_repeats_the_integral() {
        let parameters = native(1_000_000);
        let mut lost = LostUrls::new(parameters.clone());
        let mut assert_is = |keys, want: f64| {
            let urls = lost.at(keys, 0.5).unwrap();
            assert!((urls - want).abs() < 1e-9, "{keys}: {urls}, not {want}");
        };
        let whole = |keys| parameters.lost_urls(keys).unwrap();
        assert_is(640_000, whole(640_000));
        assert_is(650_000, whole(640_000) + 5000.0);
        assert_is(640_000, whole(640_000));
        assert_is(900_000, whole(900_000));
        assert_is(0, 0.0);
    }

    #[test]
    fn an_imported_filter_tells_nothing() {
        assert_eq!(LostUrls::new(Parameters::imported()).at(1000, 0.1), None);
    }
}
