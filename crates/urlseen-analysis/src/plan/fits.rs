//! What fits into some memory: how many keys at an error rate, or at what error rate so many keys.

use std::io::{self, Write};

use serde::Serialize;

use urlseen_core::filter::kinds::NATIVE;
use urlseen_core::filter::{Capacity, ErrorRate, Sizing};

use super::others::{Made, Project};
use super::rates::shown;
use super::text::{grouped, size};

/// The largest and the smallest string that the projects take which are sized by its bits, as a
/// power of two.
const BITS: std::ops::RangeInclusive<u32> = 1..=32;

/// Error rates that are tried: of two digits each, from the smallest to the largest there is.
const RATES: u64 = 11 * PER_DECADE;
const PER_DECADE: u64 = 90;

/// What is asked beside the memory.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FitQuestion {
    /// How many keys fit at this error rate?
    Capacity(ErrorRate),
    /// At what error rate do so many keys fit?
    ErrorRate(Capacity),
}

/// The answers, by kind.
#[derive(Debug, Serialize)]
pub struct Fits {
    bytes: u64,
    pub(super) rows: Vec<FitRow>,
}

/// An answer.
#[derive(Debug, Serialize)]
pub(super) struct FitRow {
    pub(super) kind: &'static str,
    /// What fits; nothing where nothing does.
    #[serde(flatten)]
    pub(super) answer: Option<FitAnswer>,
}

/// What fits.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct FitAnswer {
    pub(super) capacity: u64,
    /// The error rate that the kind is to be configured for, if it takes one.
    pub(super) error_rate: Option<f64>,
    /// The one that it has with so many keys.
    pub(super) true_error_rate: f64,
    /// `filter.bit`, where the kind is sized so.
    pub(super) bit: Option<u32>,
    /// What it takes: of the daemon's memory or of Redis's.
    pub(super) filter_bytes: u64,
}

impl Fits {
    /// Finds them.
    pub fn of(bytes: u64, question: FitQuestion) -> Self {
        let mut rows = vec![FitRow { kind: NATIVE.name(), answer: native(bytes, question) }];
        rows.extend(Project::ALL.map(|project| {
            let answer = match project {
                Project::ScrapyRedis => set(bytes, question),
                _ if project.asks() => made_for(project, bytes, question),
                _ => sized(project, bytes, question),
            };
            FitRow { kind: project.name(), answer }
        }));
        Self { bytes, rows }
    }

    /// Prints the table.
    pub fn print(&self, question: FitQuestion, out: &mut impl Write) -> io::Result<()> {
        let memory = size(self.bytes as f64);
        match question {
            FitQuestion::Capacity(rate) => {
                writeln!(out, "what fits into {memory} at error rate {rate}\n")?;
            }
            FitQuestion::ErrorRate(capacity) => {
                writeln!(out, "what {} keys come to in {memory}\n", grouped(capacity.get()))?;
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
                shown(*true_error_rate),
                bit.map_or_else(none, |bit| bit.to_string()),
                size(*filter_bytes as f64),
            )?;
        }
        writeln!(
            out,
            "\ncapacity, error rate and bit are what to configure. native and redisbloom are in \
             the\ndaemon's memory, which takes up to 64 MiB more; the others in that of Redis"
        )
    }
}

fn native(bytes: u64, question: FitQuestion) -> Option<FitAnswer> {
    let geometry = |capacity, rate| Sizing::new(capacity, rate).geometry();
    let (capacity, rate) = match question {
        FitQuestion::Capacity(rate) => {
            let fits =
                |keys| Capacity::new(keys).is_ok_and(|keys| geometry(keys, rate).bytes() <= bytes);
            (Capacity::new(largest(fits)?).ok()?, rate)
        }
        FitQuestion::ErrorRate(capacity) => (capacity, least_native(bytes, capacity)?),
    };
    let geometry = geometry(capacity, rate);
    Some(FitAnswer {
        capacity: capacity.get(),
        error_rate: Some(rate.get()),
        true_error_rate: geometry.error_rate_at(capacity.get()),
        bit: None,
        filter_bytes: geometry.bytes(),
    })
}

