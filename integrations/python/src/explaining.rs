//! Explanation of the fingerprint of an item.

use pyo3::exceptions::PyValueError;
use pyo3::{PyResult, pyfunction};
use urlseen_engine::config::ItemForm;
use urlseen_engine::item::Options;

use crate::fingerprints;

/// Explains the fingerprint of a URL, as JSON.
#[pyfunction]
#[pyo3(signature = (url, *, algorithm="scrapy", keep_fragments=false, drop_tracking="none", same="[]"))]
pub(crate) fn explain_json(
    url: &str,
    algorithm: &str,
    keep_fragments: bool,
    drop_tracking: &str,
    same: &str,
) -> PyResult<String> {
    let spec = fingerprints::Options { algorithm, keep_fragments, drop_tracking, same }.spec()?;
    let options = Options::new(ItemForm::Url.into(), spec);
    let explained = urlseen_analysis::explain(url.as_bytes(), options);
    serde_json::to_string(&explained).map_err(|error| PyValueError::new_err(error.to_string()))
}
