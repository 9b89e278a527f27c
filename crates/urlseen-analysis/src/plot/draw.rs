//! Functions that draw a plot with the crate `plotters`.

use std::ops::Range;

use plotters::coord::Shift;
use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::axis::Ruler;
use super::{Plot, Series, Stroke};

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

/// Returns the text of the SVG file.
pub(super) fn svg(plots: &[Plot]) -> Result<String, String> {
    let mut text = String::new();
    draw_all(plots, &mut text).map_err(|error| error.to_string())?;
    Ok(text)
}

fn draw_all(plots: &[Plot], text: &mut String) -> Result<(), Box<dyn std::error::Error>> {
    let size = (SIZE.0 + LEGEND, SIZE.1 * u32::try_from(plots.len())?);
    let root = SVGBackend::with_string(text, size).into_drawing_area();
    root.fill(&WHITE)?;
    for (plot, area) in plots.iter().zip(root.split_evenly((plots.len(), 1))) {
        draw(plot, &area)?;
    }
    root.present()?;
    Ok(())
}

fn draw(plot: &Plot, root: &Area<'_>) -> Result<(), Box<dyn std::error::Error>> {
    let title = TextStyle::from((FONT, 20)).pos(Pos::new(HPos::Center, VPos::Top));
    let middle = i32::try_from(SIZE.0.midpoint(LEGEND))?;
    root.draw_text(&clean(&plot.title, TITLE), &title, (middle, 12))?;

    let lines: Vec<Vec<(f64, f64)>> =
        plot.series.iter().map(|series| placed(plot, series)).collect();
    // The horizontal axis also has the points that are too low to draw.
    let all = plot.series.iter().flat_map(|series| &series.points);
    let x = Ruler::new(plot.x.scale, all.filter_map(|&(x, _)| plot.x.scale.place(x)));
    let y = Ruler::new(plot.y.scale, lines.iter().flatten().map(|&(_, y)| y));
    let (left, right) = root.split_horizontally(SIZE.0);
    let mut chart = ChartBuilder::on(&left)
        .margin(16)
        .margin_top(48)
        .x_label_area_size(48)
        .y_label_area_size(76)
        .build_cartesian_2d(x, y)?;
    chart
        .configure_mesh()
        .bold_line_style(BLACK.mix(0.15))
        .light_line_style(TRANSPARENT)
        .label_style((FONT, 15))
        .axis_desc_style((FONT, 16))
        .x_desc(clean(&plot.x.label, TITLE))
        .y_desc(clean(&plot.y.label, TITLE))
        .draw()?;
    for (series, points) in plot.series.iter().zip(&lines) {
        if !points.is_empty() {
            chart.draw_series(LineSeries::new(points.iter().copied(), style(series)))?;
        }
    }
    legend(plot, &lines, &right)
}

impl Ranged for Ruler {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, place: &f64, (from, to): (i32, i32)) -> i32 {
        let share = (place - self.range.start) / (self.range.end - self.range.start);
        // The offset is a number of pixels, so it fits into 32 bits.
        #[allow(clippy::cast_possible_truncation)]
        let offset = (share * f64::from(to - from)).round() as i32;
        from + offset
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        // The crate also asks for the places of lines between the ticks; there are none.
        if hint.weight().allow_light_points() { Vec::new() } else { self.ticks.clone() }
    }

    fn range(&self) -> Range<f64> {
        self.range.clone()
    }
}

impl ValueFormatter<f64> for Ruler {
    fn format_ext(&self, place: &f64) -> String {
        self.text(*place)
    }
}

/// Returns the places of the points of a line. A point that the axes cannot show is left out.
fn placed(plot: &Plot, series: &Series) -> Vec<(f64, f64)> {
    let place = |&(x, y): &(f64, f64)| Some((plot.x.scale.place(x)?, plot.y.scale.place(y)?));
    series.points.iter().filter_map(place).collect()
}

fn legend(
    plot: &Plot,
    lines: &[Vec<(f64, f64)>],
    area: &Area<'_>,
) -> Result<(), Box<dyn std::error::Error>> {
    let text = TextStyle::from((FONT, 15)).pos(Pos::new(HPos::Left, VPos::Center));
    for ((series, points), number) in plot.series.iter().zip(lines).zip(0..) {
        let height = 64 + 22 * number;
        let half = i32::try_from(style(series).stroke_width)?;
        let mark = [(0, height - half), (24, height + half)];
        area.draw(&Rectangle::new(mark, style(series).color.filled()))?;
        let mut name = clean(&series.name, NAME);
        if points.is_empty() {
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
    match series.stroke {
        Stroke::Bold => colour.stroke_width(2),
        Stroke::Thin => colour.mix(0.6).stroke_width(1),
    }
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
