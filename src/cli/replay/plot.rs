//! Plots of a replay: what the crawl found, and how often the filters were wrong.

use urlseen_analysis::{LaneReport, Plot, Point, Report, Series, Stroke};
use urlseen_engine::config::Config;

/// Number of times that the highest rate of a plot is higher than the lowest one.
const RANGE: f64 = 1e9;

/// Returns the plots of a replay: the new and the seen fingerprints, and the error rates of the
/// kinds, unless no kind makes errors.
pub(super) fn plots(report: &Report, config: &Config) -> Vec<Plot> {
    let crawl = &config.crawl.name;
    let rates = rates(&report.kinds, crawl);
    let found = report.kinds.first().map(|lane| found(&lane.curve, crawl));
    found.into_iter().chain(rates).collect()
}

/// Returns the plot of the new and the seen fingerprints.
fn found(curve: &[Point], crawl: &str) -> Plot {
    let line = |colour, name: &str, of: fn(&Point) -> u64| {
        let points = curve.iter().map(|point| (point.items as f64, of(point) as f64));
        let points = [(0.0, 0.0)].into_iter().chain(points).collect();
        Series { name: name.to_owned(), colour, stroke: Stroke::Bold, points }
    };
    Plot {
        title: format!("{crawl}: new and seen fingerprints"),
        labels: ["items", "fingerprints so far"],
        least: None,
        series: vec![
            line(0, "new", |point| point.new),
            line(1, "seen before", |point| point.again),
        ],
    }
}

/// Returns the plot of the counted and the computed error rates. Returns `None` if all rates are 0.
fn rates(kinds: &[LaneReport], crawl: &str) -> Option<Plot> {
    let mut series = Vec::new();
    for (colour, lane) in kinds.iter().enumerate() {
        let line = |words: &str, stroke, of: fn(&Point) -> f64| {
            let name = lane.kind.short();
            let points = lane.curve.iter().map(|point| (point.items as f64, of(point)));
            Series { name: format!("{name}, {words}"), colour, stroke, points: points.collect() }
        };
        series.push(line("counted", Stroke::Bold, Point::measured));
        series.push(line("computed", Stroke::Thin, Point::computed));
    }
    let rates = series.iter().flat_map(|line| &line.points).map(|&(_, rate)| rate);
    let highest = rates.fold(0.0, f64::max);
    (highest > 0.0).then(|| Plot {
        title: format!("{crawl}: wrong drops as a share of new fingerprints"),
        labels: ["items", "error rate so far"],
        least: Some(highest / RANGE),
        series,
    })
}
