//! Consumer of held requests and questions to a served urlseen, for `urlseen.scrapy`.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use pyo3::exceptions::{PyException, PyValueError};
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyAnyMethods as _, PyBytes, PyDict, PyDictMethods as _, PyList};
use pyo3::{
    Bound, IntoPyObjectExt as _, Py, PyAny, PyErr, PyResult, Python, create_exception, pyclass,
    pymethods,
};
use redis::{ClientTlsConfig, TlsCertificates, Value};
use urlseen::{ConsumerOptions, Error, ErrorKind, HeldRecord, Outbox, RedisOptions};

create_exception!(urlseen, Away, PyException, "The server gave no answer, or cannot work now.");
create_exception!(urlseen, Refused, PyException, "The server refused a command.");
create_exception!(urlseen, Full, PyException, "The consumer holds its maximum of requests.");

/// Texts in the errors of the library, and those that users of Scrapy know.
const WORDS: [(&str, &str); 4] = [
    ("build the program with the crate of th", "install the urlseen of th"),
    ("open the consumer again", "start the spider again"),
    ("ConsumerOptions: name", "URLSEEN_CONSUMER"),
    ("ConsumerOptions: partitions", "URLSEEN_PARTITIONS"),
];

/// Maximum size in bytes of the links of a page. The spider itself keeps fewer.
const MOST_PUSHED: usize = 128 << 20;

/// Address of a server or of several nodes, with time limits.
#[pyclass(frozen, module = "urlseen._urlseen")]
pub(crate) struct Address {
    address: urlseen::Address,
    options: RedisOptions,
}

#[pymethods]
impl Address {
    #[new]
    #[pyo3(signature = (url, connect_s, response_s, *, client_name=None, ca=None, cert=None, key=None))]
    fn new(
        url: &str,
        connect_s: f64,
        response_s: f64,
        client_name: Option<String>,
        ca: Option<&str>,
        cert: Option<&str>,
        key: Option<&str>,
    ) -> PyResult<Self> {
        let read = |name: &str, path: Option<&str>| {
            let Some(path) = path else { return Ok(None) };
            fs::read(path).map(Some).map_err(|error| {
                PyValueError::new_err(format!("{name} is {path:?}, and cannot be read: {error}"))
            })
        };
        let root_cert = read("ca", ca)?;
        let cert = read("cert", cert)?;
        // The file of the certificate may have its key.
        let key = read("key", key)?.or_else(|| cert.clone());
        let client_tls = cert
            .zip(key)
            .map(|(client_cert, client_key)| ClientTlsConfig { client_cert, client_key });
        let has_files = root_cert.is_some() || client_tls.is_some();
        let files = has_files.then_some(TlsCertificates { client_tls, root_cert });
        let address = urlseen::Address::parse(url, client_name, files.as_ref());
        let [connect_timeout, response_timeout] = [connect_s, response_s].map(seconds);
        let options = RedisOptions { retries: 0, connect_timeout, response_timeout };
        Ok(Self { address: address.map_err(|error| raised(&error))?, options })
    }
}

/// Consumer that repeats no call, and sends links and acknowledgements in a thread of its own. All
/// calls that wait release the lock of the interpreter.
#[pyclass(frozen, module = "urlseen._urlseen")]
pub(crate) struct Consumer(Outbox);

/// Request that a consumer holds.
#[pyclass(frozen, module = "urlseen._urlseen")]
pub(crate) struct Held(Arc<urlseen::Delivery>);

#[pymethods]
impl Consumer {
    #[new]
    fn new(
        py: Python<'_>,
        address: &Address,
        source: &str,
        name: Option<String>,
        partitions: Vec<u16>,
        held_max: usize,
    ) -> PyResult<Self> {
        let Address { address, options: limits } = address;
        let default = ConsumerOptions::default();
        let options = ConsumerOptions {
            name: name.unwrap_or_else(|| default.name.clone()),
            partitions,
            max_held: held_max,
            max_push_bytes: MOST_PUSHED,
            retries: limits.retries,
            connect_timeout: limits.connect_timeout,
            response_timeout: limits.response_timeout,
            stop_timeout: Duration::ZERO,
        };
        let opened = py.detach(|| Outbox::open(address, source, options));
        opened.map(Self).map_err(|error| raised(&error))
    }

    #[getter]
    fn name(&self) -> &str {
        self.0.consumer.name()
    }

    #[getter]
    fn sources(&self) -> Vec<String> {
        self.0.consumer.sources()
    }

