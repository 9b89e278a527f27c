//! Keys of a filter, as Python passes them.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::types::{
    PyAnyMethods, PyBytes, PyBytesMethods, PyString, PyStringMethods, PyTypeMethods,
};
use pyo3::{Borrowed, Bound, FromPyObject, PyAny, PyErr, PyResult};
use urlseen::Fingerprint;

/// Key of a filter: text, or a digest of 16, 20 or 32 bytes. Text stays text, even if it looks like
/// the hex digits of a digest.
pub(crate) struct Key(pub(crate) Fingerprint);

impl<'py> FromPyObject<'_, 'py> for Key {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(digest) = object.cast::<PyBytes>() {
            let digest = digest.as_bytes();
            let key = Fingerprint::from_raw(digest).ok_or_else(|| {
                PyValueError::new_err(format!(
                    "a digest has 16, 20 or 32 bytes, not {}",
                    digest.len()
                ))
            })?;
            return Ok(Self(key));
        }
        if let Ok(text) = object.cast::<PyString>() {
            return Ok(Self(Fingerprint::Text(text.to_str()?.as_bytes().into())));
        }
        let kind = object.get_type().name()?;
        Err(PyTypeError::new_err(format!("a key is str or bytes, not {kind}")))
    }
}

/// Reads all keys of an iterable. A key itself is refused: as an iterable, it has other keys.
pub(crate) fn keys(iterable: &Bound<'_, PyAny>) -> PyResult<Vec<Fingerprint>> {
    if iterable.is_instance_of::<PyString>() || iterable.is_instance_of::<PyBytes>() {
        let kind = iterable.get_type().name()?;
        return Err(PyTypeError::new_err(format!(
            "keys are an iterable of str or bytes, not {kind}; put a single key into a list"
        )));
    }
    let mut keys = Vec::with_capacity(iterable.len().unwrap_or(0));
    for key in iterable.try_iter()? {
        keys.push(key?.extract::<Key>()?.0);
    }
    Ok(keys)
}
