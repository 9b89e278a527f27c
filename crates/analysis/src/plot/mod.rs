//! Line plots as SVG files. A plot has several lines over two axes. The vertical axis is linear or
//! logarithmic.
//!
//! The program that shows the file draws the text, so no font is needed here. Equal plots give
//! equal bytes.

mod draw;

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};

#[cfg(test)]
mod tests;

/// Plot of lines over two axes.
#[derive(Debug, Clone, PartialEq)]
pub struct Plot {
    /// Title text above the plot.
    pub title: String,
    /// Names of the quantities on the horizontal and on the vertical axis.
    pub labels: [&'static str; 2],
    /// Positive limit of a logarithmic vertical axis, which leaves out values up to this limit.
    /// `None` if the axis is linear.
    pub least: Option<f64>,
    /// Lines of the plot, in the order of the legend. If no point of a line fits on the axes, the
    /// line appears only in the legend, with a note.
    pub series: Vec<Series>,
}

/// Line of a plot, point by point.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Name of the line in the legend.
    pub name: String,
    /// Index of the colour. After the last colour the first one follows.
    pub colour: usize,
    /// True for a thin line, for computed values.
    pub is_thin: bool,
    /// Points of the line, in the order in which they are joined. Their coordinates are finite and
    /// not negative.
    pub points: Vec<(f64, f64)>,
}

impl Plot {
    /// Checks that a plot can be written to `path`, before the work for the plot starts.
    ///
    /// # Errors
    /// The plot cannot be written to this path.
    pub fn check(path: &Path) -> anyhow::Result<()> {
        let beside = place(path)?;
        let made = File::create(&beside).and_then(|_| fs::remove_file(&beside));
        made.map_err(|reason| failed(path, &reason))
    }

    /// Returns plots, one below the other, as the text of an SVG file.
    fn svg(plots: &[Self]) -> anyhow::Result<String> {
        let mut text = String::new();
        draw::draw_all(plots, &mut text).context("the plot could not be drawn")?;
        Ok(text)
    }

    /// Writes plots, one below the other, to a file, completely or not at all. The finished file
    /// replaces an existing file of that name.
    ///
    /// # Errors
    /// The drawing fails, or the file cannot be written.
    pub fn write(plots: &[Self], path: &Path) -> anyhow::Result<()> {
        let (svg, beside) = (Self::svg(plots)?, place(path)?);
        let written = File::create(&beside).and_then(|mut file| {
            file.write_all(svg.as_bytes())?;
            file.sync_all()?;
            fs::rename(&beside, path)
        });
        written.map_err(|reason| {
            // If the temporary file cannot be removed, the first error is still the one to report.
            let _ = fs::remove_file(&beside);
            failed(path, &reason)
        })
    }
}

fn failed(path: &Path, reason: &io::Error) -> anyhow::Error {
    anyhow!("the plot {} cannot be written: {reason}", path.display())
}

/// Returns the path of the temporary file that is written first. Fails if `path` exists and is not
/// a file.
fn place(path: &Path) -> anyhow::Result<PathBuf> {
    // A folder or a device must not be replaced by a file.
    if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        bail!(
            "{} is not a file, so no plot can replace it; name a new file, or a file that may be \
             replaced",
            path.display()
        );
    }
    let nameless = || failed(path, &io::ErrorKind::InvalidFilename.into());
    let mut name = OsString::from(".");
    name.push(path.file_name().ok_or_else(nameless)?);
    // The process id is in the name, so no other process uses the file.
    name.push(format!(".{}.tmp", std::process::id()));
    Ok(path.with_file_name(name))
}
