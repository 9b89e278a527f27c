//! Consumer of held requests and questions to a served urlseen, for `urlseen.scrapy`.

use std::borrow::Cow;
use std::fs;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use pyo3::exceptions::{PyException, PyValueError};
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyAnyMethods as _, PyBytes, PyDict, PyDictMethods as _, PyList};
use pyo3::{
    Bound, IntoPyObjectExt as _, PyAny, PyErr, PyResult, Python, create_exception, pyclass,
    pymethods,
};
use redis::{ClientTlsConfig, TlsCertificates, Value};
use urlseen::{ConsumerOptions, Error, ErrorKind, HeldRecord, Item, RedisOptions};

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
        let address = urlseen::Address::parse_with(url, client_name, files.as_ref());
        let [connect_timeout, response_timeout] = [connect_s, response_s].map(seconds);
        let options = RedisOptions { retries: 0, connect_timeout, response_timeout };
        Ok(Self { address: address.map_err(|error| raised(&error))?, options })
    }
}

/// Consumer that repeats no call. All calls release the lock of the interpreter.
#[pyclass(frozen, subclass, module = "urlseen._urlseen")]
pub(crate) struct Consumer {
    consumer: urlseen::Consumer,
    /// Number of deliveries that the consumer has requeued at its end.
    requeued: AtomicU64,
}

/// Request that a consumer holds.
#[pyclass(frozen, module = "urlseen._urlseen")]
pub(crate) struct Held(urlseen::Delivery);

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
        let opened = py.detach(|| urlseen::Consumer::open_early(address, source, options));
        let consumer = opened.map_err(|error| raised(&error))?;
        Ok(Self { consumer, requeued: AtomicU64::new(0) })
    }

    #[getter]
    fn name(&self) -> &str {
        self.consumer.name()
    }

    #[getter]
    fn sources(&self) -> Vec<String> {
        self.consumer.sources()
    }

    fn partition_of(&self, fingerprint: &str) -> usize {
        self.consumer.partition_of(fingerprint)
    }

    fn changes(&self) -> PyResult<u64> {
        self.consumer.changes().map_err(|error| raised(&error))
    }

    fn read_records<'py>(&self, py: Python<'py>) -> PyResult<Vec<Option<Bound<'py, PyDict>>>> {
        let records = self.consumer.records().map_err(|error| raised(&error))?;
        let read = |fields: Vec<(&str, String)>| {
            let found = PyDict::new(py);
            fields.iter().try_for_each(|(name, value)| found.set_item(name, value))?;
            Ok(found)
        };
        let fields = records.iter().map(|record| record.as_ref().map(HeldRecord::fields));
        fields.map(|fields| fields.map(read).transpose()).collect()
    }

    fn read_missing(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.consumer.read_missing()).map_err(|error| raised(&error))
    }

    /// Sends commands to partitions. An error is in place of its answer.
    fn ask<'py>(
        &self,
        py: Python<'py>,
        commands: Vec<(Option<usize>, Vec<PyBackedBytes>)>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let commands: Vec<_> =
            commands.into_iter().map(|(partition, words)| (partition, bytes(words))).collect();
        let answers = py.detach(|| self.consumer.ask(&commands));
        let read = |answer: Result<Value, Error>| match answer {
            Ok(value) => converted(py, value),
            Err(error) => Ok(raised(&error).into_value(py).into_bound(py).into_any()),
        };
        answers.into_iter().map(read).collect()
    }

    fn is_away(&self) -> bool {
        self.consumer.is_away()
    }

    fn rests(&self, partition: usize) -> Option<String> {
        self.consumer.rests(partition)
    }

    fn pop(&self, py: Python<'_>) -> PyResult<Option<Held>> {
        match py.detach(|| self.consumer.pop()) {
            Ok(popped) => Ok(popped.map(Held)),
            Err(error) if error.kind() == ErrorKind::Limit => Err(Full::new_err(error.to_string())),
            Err(error) => Err(raised(&error)),
        }
    }

    fn finish(&self, py: Python<'_>, held: &Held, links: Vec<PyBackedBytes>) -> PyResult<bool> {
        // The spider has pushed the links of other partitions.
        let links: Vec<_> = bytes(links).into_iter().map(Item::unfiltered).collect();
        py.detach(|| self.consumer.finish(&held.0, links)).map_err(|error| raised(&error))
    }

    fn reject(&self, py: Python<'_>, held: &Held, reason: &str) -> PyResult<bool> {
        py.detach(|| self.consumer.reject(&held.0, reason)).map_err(|error| raised(&error))
    }

    fn count(&self, py: Python<'_>) -> PyResult<u64> {
        py.detach(|| self.consumer.pending()).map_err(|error| raised(&error))
    }

    fn source_len(&self, py: Python<'_>) -> PyResult<u64> {
        py.detach(|| self.consumer.source_len()).map_err(|error| raised(&error))
    }

    fn leave(&self, py: Python<'_>) -> PyResult<u64> {
        let (requeued, failed) = py.detach(|| self.consumer.leave());
        let requeued = self.requeued.fetch_add(requeued, Relaxed) + requeued;
        failed.map_or(Ok(requeued), |error| Err(raised(&error)))
    }

    fn close(&self, py: Python<'_>) {
        py.detach(|| self.consumer.abandon(Duration::from_secs(1)));
    }
}

impl Drop for Consumer {
    /// Leaves the requests to other consumers. A program that wants more calls `leave` before.
    fn drop(&mut self) {
        self.consumer.abandon(Duration::ZERO);
    }
}

#[pymethods]
impl Held {
    #[getter]
    fn item<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.0.item())
    }

    #[getter]
    fn partition(&self) -> usize {
        self.0.partition()
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
        let words = bytes(words);
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

fn bytes(words: Vec<PyBackedBytes>) -> Vec<Vec<u8>> {
    words.into_iter().map(|word| word.to_vec()).collect()
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
    let text = WORDS
        .iter()
        .fold(Cow::from(error.to_string()), |text, (from, to)| Cow::from(text.replace(from, to)));
    let text = text.into_owned();
    match error.kind() {
        ErrorKind::Redis | ErrorKind::Memory => Away::new_err(text),
        ErrorKind::Refused | ErrorKind::Limit => Refused::new_err(text),
        _ => PyValueError::new_err(text),
    }
}
