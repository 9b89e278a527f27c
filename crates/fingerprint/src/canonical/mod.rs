//! Canonical form of a URL, byte for byte the same as in w3lib 2.5 and Scrapy 2.19, or as in w3lib
//! 2.4 and Scrapy 2.13.
//!
//! Scrapy converts a URL twice. First, a `Request` makes the URL *safe* with
//! `w3lib.url.safe_url_string`. Both browsers and servers accept a safe URL. Then the fingerprinter
//! makes the safe URL *canonical* with `w3lib.url.canonicalize_url`. Equivalent URLs have the same
//! canonical form. Neither function follows the WHATWG parser: default ports stay, hosts are not
//! validated, and queries are sorted. [`push_request_url`] does both conversions.
//!
//! w3lib 2.4 splits URLs with Python's `urllib.parse`, and w3lib 2.5 with a parser of its own. Only
//! the steps that differ ask for the [`CanonicalForm`].
//!
//! All functions append to the caller's `String` and use the caller's [`Buffers`]. A thread that
//! reuses the string and the buffers allocates nothing for ordinary links. w3lib also has an
//! argument for other text encodings than UTF-8; this module supports only UTF-8.
//!
//! # Unicode versions
//!
//! The canonical form of a host that is not ASCII depends on Unicode's tables. The reference is
//! Python 3.11, which uses Unicode 14.0, and Unicode 3.2 for nameprep, as IDNA 2003 requires.
//! Rust's tables are newer. Unicode never changes the lower case or the normalisation of an
//! assigned code point. The results are therefore the same for all code points that Unicode 14.0
//! has. They may differ in hosts with later code points, as they do between versions of Python.
//! The upper case of a method depends on Unicode in the same way.

mod authority;
mod escapes;
pub(crate) mod idna;
mod path_query;
mod split;
mod steps;
#[cfg(test)]
mod tests;
mod trace;
#[cfg(test)]
mod trace_tests;

pub use authority::CanonicalizeError;
pub use steps::Rule;
pub(crate) use steps::{Observer, Pass};
pub use trace::{Step, Trace, parts, trace, trace_verbatim};

pub(super) use escapes::decoded;
use escapes::{ByteSet, SAFE, SAFE_2_4, SAFE_SPECIAL_QUERY, plain_in_host, push_quoted};
use path_query::UrlTail;
use split::UrlParts;
pub(super) use split::{Scheme, split_authority};

use crate::choice::choices;
use crate::lanes;

choices! {
    /// Version of w3lib whose canonical form is computed.
    #[derive(Default)]
    CanonicalForm {
        /// Form of w3lib 2.5. The reference is w3lib 2.5.0 with Scrapy 2.19.0.
        #[default]
        W3lib25 = "w3lib-2.5",
        /// Form of earlier versions. The reference is w3lib 2.4.1 with Scrapy 2.13.4.
        W3lib24 = "w3lib-2.4",
    }
}

impl CanonicalForm {
    fn is_old(self) -> bool {
        self == Self::W3lib24
    }
}

/// Settings that determine the canonical form of a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CanonicalSpec {
    /// Version of w3lib whose form a URL gets.
    pub form: CanonicalForm,
    /// True if the part after the `#` stays, for crawls with a browser, in which scripts of a page
    /// may read it. Servers never receive this part.
    pub keep_fragments: bool,
}

/// Working memory, which a caller reuses from one URL to the next.
#[derive(Debug, Clone, Default)]
pub struct Buffers {
    cleaned: String,
    safe: String,
    tail: TailBuffers,
}

/// Part of [`Buffers`] that is used for paths and queries.
#[derive(Debug, Clone, Default)]
struct TailBuffers {
    spare: String,
    fields: Vec<path_query::Field>,
}

/// Returns true if Scrapy accepts the URL as absolute. The URL must be safe already, or sent
/// verbatim.
pub(crate) fn is_absolute(url: &str) -> bool {
    url.contains("://") || url.starts_with("about:") || url.starts_with("data:")
}

/// Appends the canonical form of a discovered request URL to `out`. Makes the URL safe, checks that
/// the URL is absolute, and makes the URL canonical.
///
/// # Errors
/// Scrapy or w3lib would refuse the URL. The content of `out` is then meaningless.
pub fn push_request_url(
    url: &str,
    spec: CanonicalSpec,
    buffers: &mut Buffers,
    out: &mut String,
) -> Result<(), CanonicalizeError> {
    let cleaned = split::cleaned(url, spec.form, &mut buffers.cleaned, &mut ());
    if let Some((origin, rest)) = split_plain(cleaned) {
        let start = out.len();
        out.push_str(origin);
        if lanes::any(origin.as_bytes(), |lanes| lanes::within(lanes, b'A', b'Z')) {
            out[start..].make_ascii_lowercase();
        }
        push_tail(&UrlTail::split(rest), true, &SAFE, spec, &mut buffers.tail, out, &mut ());
        return Ok(());
    }
    push_in_two_passes(url, spec, buffers, out, &mut ())
}

