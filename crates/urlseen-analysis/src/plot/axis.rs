//! Axis of a plot: the values that the axis can show, the places of these values on the axis, and
//! the ticks.

use std::ops::Range;

/// Approximate number of ticks of an axis.
const TICKS: f64 = 8.0;

/// Horizontal or vertical axis of a plot.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// Name of the measured quantity.
    pub label: String,
    /// Scale of the numbers on the axis.
    pub scale: Scale,
}

/// Scale of the numbers on an axis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scale {
    /// Linear scale from 0, or from below 0 if there are negative values.
    Linear,
    /// Scale by powers of ten.
    Log {
        /// Positive limit. The plot leaves out values up to this limit.
        least: f64,
    },
}

/// Axis with a range that fits the shown values. On a linear scale, the place of a value on the
/// axis is the value itself. On a logarithmic scale, it is the decimal logarithm of the value.
#[derive(Debug, PartialEq)]
pub(super) struct Ruler {
    /// Range of places on the axis.
    pub(super) range: Range<f64>,
    /// Places of the ticks on the axis.
    pub(super) ticks: Vec<f64>,
    scale: Scale,
}

impl Scale {
    /// Returns the place of a value on the axis; `None` if the scale cannot show the value.
    pub(super) fn place(self, value: f64) -> Option<f64> {
        match self {
            Self::Linear => Some(value),
            Self::Log { least } => (value > least.max(0.0)).then(|| value.log10()),
        }
    }
}

impl Ruler {
    /// Returns an axis with a range that includes these places.
    pub(super) fn new(scale: Scale, places: impl Iterator<Item = f64>) -> Self {
        let none = (f64::INFINITY, f64::NEG_INFINITY);
        let (least, most) =
            places.fold(none, |(least, most), place| (least.min(place), most.max(place)));
        let (least, most) = if least > most { (0.0, 1.0) } else { (least, most) };
        match scale {
            Scale::Linear => {
                let (least, most) = (least.min(0.0), most.max(0.0));
                let most = if least < most { most } else { 1.0 };
                let step = step((most - least) / TICKS);
                let first = (least / step).floor();
                let ticks = ticks(first, (most / step).ceil(), 1.0).map(|tick| tick * step);
                Self::of(scale, ticks.collect())
            }
            Scale::Log { .. } => {
                let first = least.floor();
                // The range covers at least one power of ten, so the axis has at least two ticks.
                let last = most.ceil().max(first + 1.0);
                let each = ((last - first) / (2.0 * TICKS)).ceil();
                Self::of(scale, ticks(first, last, each).collect())
            }
        }
    }

    fn of(scale: Scale, ticks: Vec<f64>) -> Self {
        let range = ticks[0]..ticks[ticks.len() - 1];
        Self { range, ticks, scale }
    }

    /// Returns the value at a place, as text.
    pub(super) fn text(&self, place: f64) -> String {
        match self.scale {
            Scale::Log { .. } => match place.round() {
                power @ 0.0..=3.0 => format!("{}", 10_f64.powf(power)),
                power => format!("1e{power}"),
            },
            Scale::Linear => {
                // Enough digits to distinguish the ticks, without digits that come from rounding.
                let step = self.ticks[1] - self.ticks[0];
                let rounded = (place / step).round() * step;
                let decimals = (-step.log10()).ceil().clamp(0.0, 12.0);
                // `decimals` is a whole number from 0 to 12.
                #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
                let decimals = decimals as usize;
                for (unit, name) in [(1e9, "G"), (1e6, "M"), (1e3, "k")] {
                    if step >= unit {
                        return format!("{}{name}", (rounded / unit).round());
                    }
                }
                format!("{:.decimals$}", rounded + 0.0)
            }
        }
    }
}

/// Returns `first`, and further numbers in steps of `each`. The result ends with the first number
/// that is at least `last`.
fn ticks(first: f64, last: f64, each: f64) -> impl Iterator<Item = f64> {
    let all = ((last - first) / each).ceil();
    // The number of ticks is small, so it fits into 32 bits.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let all = all as u32;
    (0..=all).map(move |number| first + f64::from(number) * each)
}

/// Returns the smallest number that is at least `least` and equals 1, 2 or 5 times a power of ten.
fn step(least: f64) -> f64 {
    let power = 10_f64.powf(least.log10().floor());
    let step = [1.0, 2.0, 5.0].into_iter().find(|times| times * power >= least * (1.0 - 1e-9));
    step.unwrap_or(10.0) * power
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(scale: Scale, places: &[f64]) -> Vec<String> {
        let ruler = Ruler::new(scale, places.iter().copied());
        assert!(places.iter().all(|place| (ruler.range.start..=ruler.range.end).contains(place)));
        ruler.ticks.iter().map(|&tick| ruler.text(tick)).collect()
    }

    #[test]
    fn ticks_are_round_numbers_around_all_values() {
        let linear = Scale::Linear;
        assert_eq!(
            texts(linear, &[3.0, 71.0]),
            ["0", "10", "20", "30", "40", "50", "60", "70", "80"]
        );
        assert_eq!(texts(linear, &[0.3]).last().unwrap(), "0.30");
        assert_eq!(
            texts(linear, &[-0.4, 0.4]),
            ["-0.4", "-0.3", "-0.2", "-0.1", "0.0", "0.1", "0.2", "0.3", "0.4"]
        );
        assert_eq!(texts(linear, &[7_000_000.0])[..3], ["0M", "1M", "2M"]);
        assert_eq!(texts(linear, &[900_000.0])[1], "200k");
        assert_eq!(texts(linear, &[])[0], "0.0");
        assert_eq!(texts(linear, &[0.0]).first(), texts(linear, &[1.0]).first());
    }

    #[test]
    fn powers_of_ten_are_ticks() {
        let log = Scale::Log { least: 1e-12 };
        assert_eq!(texts(log, &[-6.5, -4.1]), ["1e-7", "1e-6", "1e-5", "1e-4"]);
        assert_eq!(texts(log, &[0.0, 4.0]), ["1", "10", "100", "1000", "1e4"]);
        assert_eq!(texts(log, &[-3.0]), ["1e-3", "1e-2"]);
        assert!(texts(log, &[-80.0, 0.0]).len() < 20);
        assert_eq!(texts(log, &[]), ["1", "10"]);
        assert_eq!(log.place(0.0), None);
        assert_eq!(log.place(1e-12), None);
        assert_eq!(log.place(1e-3), Some(-3.0));
    }
}
