//! Largest filters that fit into a given memory: their number of keys, or their error rate.

use std::io::{self, Write};

use serde::Serialize;
use urlseen_core::filter::choice::FilterPlace;
use urlseen_core::filter::{Capacity, ErrorRate, Kind, Outlook};

use super::parameters;
use super::{grouped, rate_text, size};

/// Allowed values of `filter.bit`.
const BITS: std::ops::RangeInclusive<u32> = 1..=32;

/// Index of the largest error rate that is tried. The tried rates ascend from 1e-12, at index 0, to
/// 0.1, and have two digits each.
pub(super) const RATES: u64 = 11 * PER_DECADE;
const PER_DECADE: u64 = 90;

/// Question of a user who has a given amount of memory.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FitQuestion {
    /// Asks for the number of keys that fit at this error rate.
    Capacity(ErrorRate),
    /// Asks for the error rate at which this number of keys fits.
    ErrorRate(Capacity),
}

/// Answer to a [`FitQuestion`]: for each kind, the largest filter that fits.
#[derive(Debug, Serialize)]
pub struct Fits {
    bytes: u64,
    rows: Vec<FitRow>,
}

/// Kind, with the largest filter of this kind.
#[derive(Debug, Serialize)]
struct FitRow {
    kind: &'static str,
    /// `None` if no such filter fits.
    #[serde(flatten)]
    answer: Option<FitAnswer>,
}

/// Largest filter that fits.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
struct FitAnswer {
    capacity: u64,
    /// Value for `filter.error_rate`, if the kind has this key.
    error_rate: Option<f64>,
    /// Error rate that the filter really has when it holds `capacity` keys.
    true_error_rate: f64,
    /// Value for `filter.bit`, if the kind has this key.
    bit: Option<u32>,
    /// Memory that the filter takes in the daemon or in Redis.
    filter_bytes: u64,
}

impl Fits {
    /// Finds the largest filter of each kind that fits into `bytes` bytes.
    pub fn of(bytes: u64, question: FitQuestion) -> Self {
        let row = |kind: Kind| {
            let answer = FitAnswer::find(kind, bytes, question);
            FitRow { kind: kind.short(), answer }
        };
        Self { bytes, rows: Kind::all().map(row).collect() }
    }

    /// Prints the answers as a table.
    pub fn print(&self, question: FitQuestion, out: &mut impl Write) -> io::Result<()> {
        let memory = size(self.bytes as f64);
        match question {
            FitQuestion::Capacity(rate) => {
                writeln!(out, "filters that fit into {memory} at error rate {rate}\n")?;
            }
            FitQuestion::ErrorRate(capacity) => {
                writeln!(
                    out,
                    "filters for {} keys that fit into {memory}\n",
                    grouped(capacity.get())
                )?;
            }
        }
        writeln!(
            out,
            "{:<24} {:>19} {:>10} {:>15} {:>4} {:>11}",
            "kind", "capacity", "error rate", "true error rate", "bit", "memory"
        )?;
        for FitRow { kind, answer } in &self.rows {
            let Some(answer) = answer else {
                writeln!(out, "{kind:<24} does not fit")?;
                continue;
            };
            let FitAnswer { capacity, error_rate, true_error_rate, bit, filter_bytes } = answer;
            let none = || "-".to_owned();
            writeln!(
                out,
                "{kind:<24} {:>19} {:>10} {:>15} {:>4} {:>11}",
                grouped(*capacity),
                error_rate.map_or_else(none, |rate| format!("{rate:e}")),
                rate_text(*true_error_rate),
                bit.map_or_else(none, |bit| bit.to_string()),
                size(*filter_bytes as f64),
            )?;
        }
        let local: Vec<_> = Kind::all_in(FilterPlace::Local).map(Kind::short).collect();
        writeln!(
            out,
            "\nConfigure the capacity, error rate and bit of one row. These kinds are in the \
             memory of the daemon,\nwhich takes up to 64 MiB more: {}. All others are in Redis",
            local.join(", ")
        )
    }
}

impl FitAnswer {
    fn find(kind: Kind, bytes: u64, question: FitQuestion) -> Option<Self> {
        let takes = |name| kind.keys().contains(&name);
        let is_rated = takes("filter.error_rate");
        let outlook = |capacity, rate, bit: Option<u32>| -> Option<Outlook> {
            let parameters = parameters(kind, capacity, rate, bit).ok()?;
            let outlook = parameters.outlook(capacity).ok()?;
            let is_kept = is_rated || outlook.error_rate <= rate;
            (is_kept && outlook.bytes[1] <= bytes).then_some(outlook)
        };
        let bit_fits = |&bit: &u32| outlook(1, 1.0, Some(bit)).is_some();
        let bit = if takes("filter.bit") { Some(BITS.rev().find(bit_fits)?) } else { None };
        let (capacity, rate) = match question {
            FitQuestion::Capacity(rate) => {
                let rate = rate.get();
                (largest(|capacity| outlook(capacity, rate, bit).is_some())?, rate)
            }
            FitQuestion::ErrorRate(capacity) if is_rated => {
                let capacity = capacity.get();
                let fits = |rate| outlook(capacity, rate, bit).is_some();
                let variant = |rate| parameters(kind, capacity, rate, bit).ok()?.variant();
                (capacity, least(fits, variant)?)
            }
            FitQuestion::ErrorRate(capacity) => (capacity.get(), 1.0),
        };
        let Outlook { error_rate, bytes, .. } = outlook(capacity, rate, bit)?;
        Some(Self {
            capacity,
            error_rate: is_rated.then_some(rate),
            true_error_rate: error_rate,
            bit,
            filter_bytes: bytes[1],
        })
    }
}

