//! Fingerprints of requests.

use std::cell::RefCell;
use std::fmt::Display;
use std::str::FromStr;

use pyo3::exceptions::PyValueError;
use pyo3::types::{PyAnyMethods, PyBytes, PyList, PyString, PyStringMethods};
use pyo3::{Bound, PyAny, PyErr, PyResult, Python, pyfunction};
use urlseen::{
    CanonicalForm, CanonicalSpec, CanonicalizeError, FingerprintSpec, Fingerprinter, Request,
};

/// Number of bytes of a fingerprint.
const LENGTH: usize = 20;

/// Texts of the options of a fingerprinter, `keep_fragments`, and the fingerprinter.
type Kept = ([String; 4], bool, Fingerprinter);

thread_local! {
    /// Fingerprinter of this thread, which keeps its buffers.
    static KEPT: RefCell<Option<Kept>> = const { RefCell::new(None) };
}

/// Options of a fingerprint, as Python passes them.
#[derive(Clone, Copy)]
pub(crate) struct Options<'a> {
    pub(crate) algorithm: &'a str,
    pub(crate) canonical: &'a str,
    pub(crate) keep_fragments: bool,
    pub(crate) drop_tracking: &'a str,
    pub(crate) same: &'a str,
}

fn read<T: FromStr<Err: Display>>(name: &str, text: &str) -> PyResult<T> {
    text.parse().map_err(|error| PyValueError::new_err(format!("{name}: {error}")))
}

impl Options<'_> {
    /// Reads the options. The error names the invalid option.
    pub(crate) fn spec(self) -> PyResult<FingerprintSpec> {
        Ok(FingerprintSpec {
            algorithm: read("algorithm", self.algorithm)?,
            canonical: read("canonical", self.canonical)?,
            keep_fragments: self.keep_fragments,
            drop_tracking: read("drop_tracking", self.drop_tracking)?,
            same: read("same", self.same)?,
        })
    }

    /// Does work with the fingerprinter of this thread.
    fn with<T>(self, work: impl FnOnce(&mut Fingerprinter) -> T) -> PyResult<T> {
        KEPT.with_borrow_mut(|kept| {
            let Self { algorithm, canonical, keep_fragments, drop_tracking, same } = self;
            let texts = [algorithm, canonical, drop_tracking, same];
            let fitting = kept.take().filter(|it| it.0 == texts && it.1 == keep_fragments);
            let fitting = if let Some(fitting) = fitting {
                fitting
            } else {
                let fingerprinter = Fingerprinter::new(self.spec()?);
                (texts.map(str::to_owned), keep_fragments, fingerprinter)
            };
            Ok(work(&mut kept.insert(fitting).2))
        })
    }
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
/// `algorithm` is `"scrapy"` (Scrapy 2.7 and later), `"scrapy-2.6"` or `"scrapy-redis"`.
/// `canonical` is the version of w3lib, `"w3lib-2.5"` or `"w3lib-2.4"`. With `keep_fragments`, URLs that differ only after the `#` are different. `drop_tracking` is the name
/// of a list of tracking parameters that do not count, such as `"2026-11"`, and `same` has rules
/// `[[same]]` of urlseen's configuration as JSON: `'[{"host": "^h$", "fold": ["www"]}]'`.
/// `verbatim_url` is that of `Request.meta`. Raises `ValueError` if Scrapy would refuse the URL, or
/// if an option is invalid.
#[expect(clippy::too_many_arguments, reason = "they are those of the Python function")]
#[pyfunction]
#[pyo3(signature = (url, method="GET", body=&[][..], *, algorithm="scrapy", canonical="w3lib-2.5", keep_fragments=false, drop_tracking="none", same="[]", verbatim_url=false))]
pub(crate) fn fingerprint<'py>(
    py: Python<'py>,
    url: &str,
    method: &str,
    body: &[u8],
    algorithm: &str,
    canonical: &str,
    keep_fragments: bool,
    drop_tracking: &str,
    same: &str,
    verbatim_url: bool,
) -> PyResult<Bound<'py, PyBytes>> {
    let request = Request { method, url, body, verbatim_url };
    let options = Options { algorithm, canonical, keep_fragments, drop_tracking, same };
    let digest = options.with(|fingerprinter| digest(fingerprinter, &request))?;
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
#[pyo3(signature = (urls, *, algorithm="scrapy", canonical="w3lib-2.5", keep_fragments=false, drop_tracking="none", same="[]"))]
pub(crate) fn fingerprints<'py>(
    py: Python<'py>,
    urls: &Bound<'py, PyAny>,
    algorithm: &str,
    canonical: &str,
    keep_fragments: bool,
    drop_tracking: &str,
    same: &str,
) -> PyResult<Bound<'py, PyList>> {
    let options = Options { algorithm, canonical, keep_fragments, drop_tracking, same };
    // One buffer for all URLs, with the end of each.
    let (mut text, mut ends) = (String::new(), Vec::with_capacity(urls.len().unwrap_or(0)));
    for url in urls.try_iter()? {
        text.push_str(url?.cast::<PyString>()?.to_str()?);
        ends.push(text.len());
    }
    let digests = py.detach(|| {
        options.with(|fingerprinter| {
            let mut start = 0;
            let digests = ends.iter().map(|&end| {
                let url = &text[std::mem::replace(&mut start, end)..end];
                digest(fingerprinter, &Request::get(url)).map_err(|error| (url, error))
            });
            digests.collect::<Result<Vec<_>, _>>()
        })
    });
    let digests = digests?.map_err(|(url, error)| refused(url, &error))?;
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
#[pyo3(signature = (url, *, canonical="w3lib-2.5", keep_fragments=false))]
pub(crate) fn canonicalize(url: &str, canonical: &str, keep_fragments: bool) -> PyResult<String> {
    let form: CanonicalForm = read("canonical", canonical)?;
    urlseen::canonicalize(url, CanonicalSpec { form, keep_fragments })
        .map_err(|error| refused(url, &error))
}
