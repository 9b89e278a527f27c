//! Error rates over how full a filter is, by kind, as a plot.

use crate::plot::{Axis, Plot, Scale, Series, Stroke};
use urlseen_core::filter::{Blocks, Capacity, ErrorRate, Sizing};

use super::others::Project;
use super::text::grouped;

/// Where the lines begin and end, and how far apart their points are, in percent of capacity.
const FROM: u64 = 10;
const TO: u64 = 300;
const STEP: usize = 5;

/// Error rates at or below this are not drawn.
const LEAST: f64 = 1e-16;

/// The plot.
pub fn error_rate_plot(capacity: Capacity, error_rate: ErrorRate) -> Plot {
    let chosen = Sizing::new(capacity, error_rate).geometry();
    let mut series = Vec::new();
    for blocks in Blocks::ALL {
        let geometry = Sizing::with_blocks(capacity, error_rate, blocks).geometry();
        let stroke = if geometry == chosen { Stroke::Bold } else { Stroke::Thin };
        let name = match blocks.get() {
            1 => "native, 1 block".to_owned(),
            blocks => format!("native, {blocks} blocks"),
        };
        series.push(line(name, 0, stroke, capacity, |keys| geometry.error_rate_at(keys)));
    }
    for (colour, project) in (1..).zip(Project::ALL) {
        // What cannot be made has no line, and the table says why.
        if let Ok(made) = project.make(capacity.get(), error_rate.get()) {
            let name = project.name().to_owned();
            let rate = |keys| made.error_rate(keys);
            series.push(line(name, colour, Stroke::Bold, capacity, rate));
        }
    }
    Plot {
        title: format!("{} keys at error rate {error_rate}", grouped(capacity.get())),
        x: Axis { label: "keys, % of capacity".to_owned(), scale: Scale::Linear },
        y: Axis { label: "error rate".to_owned(), scale: Scale::Log { least: LEAST } },
        series,
    }
}

fn line(
    name: String,
    colour: usize,
    stroke: Stroke,
    capacity: Capacity,
    error_rate: impl Fn(u64) -> f64,
) -> Series {
    let point = |percent: u64| {
        let keys = (capacity.get() * percent).div_ceil(100);
        (percent as f64, error_rate(keys))
    };
    let points = (FROM..=TO).step_by(STEP).map(point).collect();
    Series { name, colour, stroke, points }
}
