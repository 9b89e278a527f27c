//! Functions that draw a plot with the crate `plotters`.

use plotters::coord::Shift;
use plotters::coord::ranged1d::{Ranged, ValueFormatter};
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::{Plot, Series};

/// Eight colours that colour-blind people can also tell apart (Okabe and Ito, "Color Universal
/// Design", 2008).
pub(super) const PALETTE: [RGBColor; 8] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(0, 0, 0),
    RGBColor(176, 166, 20),
];

/// Width and height of the plot with its axes, in pixels. `LEGEND` is the width of the legend
/// beside it.
const SIZE: (u32, u32) = (860, 540);
const LEGEND: u32 = 320;

/// Maximum number of characters of a title and of a name in the legend. Longer text is cut.
const TITLE: usize = 110;
const NAME: usize = 40;

const FONT: &str = "sans-serif";

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Writes plots, one below the other, to the text of an SVG file.
pub(super) fn draw_all(plots: &[Plot], text: &mut String) -> anyhow::Result<()> {
    let size = (SIZE.0 + LEGEND, SIZE.1 * u32::try_from(plots.len())?);
    let root = SVGBackend::with_string(text, size).into_drawing_area();
    root.fill(&WHITE)?;
    for (plot, area) in plots.iter().zip(root.split_evenly((plots.len(), 1))) {
        draw(plot, &area)?;
    }
    root.present()?;
    Ok(())
}

type Chart<'a, Y> = ChartContext<'a, SVGBackend<'a>, Cartesian2d<RangedCoordf64, Y>>;

fn draw(plot: &Plot, root: &Area<'_>) -> anyhow::Result<()> {
    let title = TextStyle::from((FONT, 20)).pos(Pos::new(HPos::Center, VPos::Top));
    let middle = i32::try_from(SIZE.0.midpoint(LEGEND))?;
    root.draw_text(&clean(&plot.title, TITLE), &title, (middle, 12))?;
    let (left, right) = root.split_horizontally(SIZE.0);
    let mut builder = ChartBuilder::on(&left);
    builder.margin(16).margin_top(48).margin_right(32).x_label_area_size(48).y_label_area_size(76);
    // The horizontal axis also has the points that are too low to draw.
    let all = plot.series.iter().flat_map(|series| &series.points);
    let x = 0.0..all.map(|&(x, _)| x).fold(0.0, f64::max).max(1.0);
    let shown = plot.series.iter().flat_map(|series| shown(plot, series));
    let (least, most) =
        shown.fold((f64::INFINITY, 0.0_f64), |(least, most), (_, y)| (y.min(least), y.max(most)));
    if plot.least.is_some() {
        // The range covers at least one power of ten, so the axis has at least two ticks.
        let first = if least > most { -1.0 } else { least.log10().floor() };
        let last = most.log10().ceil().max(first + 1.0);
        let y = (10_f64.powf(first)..10_f64.powf(last)).log_scale();
        lines(plot, builder.build_cartesian_2d(x, y)?, |y| format!("{y:.0e}"))?;
    } else {
        lines(plot, builder.build_cartesian_2d(x, 0.0..most.max(1.0))?, |&y| short(y))?;
    }
    legend(plot, &right)
}

/// Draws the axes and the lines of a plot. `text` formats a number of the vertical axis.
fn lines<Y: Ranged<ValueType = f64> + ValueFormatter<f64>>(
    plot: &Plot,
    mut chart: Chart<'_, Y>,
    text: fn(&f64) -> String,
) -> anyhow::Result<()> {
    chart
        .configure_mesh()
        .bold_line_style(BLACK.mix(0.15))
        .light_line_style(TRANSPARENT)
        .label_style((FONT, 15))
        .axis_desc_style((FONT, 16))
        .x_label_formatter(&|&x| short(x))
        .y_label_formatter(&text)
        .x_desc(plot.labels[0])
        .y_desc(plot.labels[1])
        .draw()?;
    for series in &plot.series {
        chart.draw_series(LineSeries::new(shown(plot, series), style(series)))?;
    }
    Ok(())
}

/// Formats a round number, such as `80k`.
fn short(number: f64) -> String {
    let unit = [(1e9, "G"), (1e6, "M"), (1e3, "k")].into_iter().find(|(unit, _)| number >= *unit);
    let (unit, name) = unit.unwrap_or((1.0, ""));
    format!("{}{name}", number / unit)
}

/// Iterates over the points of a line that the axes can show.
fn shown(plot: &Plot, series: &Series) -> impl Iterator<Item = (f64, f64)> {
    series.points.iter().copied().filter(|&(_, y)| plot.least.is_none_or(|least| y > least))
}

fn legend(plot: &Plot, area: &Area<'_>) -> anyhow::Result<()> {
    let text = TextStyle::from((FONT, 15)).pos(Pos::new(HPos::Left, VPos::Center));
    for (series, number) in plot.series.iter().zip(0..) {
        let height = 64 + 22 * number;
        let half = i32::try_from(style(series).stroke_width)?;
        let mark = [(0, height - half), (24, height + half)];
        area.draw(&Rectangle::new(mark, style(series).color.filled()))?;
        let mut name = clean(&series.name, NAME);
        if shown(plot, series).next().is_none() {
            let is_nought = series.points.iter().all(|&(_, y)| y == 0.0);
            name.push_str(match (series.points.is_empty(), is_nought) {
                (true, _) => ": no points",
                (_, true) => ": 0, not drawn",
                (_, false) => ": too small to draw",
            });
        }
        area.draw_text(&name, &text, (32, height))?;
    }
    Ok(())
}

fn style(series: &Series) -> ShapeStyle {
    let colour = PALETTE[series.colour % PALETTE.len()];
    if series.is_thin { colour.mix(0.6).stroke_width(1) } else { colour.stroke_width(2) }
}

/// Shortens a text to at most `most` characters, and replaces characters that are invalid in XML.
/// The writer of the file escapes markup.
fn clean(text: &str, most: usize) -> String {
    let is_xml = |c: char| !c.is_control() && !matches!(c, '\u{fffe}' | '\u{ffff}');
    let mut all = text.chars().map(|c| if is_xml(c) { c } else { char::REPLACEMENT_CHARACTER });
    let mut clean: String = all.by_ref().take(most).collect();
    if all.next().is_some() {
        clean.pop();
        clean.push('…');
    }
    clean
}