/// The least error rate at which so many keys fit. Where more blocks begin to be worth it, they
/// take fewer bits than the fewer blocks of a larger rate, so it is looked for by the number of
/// blocks.
fn least_native(bytes: u64, capacity: Capacity) -> Option<ErrorRate> {
    let rate = |number| ErrorRate::new(rate(number)).expect("one of those that there are");
    let geometry = |number| Sizing::new(capacity, rate(number)).geometry();
    let mut from = 0;
    while from <= RATES {
        let blocks = geometry(from).blocks();
        let behind = first(from, RATES + 1, |it| it > RATES || geometry(it).blocks() != blocks);
        let fits = |number| geometry(number).bytes() <= bytes;
        if fits(behind - 1) {
            return Some(rate(first(from, behind - 1, fits)));
        }
        from = behind;
    }
    None
}

/// A kind that is made for a capacity and an error rate.
fn made_for(project: Project, bytes: u64, question: FitQuestion) -> Option<FitAnswer> {
    let fits = |capacity, rate| {
        let made = project.make(capacity, rate);
        made.is_ok_and(|made| made.redis_bytes(capacity)[1] <= bytes)
    };
    let (capacity, rate) = match question {
        FitQuestion::Capacity(rate) => {
            (largest(|capacity| fits(capacity, rate.get()))?, rate.get())
        }
        FitQuestion::ErrorRate(capacity) => {
            (capacity.get(), least(|rate| fits(capacity.get(), rate))?)
        }
    };
    let made = project.make(capacity, rate).ok()?;
    Some(FitAnswer::of(&made, capacity, Some(rate), None))
}

/// A kind whose one string has a number of bits that is a power of two.
fn sized(project: Project, bytes: u64, question: FitQuestion) -> Option<FitAnswer> {
    let fits = |bit: u32| {
        let made = project.sized(bit).ok()?;
        (made.redis_bytes(1)[1] <= bytes).then_some((bit, made))
    };
    let (bit, made) = BITS.rev().find_map(fits)?;
    let capacity = match question {
        FitQuestion::Capacity(rate) => largest(|capacity| made.error_rate(capacity) <= rate.get())?,
        FitQuestion::ErrorRate(capacity) => capacity.get(),
    };
    Some(FitAnswer::of(&made, capacity, None, Some(bit)))
}

/// An exact set.
fn set(bytes: u64, question: FitQuestion) -> Option<FitAnswer> {
    let fits = |capacity| Made::Set.redis_bytes(capacity)[1] <= bytes;
    let capacity = match question {
        FitQuestion::Capacity(_) => largest(fits)?,
        FitQuestion::ErrorRate(capacity) => Some(capacity.get()).filter(|&keys| fits(keys))?,
    };
    Some(FitAnswer::of(&Made::Set, capacity, None, None))
}

impl FitAnswer {
    fn of(made: &Made, capacity: u64, error_rate: Option<f64>, bit: Option<u32>) -> Self {
        Self {
            capacity,
            error_rate,
            true_error_rate: made.error_rate(capacity),
            bit,
            filter_bytes: made.redis_bytes(capacity)[1],
        }
    }
}

/// The largest capacity that fits, where every smaller one does.
fn largest(fits: impl Fn(u64) -> bool) -> Option<u64> {
    if !fits(1) {
        return None;
    }
    let (mut good, mut bad) = (1, Capacity::MAX + 1);
    // From below, as what is far too large takes long to compute.
    while 2 * good < bad {
        if !fits(2 * good) {
            bad = 2 * good;
            break;
        }
        good *= 2;
    }
    while bad - good > 1 {
        let middle = good.midpoint(bad);
        if fits(middle) {
            good = middle;
        } else {
            bad = middle;
        }
    }
    Some(good)
}

/// The least error rate that fits, where every larger one does.
fn least(fits: impl Fn(f64) -> bool) -> Option<f64> {
    let fits = |number| fits(rate(number));
    fits(RATES).then(|| rate(first(0, RATES, fits)))
}

