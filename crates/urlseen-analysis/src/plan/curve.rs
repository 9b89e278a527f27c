//! Plot of error rates by fill, one line for each kind.

use urlseen_core::filter::{Capacity, ErrorRate, Kind, Parameters};

use super::text::grouped;
use super::{parameters, variants};
use crate::plot::{Axis, Plot, Scale, Series, Stroke};

/// Fill at the first point and at the last point of each line, and the distance between two points,
/// in percent of capacity.
const FROM: u64 = 10;
const TO: u64 = 300;
const STEP: usize = 5;

/// Limit up to which error rates are too small to be drawn.
const LEAST: f64 = 1e-16;

/// Makes the plot of error rates by fill, with a line for each kind or for each variant of a kind.
/// A kind that cannot have this capacity and error rate has no line.
pub fn error_rate_plot(capacity: Capacity, error_rate: ErrorRate) -> Plot {
    let keys = capacity.get();
    let mut series = Vec::new();
    for (colour, kind) in Kind::all().enumerate() {
        let Ok(made) = parameters(kind, keys, error_rate.get(), None) else { continue };
        for filter in variants(&made) {
            let name = match filter.variant() {
                Some(variant) => format!("{kind}, {variant}"),
                None => kind.short().to_owned(),
            };
            let stroke = if filter == made { Stroke::Bold } else { Stroke::Thin };
            series.extend(line(name, colour, stroke, keys, &filter));
        }
    }
    Plot {
        title: format!("{} keys at error rate {error_rate}", grouped(keys)),
        x: Axis { label: "keys, % of capacity".to_owned(), scale: Scale::Linear },
        y: Axis { label: "error rate".to_owned(), scale: Scale::Log { least: LEAST } },
        series,
    }
}

fn line(
    name: String,
    colour: usize,
    stroke: Stroke,
    capacity: u64,
    parameters: &Parameters,
) -> Option<Series> {
    let point = |percent: u64| {
        let outlook = parameters.outlook((capacity * percent).div_ceil(100)).ok()?;
        Some((percent as f64, outlook.error_rate))
    };
    let points = (FROM..=TO).step_by(STEP).map(point).collect::<Option<_>>()?;
    Some(Series { name, colour, stroke, points })
}
