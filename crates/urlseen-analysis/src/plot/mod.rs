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
    /// Width of the drawn line.
    pub stroke: Stroke,
    /// Points of the line, in the order in which they are joined. Their coordinates are finite and
    /// not negative.
    pub points: Vec<(f64, f64)>,
}

/// Width of a line as it is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stroke {
    /// Line for measured values.
    Bold,
    /// Line for computed values.
    Thin,
}

/// Error of a plot that was not drawn or not written.
#[derive(Debug, thiserror::Error)]
pub enum PlotError {
    /// The drawing itself failed.
    #[error("the plot could not be drawn: {0}")]
    Draw(String),
    /// The path is not a file.
    #[error(
        "{} is not a file, so no plot can replace it; name a new file, or a file that may be \
         replaced", .0.display()
    )]
    NoFile(PathBuf),
    /// The file cannot be written.
    #[error("the plot {} cannot be written: {reason}", path.display())]
    Write {
        /// Path of the file to write.
        path: PathBuf,
        /// Error that the system gave.
        reason: io::Error,
    },
}

impl Plot {
    /// Checks that a plot can be written to `path`, before the work for the plot starts.
    ///
    /// # Errors
    /// The plot cannot be written to this path.
    pub fn check(path: &Path) -> Result<(), PlotError> {
        let beside = place(path)?;
        let failed = |reason| PlotError::Write { path: path.to_owned(), reason };
        File::create(&beside).and_then(|_| fs::remove_file(&beside)).map_err(failed)
    }

    /// Returns plots, one below the other, as the text of an SVG file.
    ///
    /// # Errors
    /// The drawing fails.
    pub fn svg(plots: &[Self]) -> Result<String, PlotError> {
        draw::svg(plots).map_err(PlotError::Draw)
    }

    /// Writes plots, one below the other, to a file, completely or not at all. The finished file
    /// replaces an existing file of that name.
    ///
    /// # Errors
    /// The drawing fails, or the file cannot be written.
    pub fn write(plots: &[Self], path: &Path) -> Result<(), PlotError> {
        let svg = Self::svg(plots)?;
        replace(path, svg.as_bytes())
    }
}

/// Returns the path of the temporary file that is written first. Fails if `path` exists and is not
/// a file.
fn place(path: &Path) -> Result<PathBuf, PlotError> {
    // A folder or a device must not be replaced by a file.
    if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        return Err(PlotError::NoFile(path.to_owned()));
    }
    let reason = io::ErrorKind::InvalidFilename.into();
    let nameless = PlotError::Write { path: path.to_owned(), reason };
    let mut name = OsString::from(".");
    name.push(path.file_name().ok_or(nameless)?);
    // The process id is in the name, so no other process uses the file.
    name.push(format!(".{}.tmp", std::process::id()));
    Ok(path.with_file_name(name))
}

/// Replaces the file at `path` by a file with these bytes. Writes the bytes to a temporary file
/// first, then renames that file.
fn replace(path: &Path, bytes: &[u8]) -> Result<(), PlotError> {
    let beside = place(path)?;
    let failed = |reason| PlotError::Write { path: path.to_owned(), reason };
    let written = write(&beside, bytes).and_then(|()| fs::rename(&beside, path));
    written.map_err(|reason| {
        // If the temporary file cannot be removed, the first error is still the one to report.
        let _ = fs::remove_file(&beside);
        failed(reason)
    })
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}
