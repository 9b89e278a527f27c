//! Filters in memory, in a folder and in Redis.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, RwLock};

use pyo3::exceptions::{
    PyConnectionError, PyMemoryError, PyOSError, PyRuntimeError, PyTypeError, PyValueError,
};
use pyo3::types::PyType;
use pyo3::{Bound, Py, PyAny, PyErr, PyResult, Python, pyclass, pyfunction, pymethods};
use urlseen::{
    Error, ErrorKind, FilterExt as _, FilterSpec, Fingerprint, LocalFilter, RedisFilter,
};

use crate::fingerprints::Options;
use crate::key::{Key, keys};

/// Default of `kind`.
const KIND: &str = "two-choice";

/// Default of `capacity`.
const CAPACITY: u64 = 1_000_000;

/// Default of `error_rate`.
const ERROR_RATE: f64 = 1e-6;

/// Growth factor of the layers of RedisBloom's kind: the default of RedisBloom and of the daemon.
const EXPANSION: u32 = 2;

/// Keys of the configuration that Python has no parameter for, and that a kind needs.
const UNKNOWN: [&str; 3] = ["filter.bit", "filter.hash_number", "filter.block_num"];

/// Texts in the errors of the library, and those that users of Python know.
const WORDS: [(&str, &str); 6] = [
    (", with filter.place = \"local\"", "; use Filter or Filter.open"),
    ("only in Redis, not in memory", "only in Redis; use Filter.open_redis"),
    ("empty the filter: urlseen storage reset", "remove the folder"),
    (" storage.dir", " path"),
    (" filter.", " "),
    (" fingerprint.", " "),
];

/// Default of `grow_to`, as a multiple of `capacity`.
const GROWTH: u64 = 100;

/// Maximum of `grow_to`.
const MOST: u64 = 1_000_000_000_000;

/// Number of forks between the process that loaded the module and this process.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// Counts a fork, in the child. Python calls it, because a question for the number of the process
/// takes as long as a test of a key.
#[pyfunction]
pub(crate) fn forked() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// Filter that is open. A closed one has none.
#[derive(Clone)]
enum Open {
    /// In memory, maybe with a folder.
    Local(Arc<LocalFilter>),
    Redis(Arc<RedisFilter>),
}

impl Open {
    fn any(&self) -> &dyn urlseen::Filter {
        match self {
            Self::Local(filter) => &**filter,
            Self::Redis(filter) => &**filter,
        }
    }

    fn capacity(&self) -> u64 {
        match self {
            Self::Local(filter) => filter.capacity(),
            Self::Redis(filter) => filter.capacity(),
        }
    }

    fn error_rate(&self) -> f64 {
        match self {
            Self::Local(filter) => filter.full_error_rate(),
            Self::Redis(filter) => filter.full_error_rate(),
        }
    }

    fn sync(&self) -> Result<(), Error> {
        match self {
            Self::Local(filter) => filter.sync(),
            Self::Redis(_) => Ok(()),
        }
    }

    fn local(&self) -> PyResult<&LocalFilter> {
        match self {
            Self::Local(filter) => Ok(filter),
            Self::Redis(_) => Err(PyTypeError::new_err(
                "a filter in Redis does not know its length, fill and memory, and cannot forget",
            )),
        }
    }
}

/// Set of keys that tells whether a key was added before, in a few bytes for each key.
///
///     >>> import urlseen
///     >>> seen = urlseen.Filter(capacity=1000, error_rate=1e-6)
///     >>> seen.add("a"), seen.add("a"), "b" in seen, len(seen)
///     (True, False, False, 1)
///
/// A key is text, or a digest of 16, 20 or 32 bytes. The hex digits of a digest are text, and so
/// another key. `capacity`, `error_rate`, `fill` and `memory` can be read. README.md explains the parameters. The filter
/// is in memory: `Filter.open` keeps it in a folder, and `Filter.open_redis` in Redis.
#[pyclass(frozen, module = "urlseen")]
pub(crate) struct Filter {
    open: RwLock<Option<Open>>,
    /// Name of the filter, for people.
    name: String,
    /// Process that opened the filter.
    process: u32,
    /// Value of [`FORKS`] at that time.
    forks: u32,
}

