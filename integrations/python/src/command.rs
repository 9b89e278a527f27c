//! The command `urlseen`.

use std::ffi::OsString;

use pyo3::{Python, pyfunction};

/// Runs the command with these arguments, the first of which is its name. Returns the exit status.
/// Ends the process itself if an argument is wrong.
#[pyfunction]
pub(crate) fn run(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| urlseen_cli::cli::run(arguments))
}
