//! Curve of the errors that a filter makes, by the number of items that it has judged.

use serde::Serialize;

/// Maximum number of points of a curve. When a curve gets longer, every second point is removed.
const MOST: usize = 400;

/// A point of a curve. All counts are since the start.
#[derive(Debug, Default, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct CurvePoint {
    /// Number of items so far.
    pub(crate) items: u64,
    /// Number of new fingerprints so far: fingerprints that were not seen before.
    pub(crate) new: u64,
    /// Number of fingerprints so far that were seen before.
    pub(crate) again: u64,
    /// Number of new fingerprints that the filter reported as seen.
    pub(crate) wrong: u64,
    /// Expected value of `wrong`, from the computed error rates.
    pub(crate) expected: f64,
    /// Computed error rate at this point.
    pub(crate) error_rate_now: f64,
}

impl CurvePoint {
    /// Returns the measured share of new fingerprints that the filter reported as seen.
    pub(super) fn measured(&self) -> f64 {
        self.wrong as f64 / (self.new as f64).max(1.0)
    }
}

/// A curve with evenly spaced points, for any number of items.
#[derive(Debug)]
pub(super) struct Curve {
    pub(super) points: Vec<CurvePoint>,
    /// Number of items between two points.
    step: u64,
}

impl Curve {
    pub(super) fn new() -> Self {
        Self { points: Vec::new(), step: 1 }
    }

    /// Returns true if the curve needs a point at this number of items.
    pub(super) fn wants(&self, items: u64) -> bool {
        items >= self.last().items + self.step
    }

    /// Returns the last point; for an empty curve, a point with all values 0.
    pub(super) fn last(&self) -> CurvePoint {
        self.points.last().copied().unwrap_or_default()
    }

    pub(super) fn push(&mut self, point: CurvePoint) {
        self.points.push(point);
        if self.points.len() >= MOST {
            // Every second point stays, including the last one.
            let mut number = 0;
            self.points.retain(|_| {
                number += 1;
                number % 2 == 0
            });
            self.step = point.items.div_ceil(MOST as u64 / 2);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_evenly_spaced_for_any_number_of_items() {
        for (batch, items) in [(1, 1000), (1000, 150_000), (1000, 10_000_000), (777, 3_000_000)] {
            let mut curve = Curve::new();
            for items in (batch..=items).step_by(batch) {
                let items = items as u64;
                if curve.wants(items) {
                    curve.push(CurvePoint { items, ..CurvePoint::default() });
                }
            }
            let points = curve.points;
            let most = MOST.min(items / batch);
            assert!((most / 3..=most).contains(&points.len()), "{items}: {}", points.len());
            let steps: Vec<u64> =
                points.windows(2).map(|two| two[1].items - two[0].items).collect();
            let (least, largest) = (steps.iter().min().unwrap(), steps.iter().max().unwrap());
            assert!(*largest <= 2 * least + batch as u64, "{items}: {least} to {largest}");
        }
    }
}