impl Filter {
    fn new(open: Open, name: String) -> Self {
        let forks = FORKS.load(Ordering::Relaxed);
        Self { open: RwLock::new(Some(open)), name, process: std::process::id(), forks }
    }

    /// Returns true if this process is a fork of the process that opened the filter.
    fn is_forked(&self) -> bool {
        FORKS.load(Ordering::Relaxed) != self.forks
    }

    /// Returns the filter, if it is not closed and this process has opened it.
    fn get(&self) -> PyResult<Open> {
        if self.is_forked() {
            return Err(PyRuntimeError::new_err(format!(
                "{} was opened by the process {}, before a fork: open it again in this process",
                self.name, self.process
            )));
        }
        let open = self.open.read().expect("no holder panics");
        open.clone().ok_or_else(|| PyValueError::new_err(format!("{} is closed", self.name)))
    }

    /// Does work with the filter. Other threads run meanwhile.
    fn detached<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&Open) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        let open = self.get()?;
        py.detach(|| work(&open)).map_err(|error| raised(&error))
    }

    fn forgotten(&self, py: Python<'_>, keys: &[Fingerprint]) -> PyResult<Vec<bool>> {
        let open = self.get()?;
        let filter = open.local()?;
        py.detach(|| filter.forget_all(keys)).map_err(|error| raised(&error))
    }
}

impl Drop for Filter {
    fn drop(&mut self) {
        if self.is_forked() {
            // The process that opened the filter still writes to its folder or connection.
            let open = self.open.get_mut().expect("no holder panics").take();
            std::mem::forget(open);
        }
    }
}

/// Builds a spec from the parameters that Python passes, and the defaults of those that the kind
/// has. A filter with other ones is refused when it is opened.
fn spec(
    kind: &str,
    capacity: Option<u64>,
    error_rate: Option<f64>,
    grow_to: Option<u64>,
    seed: Option<u32>,
) -> PyResult<FilterSpec> {
    let kind: urlseen::Kind =
        kind.parse().map_err(|error| PyValueError::new_err(format!("{error}")))?;
    let mut spec = FilterSpec::new(kind);
    let takes = |name: &str| kind.keys().contains(&name);
    let size = capacity.unwrap_or(CAPACITY);
    if capacity.is_some() || takes("filter.capacity") {
        spec = spec.capacity(size);
    }
    if error_rate.is_some() || takes("filter.error_rate") {
        spec = spec.error_rate(error_rate.unwrap_or(ERROR_RATE));
    }
    if takes("filter.expansion") {
        spec = spec.expansion(EXPANSION);
    }
    if let Some(key) = UNKNOWN.iter().find(|key| takes(key)) {
        let key = key.trim_start_matches("filter.");
        return Err(PyValueError::new_err(format!(
            "a filter of the kind {kind} needs {key}, which the Python package cannot set; use \
             another kind"
        )));
    }
    if grow_to.is_some() || takes("filter.grow_to") {
        spec = spec.grow_to(grow_to.unwrap_or(size.saturating_mul(GROWTH).min(MOST)));
    }
    Ok(match seed {
        Some(seed) => spec.seed(seed),
        None => spec,
    })
}

#[pymethods]
impl Filter {
    #[new]
    #[pyo3(signature = (capacity=None, error_rate=None, *, kind="two-choice", grow_to=None, seed=None))]
    fn create(
        capacity: Option<u64>,
        error_rate: Option<f64>,
        kind: &str,
        grow_to: Option<u64>,
        seed: Option<u32>,
    ) -> PyResult<Self> {
        let spec = spec(kind, capacity, error_rate, grow_to, seed)?;
        let filter = LocalFilter::new(&spec).map_err(|error| raised(&error))?;
        Ok(Self::new(Open::Local(Arc::new(filter)), format!("the {kind} filter in memory")))
    }

