//! Rules for the requests of a crawl in one process.

use std::sync::{Mutex, MutexGuard};

use pyo3::exceptions::PyValueError;
use pyo3::types::{PyAnyMethods as _, PyBytes, PyDict, PyDictMethods as _};
use pyo3::{Bound, PyErr, PyResult, Python, pyclass, pymethods};
use urlseen_engine::engine::RequestRules;
use urlseen_engine::item::{Decision, ItemForm, Options};

use crate::fingerprints;

/// Rules of urlseen's configuration, as JSON: `{"drop": [{"host": "^h$"}], "limit": []}`. The
/// options are those of `fingerprint`.
#[pyclass(frozen, module = "urlseen._urlseen")]
pub(crate) struct Rules(Mutex<RequestRules>);

impl Rules {
    fn get(&self) -> MutexGuard<'_, RequestRules> {
        self.0.lock().expect("no holder panics")
    }
}

#[pymethods]
impl Rules {
    #[new]
    #[pyo3(signature = (rules, *, algorithm="scrapy", canonical="w3lib-2.5", keep_fragments=false, drop_tracking="none", same="[]"))]
    fn new(
        rules: &str,
        algorithm: &str,
        canonical: &str,
        keep_fragments: bool,
        drop_tracking: &str,
        same: &str,
    ) -> PyResult<Self> {
        let rules = urlseen_cli::config::Rules::from_json(rules).map_err(PyValueError::new_err)?;
        let options =
            fingerprints::Options { algorithm, canonical, keep_fragments, drop_tracking, same };
        let options = Options {
            pass: rules.pass,
            drop: rules.drop,
            expire: rules.expire,
            limits: rules.limits,
            ..Options::new(ItemForm::Url.into(), options.spec()?)
        };
        Ok(Self(Mutex::new(RequestRules::new(options))))
    }

    /// Decides about a request by its URL, and by `verbatim_url` and `ttl` of its meta. Returns
    /// `True` if it is dropped, `True` if it passes unchecked, the number of seconds after which it
    /// passes again, and the URL for `admit`.
    fn decide(
        &self,
        url: &str,
        meta: &Bound<'_, PyDict>,
    ) -> PyResult<(bool, bool, Option<f64>, Option<String>)> {
        let verbatim_url = meta.get_item("verbatim_url")?;
        let verbatim_url = verbatim_url.map_or(Ok(false), |it| it.is_truthy())?;
        let ttl = meta.get_item("ttl")?.filter(|it| !it.is_none());
        let ttl = ttl.map(|it| Ok::<_, PyErr>(it.str()?.to_string())).transpose()?;
        let decision = self.get().decide(url, verbatim_url, ttl.as_deref());
        let Decision { is_dropped, is_unfiltered, after, url } =
            decision.map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok((is_dropped, is_unfiltered, after.map(|it| it.as_secs_f64()), url))
    }

    /// Counts an unseen request. Returns the changes of the counts, or `None` if it is over a
    /// limit.
    fn admit<'py>(&self, py: Python<'py>, url: &str) -> Option<Vec<Bound<'py, PyBytes>>> {
        let changes = self.get().admit(url)?;
        Some(changes.iter().map(|it| PyBytes::new(py, it)).collect())
    }

    /// Changes the counts by a change that earlier processes had so many times.
    fn count(&self, change: &[u8], number: u64) {
        self.get().count(change, number);
    }
}
