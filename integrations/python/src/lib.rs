//! The Python module `urlseen._urlseen`: fingerprints, filters and the command. The package in
//! `python/urlseen` exports its parts, and has their types and documentation.

// The examples in the documentation are in Python, which shows it to its users.
#![allow(rustdoc::invalid_rust_codeblocks)]

mod consumer;
mod filter;
mod fingerprints;
mod key;
mod rules;

use std::ffi::OsString;

use pyo3::exceptions::PyValueError;
use pyo3::{PyResult, Python, pyfunction, pymodule};
use urlseen_engine::item::ItemForm;
use urlseen_engine::item::Options;

#[pymodule]
mod _urlseen {
    #[pymodule_export]
    use super::consumer::{Address, Asker, Away, Consumer, Full, Held, Refused};
    #[pymodule_export]
    use super::explain_json;
    #[pymodule_export]
    use super::filter::{Filter, forked};
    #[pymodule_export]
    use super::fingerprints::{canonicalize, fingerprint, fingerprints};
    #[pymodule_export]
    use super::rules::Rules;
    #[pymodule_export]
    use super::run;
}

/// Runs the command with these arguments, the first of which is its name. Returns the exit status.
/// Ends the process itself if an argument is wrong.
#[pyfunction]
fn run(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| urlseen_cli::cli::run(arguments))
}

/// Explains the fingerprint of a URL, as JSON.
#[pyfunction]
#[pyo3(signature = (url, *, algorithm="scrapy", canonical="w3lib-2.5", keep_fragments=false, drop_tracking="none", same="[]"))]
fn explain_json(
    url: &str,
    algorithm: &str,
    canonical: &str,
    keep_fragments: bool,
    drop_tracking: &str,
    same: &str,
) -> PyResult<String> {
    let spec = fingerprints::Options { algorithm, canonical, keep_fragments, drop_tracking, same }
        .spec()?;
    let options = Options::new(ItemForm::Url.into(), spec);
    let explained = urlseen_cli::analysis::explain(url.as_bytes(), &options);
    serde_json::to_string(&explained).map_err(|error| PyValueError::new_err(error.to_string()))
}
