//! Canonical form of a URL, byte for byte the same as in w3lib 2.5 and Scrapy 2.19.
//!
//! Scrapy converts a URL twice. First, a `Request` makes the URL *safe* with
//! `w3lib.url.safe_url_string`. Both browsers and servers accept a safe URL. Then the fingerprinter
//! makes the safe URL *canonical* with `w3lib.url.canonicalize_url`. Equivalent URLs have the same
//! canonical form. Neither function follows the WHATWG parser: default ports stay, hosts are not
//! validated, and queries are sorted. [`push_request_url`] does both conversions.
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
mod bytes;
mod error;
mod idna;
mod ipv6;
mod origin;
mod path;
mod query;
mod rule;
mod scheme;
mod split;
mod steps;
#[cfg(test)]
mod steps_tests;
#[cfg(test)]
mod tests;

pub use error::CanonicalizeError;
pub(crate) use rule::Pass;
pub use rule::{Rule, UrlPart};
pub use steps::{Step, Trace, parts, trace, trace_verbatim};

use bytes::{SAFE, SAFE_SPECIAL_QUERY, push_quoted};
use scheme::Scheme;
use split::{UrlParts, UrlTail};

use crate::fingerprint::lanes;

/// Treatment of the fragment, the part of a URL after the `#`. w3lib and Scrapy call this setting
/// `keep_fragments`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fragments {
    /// Removes the fragment. This is the default, because servers never receive the fragment.
    #[default]
    Drop,
    /// Keeps the fragment. This is for crawls with a browser, in which scripts of a page may read
    /// the fragment.
    Keep,
}

/// Working memory, which a caller reuses from one URL to the next.
#[derive(Debug, Default)]
pub struct Buffers {
    cleaned: String,
    safe: String,
    tail: TailBuffers,
}

/// Part of [`Buffers`] that is used for paths and queries.
#[derive(Debug, Default)]
struct TailBuffers {
    spare: String,
    fields: Vec<query::Field>,
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
    fragments: Fragments,
    buffers: &mut Buffers,
    out: &mut String,
) -> Result<(), CanonicalizeError> {
    let cleaned = split::cleaned(url, &mut buffers.cleaned);
    if let Some((origin, rest)) = origin::split_plain(cleaned) {
        let start = out.len();
        out.push_str(origin);
        if lanes::any(origin.as_bytes(), |lanes| lanes::within(lanes, b'A', b'Z')) {
            out[start..].make_ascii_lowercase();
        }
        let tail = UrlTail::split(rest);
        let (path, parameters) = path::split_parameters(tail.path);
        path::push(path, &mut buffers.tail.spare, out);
        path::push_parameters(parameters, out);
        push_query_and_fragment(&tail, fragments, &mut buffers.tail, out);
        return Ok(());
    }
    let safe = split::split(cleaned).and_then(|parts| {
        buffers.safe.clear();
        push_safe(&parts, &mut buffers.safe)
    });
    safe?;
    if !is_absolute(&buffers.safe) {
        return Err(CanonicalizeError::NotAbsolute);
    }
    let cleaned = split::cleaned(&buffers.safe, &mut buffers.cleaned);
    push_canonical(&split::split(cleaned)?, fragments, &mut buffers.tail, out)
}

/// Appends the canonical form of a URL to `out`: w3lib's `canonicalize_url`.
///
/// # Errors
/// w3lib would refuse the URL. The content of `out` is then meaningless.
pub(crate) fn push_canonical_url(
    url: &str,
    fragments: Fragments,
    buffers: &mut Buffers,
    out: &mut String,
) -> Result<(), CanonicalizeError> {
    let cleaned = split::cleaned(url, &mut buffers.cleaned);
    push_canonical(&split::split(cleaned)?, fragments, &mut buffers.tail, out)
}

fn push_safe(parts: &UrlParts<'_>, out: &mut String) -> Result<(), CanonicalizeError> {
    let UrlParts { scheme, authority, tail: UrlTail { path, query, fragment } } = *parts;
    scheme.push(out);
    let start = out.len();
    authority::push_safe(authority, out)?;
    let path_start = out.len();
    push_quoted(path, &SAFE, out);
    // Without a path, the query would follow the authority directly.
    if path.is_empty() && !query.is_empty() && scheme.is_special() {
        out.push('/');
    }
    insert_slashes(start, path_start, scheme, out);
    if !query.is_empty() {
        out.push('?');
        let safe = if scheme.is_special() { &SAFE_SPECIAL_QUERY } else { &SAFE };
        push_quoted(query, safe, out);
    }
    push_fragment(fragment, out);
    Ok(())
}

fn push_canonical(
    parts: &UrlParts<'_>,
    fragments: Fragments,
    buffers: &mut TailBuffers,
    out: &mut String,
) -> Result<(), CanonicalizeError> {
    let UrlParts { scheme, authority, tail } = parts;
    scheme.push(out);
    let start = out.len();
    authority::push_canonical(authority, out)?;
    let path_start = out.len();
    let (path, parameters) =
        if scheme.has_parameters() { path::split_parameters(tail.path) } else { (tail.path, "") };
    path::push(path, &mut buffers.spare, out);
    insert_slashes(start, path_start, *scheme, out);
    path::push_parameters(parameters, out);
    push_query_and_fragment(tail, fragments, buffers, out);
    Ok(())
}

/// Inserts `//` at `start`, before the authority and the path. The slashes are inserted in three
/// cases. First, the URL has an authority. Second, the path begins with `//`, and would be read as
/// an authority. Third, URLs with this scheme usually have an authority, and the path is empty or
/// begins with `/`. The path begins at `path_start`.
fn insert_slashes(start: usize, path_start: usize, scheme: Scheme<'_>, out: &mut String) {
    let path = &out[path_start..];
    if path_start > start
        || path.starts_with("//")
        || (path.is_empty() || path.starts_with('/')) && scheme.has_authority()
    {
        out.insert_str(start, "//");
    }
}

fn push_query_and_fragment(
    tail: &UrlTail<'_>,
    fragments: Fragments,
    buffers: &mut TailBuffers,
    out: &mut String,
) {
    query::push(tail.query, &mut buffers.fields, &mut buffers.spare, out);
    if fragments == Fragments::Keep {
        push_fragment(tail.fragment, out);
    }
}

/// Appends `#` and the escaped fragment, if there is a fragment.
fn push_fragment(fragment: &str, out: &mut String) {
    if !fragment.is_empty() {
        out.push('#');
        push_quoted(fragment, &SAFE, out);
    }
}
