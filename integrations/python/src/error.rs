//! Python's own kinds of errors for the errors of filters.

use pyo3::PyErr;
use pyo3::exceptions::{PyConnectionError, PyMemoryError, PyOSError, PyRuntimeError, PyValueError};
use urlseen::{Error, ErrorKind};

/// Converts the error of a filter.
pub(crate) fn raised(error: &Error) -> PyErr {
    let text = error.to_string();
    match error.kind() {
        ErrorKind::Spec | ErrorKind::Mismatch | ErrorKind::Placement => PyValueError::new_err(text),
        ErrorKind::Memory => PyMemoryError::new_err(text),
        ErrorKind::Storage => PyOSError::new_err(text),
        ErrorKind::Redis => PyConnectionError::new_err(text),
        _ => PyRuntimeError::new_err(text),
    }
}