    fn changed_records<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<Option<Vec<Option<Bound<'py, PyDict>>>>> {
        let records = py.detach(|| self.0.consumer.changed_records());
        let read = |record: HeldRecord| {
            let found = PyDict::new(py);
            let mut fields = record.fields().into_iter();
            fields.try_for_each(|(name, value)| found.set_item(name, value))?;
            Ok(found)
        };
        let Some(records) = records.map_err(|error| raised(&error))? else { return Ok(None) };
        records
            .into_iter()
            .map(|record| record.map(read).transpose())
            .collect::<PyResult<_>>()
            .map(Some)
    }

    fn rests(&self, number: usize) -> Option<String> {
        self.0.consumer.rests(number)
    }

    fn pop(&self, py: Python<'_>) -> PyResult<Option<Held>> {
        match py.detach(|| self.0.consumer.pop()) {
            Ok(popped) => Ok(popped.map(|delivery| Held(Arc::new(delivery)))),
            Err(error) if error.kind() == ErrorKind::Limit => Err(Full::new_err(error.to_string())),
            Err(error) => Err(raised(&error)),
        }
    }

    /// Adds a link of the page of a request, or an item that belongs to no page.
    #[pyo3(signature = (page, fingerprint, item, *, is_filtered))]
    fn collect(&self, page: Option<&Held>, fingerprint: &str, item: Vec<u8>, is_filtered: bool) {
        self.0.collect(page.map(|page| &page.0), fingerprint, item, is_filtered);
    }

    fn push_early(&self) {
        self.0.push_early();
    }

    fn finish(&self, page: &Held) {
        self.0.finish(Arc::clone(&page.0));
    }

    fn reject(&self, page: &Held, reason: String) {
        self.0.reject(Arc::clone(&page.0), reason);
    }

    fn forget(&self, fingerprint: &str) -> bool {
        self.0.forget(fingerprint)
    }

    /// Size in bytes of the items that wait.
    #[getter]
    fn waiting(&self) -> usize {
        self.0.sizes()[0]
    }

    /// Size in bytes of the items that wait, and of the links of unfinished pages.
    #[getter]
    fn kept(&self) -> usize {
        self.0.sizes().iter().sum()
    }

    /// Number of waiting items that belong to no page.
    #[getter]
    fn loose(&self) -> usize {
        self.0.loose()
    }

    /// Calls `count` with the names and numbers of what Redis has taken since the last call. Then
    /// raises `Refused` if a command was refused.
    fn tell(&self, count: &Bound<'_, PyAny>) -> PyResult<()> {
        let (counts, refused) = self.0.news();
        for (name, number) in counts {
            count.call1((name, number))?;
        }
        refused.map_or(Ok(()), |error| Err(raised(&error)))
    }

    fn give_up_pages(&self) {
        self.0.give_up_pages();
    }

    /// Sends everything. Returns the reason if something is left after `wait_s` seconds.
    fn flush(&self, py: Python<'_>, wait_s: f64) -> Option<String> {
        py.detach(|| self.0.flush(seconds(wait_s))).map(|error| raised_text(&error))
    }

    fn push_once(&self, py: Python<'_>, name: &str, items: Vec<(String, Vec<u8>)>) -> PyResult<()> {
        py.detach(|| self.0.consumer.push_once(name, items)).map_err(|error| raised(&error))
    }

    /// Counts the requests of the crawl, unless this process still has something to send.
    fn count(&self, py: Python<'_>) -> PyResult<u64> {
        py.detach(|| self.0.count()).map_err(|error| raised(&error))
    }

    fn new_rejects(&self, py: Python<'_>) -> PyResult<(u64, Option<Py<PyBytes>>)> {
        let rejects = py.detach(|| self.0.consumer.new_rejects());
        let (new, newest) = rejects.map_err(|error| raised(&error))?;
        Ok((new, newest.map(|reject| PyBytes::new(py, &reject).unbind())))
    }

    fn source_len(&self, py: Python<'_>) -> PyResult<u64> {
        py.detach(|| self.0.consumer.source_len()).map_err(|error| raised(&error))
    }

    /// Requeues all requests. Returns their number, and the error after `wait_s` seconds.
    fn leave(&self, py: Python<'_>, wait_s: f64) -> (u64, Option<String>) {
        let (requeued, failed) = py.detach(|| self.0.leave(seconds(wait_s)));
        (requeued, failed.map(|error| raised_text(&error)))
    }
}

#[pymethods]
impl Held {
    #[getter]
    fn item<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.0.item())
    }
}

/// Connection that asks a served urlseen.
#[pyclass(frozen, module = "urlseen._urlseen")]
pub(crate) struct Asker(urlseen::Asker);

#[pymethods]
impl Asker {
    #[new]
    fn new(address: &Address) -> Self {
        Self(urlseen::Asker::new(address.address.clone(), address.options))
    }

    fn ask<'py>(&self, py: Python<'py>, words: Vec<PyBackedBytes>) -> PyResult<Bound<'py, PyAny>> {
        let words: Vec<Vec<u8>> = words.into_iter().map(|word| word.to_vec()).collect();
        match py.detach(|| self.0.ask(&words)) {
            Ok(value) => converted(py, value),
            Err((error, was_sent)) => {
                let error = raised(&error);
                error.value(py).setattr("sent", was_sent)?;
                Err(error)
            }
        }
    }

    fn close(&self) {
        self.0.close();
    }
}

fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::from_secs(1 << 30))
}

/// Converts an answer. Its strings become bytes.
fn converted(py: Python<'_>, value: Value) -> PyResult<Bound<'_, PyAny>> {
    match value {
        Value::Int(number) => number.into_bound_py_any(py),
        Value::BulkString(text) => Ok(PyBytes::new(py, &text).into_any()),
        Value::SimpleString(text) => Ok(PyBytes::new(py, text.as_bytes()).into_any()),
        Value::Array(values) => {
            let values = values.into_iter().map(|value| converted(py, value));
            let values: Vec<_> = values.collect::<PyResult<_>>()?;
            Ok(PyList::new(py, values)?.into_any())
        }
        _ => Ok(py.None().into_bound(py)),
    }
}

/// Converts the error of a consumer. Its text names the settings of a Scrapy project.
fn raised(error: &Error) -> PyErr {
    let text = raised_text(error);
    match error.kind() {
        ErrorKind::Redis | ErrorKind::Memory => Away::new_err(text),
        ErrorKind::Refused | ErrorKind::Limit => Refused::new_err(text),
        _ => PyValueError::new_err(text),
    }
}

fn raised_text(error: &Error) -> String {
    WORDS.iter().fold(error.to_string(), |text, (from, to)| text.replace(from, to))
}
