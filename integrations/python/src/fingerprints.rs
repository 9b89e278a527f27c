//! Fingerprints of requests.

use std::cell::RefCell;

use pyo3::exceptions::PyValueError;
use pyo3::types::{PyAnyMethods, PyBytes, PyList, PyString, PyStringMethods};
use pyo3::{Bound, PyAny, PyErr, PyResult, Python, pyfunction};
use urlseen::{CanonicalizeError, FingerprintSpec, Fingerprinter, Fragments, Request};

/// Number of bytes of a fingerprint.
const LENGTH: usize = 20;

thread_local! {
    /// Fingerprinter of this thread, which keeps its buffers.
    static KEPT: RefCell<Kept> = RefCell::new(Kept::new(FingerprintSpec::default()));
}

/// Fingerprinter with its spec.
struct Kept {
    spec: FingerprintSpec,
    fingerprinter: Fingerprinter,
}

impl Kept {
    fn new(spec: FingerprintSpec) -> Self {
        Self { spec, fingerprinter: Fingerprinter::new(spec) }
    }
}

/// Reads the spec of a fingerprint, as Python passes its parts.
pub(crate) fn spec(algorithm: &str, keep_fragments: bool) -> PyResult<FingerprintSpec> {
    let algorithm = algorithm.parse().map_err(|error| PyValueError::new_err(format!("{error}")))?;
    Ok(FingerprintSpec { algorithm, keep_fragments })
}

/// Does work with the fingerprinter of this thread.
fn with<T>(spec: FingerprintSpec, work: impl FnOnce(&mut Fingerprinter) -> T) -> T {
    KEPT.with_borrow_mut(|kept| {
        if kept.spec != spec {
            *kept = Kept::new(spec);
        }
        work(&mut kept.fingerprinter)
    })
}

/// Computes a fingerprint: 20 bytes.
fn digest(
    fingerprinter: &mut Fingerprinter,
    request: &Request<'_>,
) -> Result<[u8; LENGTH], CanonicalizeError> {
    let fingerprint = fingerprinter.fingerprint(request)?;
    let mut digest = [0; LENGTH];
    digest.copy_from_slice(fingerprint.as_bytes());
    Ok(digest)
}

fn refused(url: &str, error: &CanonicalizeError) -> PyErr {
    PyValueError::new_err(format!("{url:?}: {error}"))
}

/// Computes the fingerprint of a request: 20 bytes, as Scrapy computes them.
///
///     >>> import urlseen
///     >>> urlseen.fingerprint("https://example.com/?b=2&a=1").hex()
///     'a6ab45564523e37c0ded48d60b091ec021ca7a0f'
///
/// `algorithm` is `"scrapy"` (Scrapy 2.7 and later), `"scrapy-2.6"` or `"scrapy-redis"`. With
/// `keep_fragments`, URLs that differ only after the `#` are different. `verbatim_url` is that of
/// `Request.meta`. Raises `ValueError` if Scrapy would refuse the URL.
#[pyfunction]
#[pyo3(signature = (url, method="GET", body=&[][..], *, algorithm="scrapy", keep_fragments=false, verbatim_url=false))]
pub(crate) fn fingerprint<'py>(
    py: Python<'py>,
    url: &str,
    method: &str,
    body: &[u8],
    algorithm: &str,
    keep_fragments: bool,
    verbatim_url: bool,
) -> PyResult<Bound<'py, PyBytes>> {
    let request = Request { method, url, body, verbatim_url };
    let spec = spec(algorithm, keep_fragments)?;
    let digest = with(spec, |fingerprinter| digest(fingerprinter, &request));
    Ok(PyBytes::new(py, &digest.map_err(|error| refused(url, &error))?))
}

/// Computes the fingerprints of GET requests. Other threads run meanwhile.
///
///     >>> import urlseen
///     >>> [it.hex()[:8] for it in urlseen.fingerprints(["https://a.example/"])]
///     ['92764cdc']
///
/// Raises `ValueError` if Scrapy would refuse one of the URLs.
#[pyfunction]
#[pyo3(signature = (urls, *, algorithm="scrapy", keep_fragments=false))]
pub(crate) fn fingerprints<'py>(
    py: Python<'py>,
    urls: &Bound<'py, PyAny>,
    algorithm: &str,
    keep_fragments: bool,
) -> PyResult<Bound<'py, PyList>> {
    let spec = spec(algorithm, keep_fragments)?;
    // One buffer for all URLs, with the end of each.
    let (mut text, mut ends) = (String::new(), Vec::with_capacity(urls.len().unwrap_or(0)));
    for url in urls.try_iter()? {
        text.push_str(url?.cast::<PyString>()?.to_str()?);
        ends.push(text.len());
    }
    let digests = py.detach(|| {
        with(spec, |fingerprinter| {
            let mut start = 0;
            let digests = ends.iter().map(|&end| {
                let url = &text[std::mem::replace(&mut start, end)..end];
                digest(fingerprinter, &Request::get(url)).map_err(|error| (url, error))
            });
            digests.collect::<Result<Vec<_>, _>>()
        })
    });
    let digests = digests.map_err(|(url, error)| refused(url, &error))?;
    PyList::new(py, digests.iter().map(|digest| PyBytes::new(py, digest)))
}

/// Returns the canonical form of a URL, which Scrapy hashes.
///
///     >>> import urlseen
///     >>> urlseen.canonicalize("HTTPS://Example.com/a b?y=1&x=2#top")
///     'https://example.com/a%20b?x=2&y=1'
///
/// Raises `ValueError` if Scrapy would refuse the URL.
#[pyfunction]
#[pyo3(signature = (url, *, keep_fragments=false))]
pub(crate) fn canonicalize(url: &str, keep_fragments: bool) -> PyResult<String> {
    let fragments = if keep_fragments { Fragments::Keep } else { Fragments::Drop };
    urlseen::canonicalize(url, fragments).map_err(|error| refused(url, &error))
}
