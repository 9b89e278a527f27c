//! The canonical form of a URL, byte for byte what w3lib 2.5 and Scrapy 2.19 make of it.
//!
//! Scrapy treats a URL twice: a `Request` makes it *safe* (`w3lib.url.safe_url_string`, what a
//! browser and a server both take), and a fingerprint makes that *canonical*
//! (`w3lib.url.canonicalize_url`, what equivalent URLs share). Neither is the WHATWG parser: default
//! ports stay, hosts are not validated, queries are sorted. [`push_request_url`] does both.
//!
//! All functions append to a `String` of the caller's and work in [`Buffers`] of the caller's, so
//! that a thread that reuses them allocates nothing for ordinary links. Text encodings other than
//! UTF-8, which w3lib can take as an argument, are not supported.
//!
//! # Unicode versions
//!
//! Outside ASCII, hosts depend on Unicode's tables. The reference is CPython 3.11: Unicode 14.0, and
//! 3.2 for nameprep as IDNA 2003 asks. Rust's tables are newer. As Unicode changes neither lower
//! case nor normalisation of what it has assigned, the results are the same for all code points that
//! 14.0 has assigned, and may differ in hosts with later ones.

mod authority;
mod bytes;
mod idna;
mod ipv6;
mod path;
mod query;
mod refusal;
mod scheme;
mod split;

pub use refusal::Refusal;

use bytes::{PLAIN_HOST, SAFE, SAFE_SPECIAL_QUERY, push_quoted};
use scheme::Scheme;
use split::Parts;

/// Whether a canonical URL keeps its fragment, w3lib's and Scrapy's `keep_fragments`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fragments {
    /// A fragment is not sent to a server, so it does not make another resource: the default.
    #[default]
    Drop,
    /// For crawls with a browser, where the page's script may act on the fragment.
    Keep,
}

/// Room to work in, worth keeping from one URL to the next.
#[derive(Debug, Default)]
pub struct Buffers {
    cleaned: String,
    safe: String,
    spare: String,
    fields: Vec<query::Field>,
}

/// Whether Scrapy takes `url`, made safe already or to be sent verbatim, for a request's.
pub fn is_absolute(url: &str) -> bool {
    url.contains("://") || url.starts_with("about:") || url.starts_with("data:")
}

/// Appends the canonical form of a request's URL as discovered: made safe, tested to be absolute,
/// made canonical.
pub fn push_request_url(
    url: &str,
    fragments: Fragments,
    buffers: &mut Buffers,
    out: &mut String,
) -> Result<(), Refusal> {
    let mut safe = std::mem::take(&mut buffers.safe);
    safe.clear();
    let result = push_safe_url(url, buffers, &mut safe).and_then(|()| {
        if !is_absolute(&safe) {
            return Err(Refusal::NotAbsolute);
        }
        push_canonical_url(&safe, fragments, buffers, out)
    });
    buffers.safe = safe;
    result
}

/// Appends the safe form of a URL: w3lib's `safe_url_string`.
pub fn push_safe_url(url: &str, buffers: &mut Buffers, out: &mut String) -> Result<(), Refusal> {
    let Parts { scheme, authority, path, query, fragment } =
        split::split(split::cleaned(url, &mut buffers.cleaned))?;
    scheme.push(out);
    let start = out.len();
    authority::push_safe(authority, out)?;
    let has_authority = out.len() > start;
    let path_start = out.len();
    push_quoted(path, &SAFE, out);
    // Without a path, the query would follow the authority directly.
    if path.is_empty() && !query.is_empty() && scheme.is_special() {
        out.push('/');
    }
    let path = &out[path_start..];
    if needs_slashes(has_authority, path, scheme) {
        out.insert_str(start, "//");
    }
    if !query.is_empty() {
        out.push('?');
        let safe = if scheme.is_special() { &SAFE_SPECIAL_QUERY } else { &SAFE };
        push_quoted(query, safe, out);
    }
    push_fragment(fragment, out);
    Ok(())
}

/// Appends the canonical form of a URL: w3lib's `canonicalize_url`.
pub fn push_canonical_url(
    url: &str,
    fragments: Fragments,
    buffers: &mut Buffers,
    out: &mut String,
) -> Result<(), Refusal> {
    let Parts { scheme, authority, path, query, fragment } =
        split::split(split::cleaned(url, &mut buffers.cleaned))?;
    scheme.push(out);
    let start = out.len();
    authority::push_canonical(authority, out)?;
    let has_authority = out.len() > start;
    let path_start = out.len();
    let (path, parameters) = path::split_parameters(path, scheme);
    path::push(path, &mut buffers.spare, out);
    if needs_slashes(has_authority, &out[path_start..], scheme) {
        out.insert_str(start, "//");
    }
    path::push_parameters(parameters, out);
    query::push(query, &mut buffers.fields, &mut buffers.spare, out);
    if fragments == Fragments::Keep {
        push_fragment(fragment, out);
    }
    Ok(())
}

/// Whether `//` goes before the path: before an authority, before a path that would be taken for
/// one, and by custom in schemes that have authorities.
fn needs_slashes(has_authority: bool, path: &str, scheme: Scheme<'_>) -> bool {
    has_authority
        || path.starts_with("//")
        || (path.is_empty() || path.starts_with('/')) && scheme.has_authority()
}

/// Appends `#` and a fragment made safe, if there is one.
fn push_fragment(fragment: &str, out: &mut String) {
    if !fragment.is_empty() {
        out.push('#');
        push_quoted(fragment, &SAFE, out);
    }
}