    /// Opens or makes a filter in a folder, which only one process can have open.
    ///
    ///     >>> import tempfile, urlseen
    ///     >>> folder = tempfile.mkdtemp() + "/seen"
    ///     >>> with urlseen.Filter.open(folder) as seen:
    ///     ...     seen.add("a")
    ///     True
    ///     >>> with urlseen.Filter.open(folder) as seen:
    ///     ...     seen.add("a")
    ///     False
    ///
    /// Without a size, a kind and a seed, an existing folder keeps those with which it was made. The
    /// folder records how its fingerprints are computed, by the parameters of `fingerprint`. Raises
    /// `OSError` if another process has the folder open or if the folder cannot be read, and
    /// `ValueError` if it has other parameters.
    #[classmethod]
    #[pyo3(signature = (path, capacity=None, error_rate=None, *, kind=None, grow_to=None, seed=None, algorithm="scrapy", canonical="w3lib-2.5", keep_fragments=false, drop_tracking="none", same="[]"))]
    #[allow(clippy::too_many_arguments)] // Python passes most of them by name.
    fn open(
        _: &Bound<'_, PyType>,
        py: Python<'_>,
        path: std::path::PathBuf,
        capacity: Option<u64>,
        error_rate: Option<f64>,
        kind: Option<&str>,
        grow_to: Option<u64>,
        seed: Option<u32>,
        algorithm: &str,
        canonical: &str,
        keep_fragments: bool,
        drop_tracking: &str,
        same: &str,
    ) -> PyResult<Self> {
        let fingerprint =
            Options { algorithm, canonical, keep_fragments, drop_tracking, same }.spec()?;
        let is_open = (capacity, error_rate, kind, grow_to, seed) == (None, None, None, None, None);
        let spec = spec(kind.unwrap_or(KIND), capacity, error_rate, grow_to, seed)?;
        let spec = spec.fingerprint(fingerprint);
        let name = format!("the filter in {}", path.display());
        let filter = py.detach(move || {
            if is_open {
                LocalFilter::open_or_create(&path, &spec)
            } else {
                LocalFilter::open(&path, &spec)
            }
        });
        let filter = filter.map_err(|error| raised(&error))?;
        Ok(Self::new(Open::Local(Arc::new(filter)), name))
    }

    /// Opens or makes the filter `key` in Redis, which processes share. Raises `ConnectionError` if
    /// Redis is away, and `ValueError` if the filter has other parameters.
    #[classmethod]
    #[pyo3(signature = (url, key, capacity=None, error_rate=None, *, kind="native"))]
    fn open_redis(
        _: &Bound<'_, PyType>,
        py: Python<'_>,
        url: &str,
        key: &str,
        capacity: Option<u64>,
        error_rate: Option<f64>,
        kind: &str,
    ) -> PyResult<Self> {
        let spec = spec(kind, capacity, error_rate, None, None)?;
        let filter = py.detach(|| RedisFilter::open(url, key, &spec));
        let filter = filter.map_err(|error| raised(&error))?;
        Ok(Self::new(Open::Redis(Arc::new(filter)), format!("the filter {key} in Redis")))
    }

    /// Adds a key. Returns `True` if it is new.
    fn add(&self, py: Python<'_>, key: Key) -> PyResult<bool> {
        self.detached(py, |open| open.any().add(key.0))
    }

    /// Adds keys. Returns a list with `True` for each key that is new.
    ///
    ///     >>> import urlseen
    ///     >>> urlseen.Filter().add_many(["a", "b", "a"])
    ///     [True, True, False]
    fn add_many(&self, py: Python<'_>, keys: &Bound<'_, PyAny>) -> PyResult<Vec<bool>> {
        let keys = self::keys(keys)?;
        self.detached(py, |open| open.any().add_all(&keys))
    }

    /// Returns a list with `True` for each key that was added before.
    ///
    ///     >>> import urlseen
    ///     >>> urlseen.Filter().contains_many(["a", "b"])
    ///     [False, False]
    fn contains_many(&self, py: Python<'_>, keys: &Bound<'_, PyAny>) -> PyResult<Vec<bool>> {
        let keys = self::keys(keys)?;
        self.detached(py, |open| open.any().test_all(&keys))
    }

