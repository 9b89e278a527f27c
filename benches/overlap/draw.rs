//! Plots of docs/design/compare.md.

use std::path::Path;

use urlseen_analysis::{Axis, Plot, Scale, Series, Stroke};

use super::{Case, FILLS};

/// Draws two plots for each kind: the estimates beside the truth, and their errors.
pub(super) fn draw(cases: &[Case], docs: &Path) {
    for kind in ["native", "pyrebloom"] {
        let of: Vec<&Case> = cases.iter().filter(|case| case.kind == kind).collect();
        let plots = [
            ("estimate", "estimate: percent of A that are in B", false),
            ("error", "estimate - truth: percent of A", true),
        ];
        for (name, label, is_error) in plots {
            let plot = Plot {
                title: format!("{kind}: how much of A is in B, with bounds of 95 %"),
                x: axis("truth: percent of A that are in B"),
                y: axis(label),
                series: series(&of, is_error),
            };
            let path = docs.join(format!("compare-{kind}-{name}.svg"));
            Plot::write(&[plot], &path).unwrap_or_else(|error| panic!("{error}"));
        }
    }
}

fn axis(label: &str) -> Axis {
    Axis { label: label.to_owned(), scale: Scale::Linear }
}

fn series(cases: &[&Case], is_error: bool) -> Vec<Series> {
    let mut series = Vec::new();
    for (colour, fill) in FILLS.into_iter().enumerate() {
        let line = |name: String, stroke, of: fn(&Case) -> f64| Series {
            name,
            colour,
            stroke,
            points: cases
                .iter()
                .filter(|case| case.fill == fill)
                .map(|case| {
                    let truth = case.share as f64;
                    (truth, if is_error { of(case) - truth } else { of(case) })
                })
                .collect(),
        };
        let name = |what: &str| format!("{fill} % full: {what}");
        series.push(line(name("estimate"), Stroke::Bold, |case| case.sample.value));
        series.push(line(name("lower bound"), Stroke::Thin, |case| case.sample.low));
        series.push(line(name("upper bound"), Stroke::Thin, |case| case.sample.high));
    }
    let truth = |case: &&Case| (case.share as f64, if is_error { 0.0 } else { case.share as f64 });
    let points = cases.iter().filter(|case| case.fill == FILLS[0]).map(truth).collect();
    let name = "the truth".to_owned();
    series.push(Series { name, colour: FILLS.len(), stroke: Stroke::Thin, points });
    series
}