/// Returns the largest capacity for which `fits` is true, provided that all smaller capacities fit,
/// too.
fn largest(fits: impl Fn(u64) -> bool) -> Option<u64> {
    let (mut good, mut bad) = (0, 1);
    // The search starts from below, because a much too large filter takes long to compute.
    while bad <= Capacity::MAX && fits(bad) {
        (good, bad) = (bad, 2 * bad);
    }
    let bad = first(good + 1, bad.min(Capacity::MAX + 1), |capacity| !fits(capacity));
    (bad > 1).then_some(bad - 1)
}

/// Returns the smallest error rate for which `fits` is true. Within one variant, such as two blocks
/// for each key, a larger error rate takes less memory. At the first error rate of the next
/// variant, the filter takes more memory again. So each variant is searched by itself.
fn least(fits: impl Fn(f64) -> bool, variant: impl Fn(f64) -> Option<String>) -> Option<f64> {
    let mut from = 0;
    while from <= RATES {
        let begun = variant(rate(from));
        let end = first(from, RATES + 1, |number| variant(rate(number)) != begun);
        if fits(rate(end - 1)) {
            return Some(rate(first(from, end - 1, |number| fits(rate(number)))));
        }
        from = end;
    }
    None
}

/// Returns the smallest number in `from..to` for which `holds` is true. Returns `to` if there is no
/// such number. If `holds` is true for a number, it must also be true for all larger numbers up to
/// `to`.
pub(super) fn first(mut from: u64, mut to: u64, holds: impl Fn(u64) -> bool) -> u64 {
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
pub(super) fn rate(number: u64) -> f64 {
    let (decade, step) = (number / PER_DECADE, 10 + number % PER_DECADE);
    let text = format!("{}.{}e-{}", step / 10, step % 10, 12 - decade);
    text.parse().unwrap_or(ErrorRate::MIN)
}

#[cfg(test)]
#[allow(clippy::float_cmp)] // The tests compare rates that must be equal, bit for bit.
mod tests {
    use super::*;

    const KIB: u64 = 1 << 10;

    fn kind(name: &str) -> Kind {
        Kind::all().find(|kind| kind.short() == name).unwrap()
    }

    /// Checks that each answer fits into the memory. Also checks that one more key would not fit,
    /// or that the next smaller error rate would not fit.
    fn check(bytes: u64, question: FitQuestion) {
        for FitRow { kind: name, answer } in Fits::of(bytes, question).rows {
            let Some(answer) = answer else {
                assert!(bytes < 1 << 30, "{name} at {bytes} {question:?}");
                continue;
            };
            let kind = kind(name);
            assert!(answer.filter_bytes <= bytes, "{name} {answer:?}");
            let fits = |capacity, rate| {
                parameters(kind, capacity, rate, answer.bit)
                    .and_then(|it| it.outlook(capacity))
                    .is_ok_and(|it| {
                        it.bytes[1] <= bytes
                            && (answer.error_rate.is_some() || it.error_rate <= rate)
                    })
            };
            match question {
                FitQuestion::Capacity(asked) => {
                    assert!(answer.error_rate.is_none_or(|rate| rate == asked.get()), "{name}");
                    assert!(fits(answer.capacity, asked.get()), "{name} {answer:?}");
                    let more = answer.capacity + 1;
                    assert!(!fits(more, asked.get()), "{name} {answer:?} takes one more");
                }
                FitQuestion::ErrorRate(asked) => {
                    assert_eq!(answer.capacity, asked.get());
                    let Some(rate) = answer.error_rate else { continue };
                    assert!(fits(answer.capacity, rate), "{name} {answer:?}");
                    let number = (0..=RATES).find(|&number| self::rate(number) >= rate).unwrap();
                    let less = number.checked_sub(1).map(self::rate);
                    let less_fits = less.is_some_and(|less| fits(answer.capacity, less));
                    assert!(!less_fits, "{name} {answer:?} fits at {less:?}");
                }
            }
            if let Some(bit) = answer.bit.filter(|bit| bit < BITS.end()) {
                let larger = parameters(kind, 1, 0.1, Some(bit + 1)).unwrap().outlook(1).unwrap();
                assert!(larger.bytes[1] > bytes, "{name} {answer:?}");
            }
        }
    }

    #[test]
    fn an_answer_fits_and_the_next_larger_filter_does_not() {
        for bytes in [100 * KIB, 3 << 20, 700 << 20, 8 << 30] {
            for rate in [0.01, 1e-9] {
                check(bytes, FitQuestion::Capacity(ErrorRate::new(rate).unwrap()));
            }
            for capacity in [50_000, 10_000_000] {
                check(bytes, FitQuestion::ErrorRate(Capacity::new(capacity).unwrap()));
            }
        }
    }

    /// Below some error rate, a filter uses more blocks for each key, and takes fewer bits. So an
    /// error rate can fit although a higher error rate does not fit.
    #[test]
    fn the_smallest_rate_is_found_although_a_larger_one_does_not_fit() {
        let bytes = |rate| {
            let outlook = parameters(kind("native"), 10_000_000, rate, None).unwrap().outlook(1);
            outlook.unwrap().bytes[1]
        };
        let before = (0..RATES).rev().find(|&it| bytes(rate(it)) < bytes(rate(it + 1))).unwrap();
        let question = FitQuestion::ErrorRate(Capacity::new(10_000_000).unwrap());
        let found = FitAnswer::find(kind("native"), bytes(rate(before)), question).unwrap();
        let found = found.error_rate.unwrap();
        assert!(found <= rate(before), "{found:e}, and {:e} fits", rate(before));
    }

    #[test]
    fn tried_rates_have_two_digits() {
        assert_eq!([0, 1, 89, 90, RATES].map(rate), [1e-12, 1.1e-12, 9.9e-12, 1e-11, 0.1]);
    }
}
