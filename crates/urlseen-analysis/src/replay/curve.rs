//! Errors of a filter over the items that it was given.

use serde::Serialize;

/// Most points of a curve. A longer one is thinned to half of them.
const MOST: usize = 400;

/// A point of a curve: all counts are from the start on.
#[derive(Debug, Default, Clone, Copy, PartialEq, Serialize)]
pub struct Point {
    /// Number of items so far.
    pub items: u64,
    /// Fingerprints among them that were not seen before.
    pub(crate) new: u64,
    /// Those of these that the filter took for seen.
    pub(crate) wrong: u64,
    /// Number of wrong ones by the computed error rate.
    pub(crate) expected: f64,
    /// Computed error rate at this point.
    pub(crate) error_rate_now: f64,
}

impl Point {
    /// The share of new ones that the filter took for seen, as counted.
    pub fn measured(&self) -> f64 {
        self.wrong as f64 / (self.new as f64).max(1.0)
    }

    /// Share of new ones that the filter would take for seen, as computed.
    pub fn computed(&self) -> f64 {
        self.expected / (self.new as f64).max(1.0)
    }
}

/// A curve that keeps its points evenly apart, however many items come.
#[derive(Debug)]
pub(super) struct Curve {
    points: Vec<Point>,
    /// Number of items between two points.
    step: u64,
}

impl Curve {
    pub(super) fn new() -> Self {
        Self { points: Vec::new(), step: 1 }
    }

    /// Returns true if a point is due at this number of items.
    pub(super) fn wants(&self, items: u64) -> bool {
        items >= self.last().items + self.step
    }

    /// The last point, or where a curve begins.
    pub(super) fn last(&self) -> Point {
        self.points.last().copied().unwrap_or_default()
    }

    pub(super) fn push(&mut self, point: Point) {
        self.points.push(point);
        if self.points.len() >= MOST {
            // Every second one stays, the last one too.
            let mut number = 0;
            self.points.retain(|_| {
                number += 1;
                number % 2 == 0
            });
            self.step = point.items.div_ceil(MOST as u64 / 2);
        }
    }

    pub(super) fn into_points(self) -> Vec<Point> {
        self.points
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_stay_evenly_apart() {
        for (batch, items) in [(1, 1000), (1000, 150_000), (1000, 10_000_000), (777, 3_000_000)] {
            let mut curve = Curve::new();
            for items in (batch..=items).step_by(batch) {
                let items = items as u64;
                if curve.wants(items) {
                    curve.push(Point { items, ..Point::default() });
                }
            }
            let points = curve.into_points();
            let most = MOST.min(items / batch);
            assert!((most / 3..=most).contains(&points.len()), "{items}: {}", points.len());
            let steps: Vec<u64> =
                points.windows(2).map(|two| two[1].items - two[0].items).collect();
            let (least, largest) = (steps.iter().min().unwrap(), steps.iter().max().unwrap());
            assert!(*largest <= 2 * least + batch as u64, "{items}: {least} to {largest}");
        }
    }
}