/// The first number from `from` on that something holds for, as for all behind it up to `to`.
fn first(from: u64, to: u64, holds: impl Fn(u64) -> bool) -> u64 {
    let (mut from, mut to) = (from, to);
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

/// The error rate of that number.
fn rate(number: u64) -> f64 {
    let (decade, step) = (number / PER_DECADE, 10 + number % PER_DECADE);
    let text = format!("{}.{}e-{}", step / 10, step % 10, 12 - decade);
    text.parse().expect("a number of two digits")
}

#[cfg(test)]
#[allow(clippy::float_cmp)] // what is configured is what was found, to the bit
mod tests {
    use super::*;

    const KIB: u64 = 1 << 10;

    /// Whether an answer takes no more than it may, and whether the next one would.
    fn check(bytes: u64, question: FitQuestion) {
        for FitRow { kind, answer } in Fits::of(bytes, question).rows {
            let Some(answer) = answer else {
                assert!(bytes < 1 << 30, "{kind} at {bytes} {question:?}");
                continue;
            };
            assert!(answer.filter_bytes <= bytes, "{kind} {answer:?}");
            let taken = |capacity: u64, rate: f64| {
                if kind == NATIVE.name() {
                    let rate = ErrorRate::new(rate).ok()?;
                    return Some(
                        Sizing::new(Capacity::new(capacity).ok()?, rate).geometry().bytes(),
                    );
                }
                let project = Project::ALL.into_iter().find(|it| it.name() == kind)?;
                Some(project.make(capacity, rate).ok()?.redis_bytes(capacity)[1])
            };
            let fits = |capacity, rate| taken(capacity, rate).is_some_and(|it| it <= bytes);
            match (question, answer.error_rate, answer.bit) {
                (FitQuestion::Capacity(asked), Some(rate), _) => {
                    assert!(rate == asked.get() && fits(answer.capacity, rate), "{kind}");
                    assert!(!fits(answer.capacity + 1, rate), "{kind} {answer:?} takes one more");
                }
                (FitQuestion::ErrorRate(asked), Some(rate), _) => {
                    assert!(answer.capacity == asked.get() && fits(answer.capacity, rate));
                    let number = (0..=RATES).find(|&number| self::rate(number) >= rate).unwrap();
                    let less = number.checked_sub(1).map(self::rate);
                    let less_fits = less.is_some_and(|less| fits(answer.capacity, less));
                    assert!(!less_fits, "{kind} {answer:?} fits at {less:?}");
                }
                (FitQuestion::Capacity(asked), None, Some(bit)) => {
                    let project = Project::ALL.into_iter().find(|it| it.name() == kind).unwrap();
                    let made = project.sized(bit).unwrap();
                    let rate = |keys| made.error_rate(keys);
                    assert!(rate(answer.capacity) <= asked.get(), "{kind} {answer:?}");
                    assert!(rate(answer.capacity + 1) > asked.get(), "{kind} {answer:?}");
                    let larger = || project.sized(bit + 1).unwrap().redis_bytes(1)[1];
                    assert!(bit == *BITS.end() || larger() > bytes, "{kind} {answer:?}");
                }
                (FitQuestion::ErrorRate(_), None, Some(_)) => {}
                (_, None, None) => {
                    assert_eq!((kind, answer.true_error_rate), ("scrapy-redis", 0.0));
                    if matches!(question, FitQuestion::Capacity(_)) {
                        assert!(!fits(answer.capacity + 1, 0.0), "{answer:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn what_is_found_fits_and_one_step_more_does_not() {
        for bytes in [100 * KIB, 3 << 20, 700 << 20, 8 << 30] {
            for rate in [0.01, 1e-9] {
                check(bytes, FitQuestion::Capacity(ErrorRate::new(rate).unwrap()));
            }
            for capacity in [50_000, 10_000_000] {
                check(bytes, FitQuestion::ErrorRate(Capacity::new(capacity).unwrap()));
            }
        }
    }

    /// Where blocks give way to more of them, those take fewer bits: what has room for the latter
    /// is not stopped by what it lacks for the former.
    #[test]
    fn the_least_rate_is_found_behind_a_dip() {
        let capacity = Capacity::new(10_000_000).unwrap();
        let bytes = |rate| {
            let rate = ErrorRate::new(rate).unwrap();
            Sizing::new(capacity, rate).geometry().bytes()
        };
        let behind = (0..RATES).rev().find(|&it| bytes(rate(it)) < bytes(rate(it + 1))).unwrap();
        let limit = bytes(rate(behind));
        let found = native(limit, FitQuestion::ErrorRate(capacity)).unwrap().error_rate.unwrap();
        assert!(found <= rate(behind), "{found:e}, and {:e} fits", rate(behind));
    }

    #[test]
    fn rates_have_two_digits() {
        assert_eq!([0, 1, 89, 90, RATES].map(rate), [1e-12, 1.1e-12, 9.9e-12, 1e-11, 0.1]);
    }
}