/// Makes a URL safe, and then canonical.
fn push_in_two_passes(
    url: &str,
    spec: CanonicalSpec,
    buffers: &mut Buffers,
    out: &mut String,
    observer: &mut impl Observer,
) -> Result<(), CanonicalizeError> {
    observer.begin(Pass::Safe);
    buffers.safe.clear();
    let cleaned = split::cleaned(url, spec.form, &mut buffers.cleaned, observer);
    push_safe(&split::split(cleaned, spec.form)?, spec.form, &mut buffers.safe, observer)?;
    if !is_absolute(&buffers.safe) {
        return Err(CanonicalizeError::NotAbsolute);
    }
    observer.begin(Pass::Canonical);
    let cleaned = split::cleaned(&buffers.safe, spec.form, &mut buffers.cleaned, observer);
    push_canonical(&split::split(cleaned, spec.form)?, spec, &mut buffers.tail, out, observer)
}

/// Appends the canonical form of a URL to `out`: w3lib's `canonicalize_url`.
///
/// # Errors
/// w3lib would refuse the URL. The content of `out` is then meaningless.
pub(crate) fn push_canonical_url(
    url: &str,
    spec: CanonicalSpec,
    buffers: &mut Buffers,
    out: &mut String,
    observer: &mut impl Observer,
) -> Result<(), CanonicalizeError> {
    let cleaned = split::cleaned(url, spec.form, &mut buffers.cleaned, observer);
    push_canonical(&split::split(cleaned, spec.form)?, spec, &mut buffers.tail, out, observer)
}

fn push_safe(
    parts: &UrlParts<'_>,
    form: CanonicalForm,
    out: &mut String,
    observer: &mut impl Observer,
) -> Result<(), CanonicalizeError> {
    let UrlParts { scheme, authority, ref tail, .. } = *parts;
    let start = push_scheme(parts, out, observer);
    authority::push_safe(authority, tail.text, form, out, observer)?;
    let path_start = out.len();
    push_quoted(tail.path, &SAFE, out);
    observer.step(Rule::PathEscaped, || [out, tail.after_path()].concat());
    // Without a path, the query would follow the authority directly.
    if !form.is_old() && tail.path.is_empty() && !tail.query.is_empty() && scheme.is_special() {
        out.push('/');
        observer.step(Rule::EmptyPath, || [out, tail.after_path()].concat());
    }
    fix_slashes(parts, form, start, path_start, out);
    observer.step(Rule::Slashes, || [out, tail.after_path()].concat());
    if tail.query.is_empty() {
        observer.step(Rule::EmptyQuery, || [out, tail.after_query()].concat());
    } else {
        out.push('?');
        let safe = if scheme.is_special() { &SAFE_SPECIAL_QUERY } else { &SAFE };
        push_quoted(tail.query, safe, out);
        observer.step(Rule::QueryEscaped, || [out, tail.after_query()].concat());
    }
    push_fragment(tail.fragment, &SAFE, out, observer);
    Ok(())
}

fn push_canonical(
    parts: &UrlParts<'_>,
    spec: CanonicalSpec,
    buffers: &mut TailBuffers,
    out: &mut String,
    observer: &mut impl Observer,
) -> Result<(), CanonicalizeError> {
    let UrlParts { scheme, authority, ref tail, .. } = *parts;
    let start = push_scheme(parts, out, observer);
    let safe = if spec.form.is_old() {
        authority::push_canonical_2_4(authority, tail.text, out, observer);
        &SAFE_2_4
    } else {
        authority::push_canonical(authority, tail.text, out, observer)?;
        &SAFE
    };
    let path_start = out.len();
    push_tail(tail, scheme.has_parameters(), safe, spec, buffers, out, observer);
    fix_slashes(parts, spec.form, start, path_start, out);
    observer.step(Rule::Slashes, || out.clone());
    Ok(())
}

/// Appends the scheme, and the slashes that the URL has after it. Returns their position.
fn push_scheme(parts: &UrlParts<'_>, out: &mut String, observer: &mut impl Observer) -> usize {
    parts.scheme.push(out);
    observer
        .step(Rule::SchemeCase, || [out, parts.slashes, parts.authority, parts.tail.text].concat());
    let start = out.len();
    out.push_str(parts.slashes);
    start
}