    fn __contains__(&self, py: Python<'_>, key: Key) -> PyResult<bool> {
        self.detached(py, |open| open.any().contains(key.0))
    }

    fn __len__(&self) -> PyResult<usize> {
        Ok(usize::try_from(self.get()?.local()?.len())?)
    }

    /// Forgets a key. Returns `True` if the filter had it. Not for a filter in Redis.
    ///
    ///     >>> import urlseen
    ///     >>> seen = urlseen.Filter()
    ///     >>> seen.add("a"), seen.forget("a"), seen.forget("a"), seen.add("a")
    ///     (True, True, False, True)
    fn forget(&self, py: Python<'_>, key: Key) -> PyResult<bool> {
        Ok(self.forgotten(py, &[key.0])? == [true])
    }

    /// Forgets keys. Returns a list with `True` for each key that the filter had.
    fn forget_many(&self, py: Python<'_>, keys: &Bound<'_, PyAny>) -> PyResult<Vec<bool>> {
        self.forgotten(py, &self::keys(keys)?)
    }

    /// Number of keys that the filter has room for. It increases when the filter grows.
    #[getter]
    fn capacity(&self) -> PyResult<u64> {
        Ok(self.get()?.capacity())
    }

    /// Share of new keys that the filter takes for seen ones when it is full.
    #[getter]
    fn error_rate(&self) -> PyResult<f64> {
        Ok(self.get()?.error_rate())
    }

    /// Number of keys, as a share of the capacity. Not for a filter in Redis.
    #[getter]
    fn fill(&self) -> PyResult<f64> {
        Ok(self.get()?.local()?.fill())
    }

    /// Memory of the filter, in bytes. Not for a filter in Redis.
    #[getter]
    fn memory(&self) -> PyResult<u64> {
        Ok(self.get()?.local()?.memory())
    }

    /// Syncs the folder to the disk.
    fn save(&self, py: Python<'_>) -> PyResult<()> {
        self.detached(py, Open::sync)
    }

    /// Closes the filter, with all keys on the disk. A second call does nothing.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        if self.is_forked() {
            return Ok(());
        }
        let open = self.open.write().expect("no holder panics").take();
        let Some(open) = open else { return Ok(()) };
        py.detach(|| {
            let synced = open.sync();
            drop(open);
            synced
        })
        .map_err(|error| raised(&error))
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyAny>) -> PyResult<()> {
        self.close(py)
    }

    fn __repr__(&self) -> String {
        let numbers = match self.get() {
            Ok(open) => {
                let numbers = match &open {
                    Open::Local(it) => {
                        format!(", fill {:.4}, memory {} bytes", it.fill(), it.memory())
                    }
                    Open::Redis(_) => String::new(),
                };
                format!(
                    ", capacity {}, error_rate {:e}{numbers}",
                    open.capacity(),
                    open.error_rate()
                )
            }
            Err(_) => ", which is not open in this process".to_owned(),
        };
        format!("<urlseen.Filter: {}{numbers}>", self.name)
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err(format!("cannot pickle {}: open it again instead", self.name)))
    }
}

/// Converts the error of a filter. Its text names the parameters of Python, not the keys of the
/// daemon's configuration.
pub(crate) fn raised(error: &Error) -> PyErr {
    // Each word follows a space, so that no path is changed.
    let text = WORDS.iter().fold(format!(" {error}"), |text, (from, to)| text.replace(from, to));
    let text = text[1..].to_owned();
    match error.kind() {
        ErrorKind::Spec | ErrorKind::Mismatch | ErrorKind::Placement => PyValueError::new_err(text),
        ErrorKind::Memory => PyMemoryError::new_err(text),
        ErrorKind::Storage => PyOSError::new_err(text),
        ErrorKind::Redis | ErrorKind::Refused => PyConnectionError::new_err(text),
        _ => PyRuntimeError::new_err(text),
    }
}