/// Inserts or removes the slashes at `start`, before the authority and the path. They stand there
/// in three cases. First, the URL has an authority. Second, the path begins with `//`, and would be
/// read as an authority. Third, URLs with this scheme usually have an authority, and the path is
/// empty or begins with `/`. The path begins at `path_start`.
///
/// In w3lib 2.4, a path after `//` is no second case, and any path a third one, which gets its `/`.
fn fix_slashes(
    parts: &UrlParts<'_>,
    form: CanonicalForm,
    start: usize,
    path_start: usize,
    out: &mut String,
) {
    let (before, path) = (start + parts.slashes.len(), &out[path_start..]);
    if form.is_old() && path_start == before {
        let is_needed = parts.scheme.has_authority() && !path.starts_with("//");
        let has_slash = path.is_empty() || path.starts_with('/');
        let slashes = if is_needed && !has_slash { "///" } else { "//" };
        out.replace_range(start..before, if is_needed { slashes } else { "" });
        return;
    }
    let is_needed = path_start > before
        || path.starts_with("//")
        || (path.is_empty() || path.starts_with('/')) && parts.scheme.has_authority();
    out.replace_range(start..before, if is_needed { "//" } else { "" });
}

/// Appends the canonical form of all parts after the authority. Bytes in `safe` stay unchanged in
/// parameters and in the fragment.
#[inline]
fn push_tail(
    tail: &UrlTail<'_>,
    has_parameters: bool,
    safe: &ByteSet,
    spec: CanonicalSpec,
    buffers: &mut TailBuffers,
    out: &mut String,
    observer: &mut impl Observer,
) {
    let (path, parameters) =
        if has_parameters { path_query::split_parameters(tail.path) } else { (tail.path, "") };
    path_query::push_path(path, spec.form, &mut buffers.spare, out, observer, || {
        &tail.text[path.len()..]
    });
    path_query::push_parameters(parameters, safe, out);
    let rule = if parameters.is_empty() { Rule::EmptyParameters } else { Rule::Parameters };
    observer.step(rule, || [out, tail.after_path()].concat());
    path_query::push_query(tail, spec.form, buffers, out, observer);
    if spec.keep_fragments {
        return push_fragment(tail.fragment, safe, out, observer);
    }
    let is_empty = tail.fragment.is_empty();
    let rule = if is_empty { Rule::EmptyFragment } else { Rule::FragmentDropped };
    observer.step(rule, || out.clone());
}

/// Appends `#` and the escaped fragment, if there is a fragment.
fn push_fragment(fragment: &str, safe: &ByteSet, out: &mut String, observer: &mut impl Observer) {
    if fragment.is_empty() {
        return observer.step(Rule::EmptyFragment, || out.clone());
    }
    out.push('#');
    push_quoted(fragment, safe, out);
    observer.step(Rule::FragmentEscaped, || out.clone());
}

/// Splits a cleaned URL after its origin, if the origin is plain. A plain origin has the scheme
/// `http` or `https`, and a host of ASCII letters, digits and `-._`. Its port has no leading zeros,
/// or is missing. Returns `None` for any other URL.
///
/// Both functions of w3lib, `safe_url_string` and `canonicalize_url`, only convert a plain origin
/// to lower case. So one pass can do the work of both.
fn split_plain(url: &str) -> Option<(&str, &str)> {
    let bytes = url.as_bytes();
    let host = ["https://", "http://"].iter().find_map(|scheme| {
        let start = bytes.get(..scheme.len())?;
        // Nearly all schemes are in lower case, so the first comparison is usually enough.
        let is_it = start == scheme.as_bytes() || start.eq_ignore_ascii_case(scheme.as_bytes());
        is_it.then_some(scheme.len())
    })?;
    let mut end = lanes::position(&bytes[host..], |lanes| !plain_in_host(lanes))
        .map_or(bytes.len(), |length| host + length);
    if end == host {
        return None;
    }
    if bytes.get(end) == Some(&b':') {
        end += 1 + plain_port(&url[end + 1..])?;
    }
    matches!(bytes.get(end), None | Some(b'/' | b'?' | b'#')).then(|| url.split_at(end))
}

/// Returns the number of digits of the port at the start of `text`. Returns `None` unless the port
/// is already canonical.
fn plain_port(text: &str) -> Option<usize> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let port = &text[..digits];
    (!port.starts_with('0') && port.parse::<u16>().is_ok()).then_some(digits)
}
