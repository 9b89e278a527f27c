//! Other spellings of an item: some have the same fingerprint, others only look similar.

use serde::Serialize;
use serde_json::json;

use urlseen_core::fingerprint::{Fingerprint, Fingerprinter};
use urlseen_engine::item::{Identity, Options, Outline, OwnedRequest, Reader};

/// Another item, and its difference from the explained item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Spelling {
    /// Item in a form that a crawler may push.
    pub item: String,
    /// Difference from the explained item.
    pub differs: &'static str,
}

/// Finds items with the same fingerprint as `item`, and similar items with another fingerprint. The
/// fingerprint of each returned item has been computed.
pub(super) fn find(
    item: &[u8],
    outline: &Outline,
    options: Options,
) -> (Vec<Spelling>, Vec<Spelling>) {
    // Rules and scores are switched off, because each of them can make the reader return no
    // fingerprint for an item.
    let mut reader = Reader::new(Options { pass: &[], drop: &[], scored: false, ..options });
    let mut fingerprinter = Fingerprinter::new(options.fingerprint);
    let (own, candidates, mut others) = match (&outline.given, &outline.request) {
        (Some(given), _) => (given.clone(), of_given(given), Vec::new()),
        (None, Some(request)) => match fingerprinter.canonical(&request.as_request()) {
            Ok(url) => {
                let (same, others) = (same(request, url), others(request, url));
                (fingerprinter.finish(&request.as_request()), same, others)
            }
            Err(_) => return (Vec::new(), Vec::new()),
        },
        (None, None) => return (Vec::new(), Vec::new()),
    };
    let mut fingerprint = |spelling: &Spelling| match reader.read(spelling.item.as_bytes()) {
        Ok(read) => match read.identity {
            Identity::Fingerprint(fingerprint) => Some(fingerprint),
            Identity::Unfiltered | Identity::Dropped(_) => None,
        },
        Err(_) => None,
    };
    let mut same: Vec<Spelling> = Vec::new();
    for spelling in candidates {
        let is_new = spelling.item.as_bytes() != item
            && same.iter().all(|other| other.item != spelling.item);
        if is_new && fingerprint(&spelling).as_ref() == Some(&own) {
            same.push(spelling);
        }
    }
    // Rules `[[same]]` can make similar items equal.
    for spelling in std::mem::take(&mut others) {
        match fingerprint(&spelling) {
            Some(other) if other == own => same.push(spelling),
            Some(_) => others.push(spelling),
            None => {}
        }
    }
    (same, others)
}

fn of_given(given: &Fingerprint) -> Vec<Spelling> {
    let text = given.to_string();
    let spelling = |item, differs| Spelling { item, differs };
    vec![
        spelling(text.clone(), "the fingerprint alone"),
        spelling(text.to_ascii_uppercase(), "hex digits in upper case"),
        spelling(format!("{text}\tany payload"), "another payload after a tab"),
        spelling(
            json!({ "fingerprint": text, "url": "https://example.com/any" }).to_string(),
            "another URL beside the fingerprint",
        ),
    ]
}

/// Splits a canonical URL into four parts: origin, path, query and fragment.
fn cut(url: &str) -> (&str, &str, Option<&str>, &str) {
    let start = url.find("://").map_or(0, |at| at + 3);
    let path = url[start..].find(['/', '?', '#']).map_or(url.len(), |at| start + at);
    let fragment = url[path..].find('#').map_or(url.len(), |at| path + at);
    let query = url[path..fragment].find('?').map_or(fragment, |at| path + at);
    let fields = (query < fragment).then(|| &url[query + 1..fragment]);
    (&url[..path], &url[path..query], fields, &url[fragment..])
}

/// Returns spellings that may have the same fingerprint as a request whose canonical URL is `url`.
/// The caller computes their fingerprints to make sure.
fn same(request: &OwnedRequest, url: &str) -> Vec<Spelling> {
    let (origin, path, query, fragment) = cut(url);
    let (scheme, authority) = origin.split_once("://").unwrap_or((origin, ""));
    let with_query = |query: &str| format!("{origin}{path}?{query}{fragment}");
    let tail = query.map_or_else(|| fragment.to_owned(), |query| format!("?{query}{fragment}"));
    let reversed = |query: &str| query.split('&').rev().collect::<Vec<_>>().join("&");
    let letter = path.rfind(|letter: char| letter.is_ascii_alphabetic());
    let escaped = |at: usize| {
        let (before, letter, after) = (&path[..at], path.as_bytes()[at], &path[at + 1..]);
        format!("{origin}{before}%{letter:02X}{after}{tail}")
    };
    let upper = (scheme.to_ascii_uppercase(), upper_host(authority));
    let urls = [
        (Some(url.to_owned()), "the canonical URL itself"),
        (Some(format!("{}://{authority}{path}{tail}", upper.0)), "case of the scheme"),
        (Some(format!("{scheme}://{}{path}{tail}", upper.1)), "case of the host"),
        (Some(format!("{origin}/.{path}{tail}")), "a dot segment"),
        (
            query.filter(|query| query.contains('&')).map(|query| with_query(&reversed(query))),
            "the order of the query's fields",
        ),
        (query.map(|query| with_query(&format!("{query}&"))), "an empty field of the query"),
        (
            query.and_then(|query| query.strip_suffix('=')).map(with_query),
            "a blank value without its =",
        ),
        ((path == "/").then(|| format!("{origin}{tail}")), "no path"),
        (letter.map(escaped), "a letter of the path escaped"),
        (fragment.is_empty().then(|| format!("{url}#fragment")), "a fragment"),
    ];
    let lower = request.method.to_lowercase();
    let rest = [spell(request, &lower, url, "case of the method"), dressed(request, url)];
    spelled(request, urls).chain(rest).collect()
}

/// Returns spellings that look like a request whose canonical URL is `url`, but usually have
/// another fingerprint. The caller computes their fingerprints to make sure.
fn others(request: &OwnedRequest, url: &str) -> Vec<Spelling> {
    let (origin, path, query, fragment) = cut(url);
    let (scheme, authority) = origin.split_once("://").unwrap_or((origin, ""));
    let tail = query.map_or_else(|| fragment.to_owned(), |query| format!("?{query}{fragment}"));
    let slashed = match path.strip_suffix('/') {
        Some("") => None,
        Some(path) => Some(format!("{origin}{path}{tail}")),
        None => Some(format!("{origin}{path}/{tail}")),
    };
    let default = match scheme {
        "http" => Some((80, "https")),
        "https" => Some((443, "http")),
        _ => None,
    };
    let www = match authority.strip_prefix("www.") {
        Some(rest) => rest.to_owned(),
        None => format!("www.{authority}"),
    };
    let has_lower = path.bytes().any(|byte| byte.is_ascii_lowercase());
    let urls = [
        (
            default.map(|(port, _)| format!("{scheme}://{authority}:{port}{path}{tail}")),
            "the default port, written out",
        ),
        (default.map(|(_, other)| format!("{other}://{authority}{path}{tail}")), "the scheme"),
        (default.map(|_| format!("{scheme}://{www}{path}{tail}")), "www."),
        (slashed, "a slash at the end of the path"),
        (
            has_lower.then(|| format!("{origin}{}{tail}", path.to_ascii_uppercase())),
            "case of the path",
        ),
    ];
    let method = if request.method.eq_ignore_ascii_case("GET") { "POST" } else { "GET" };
    spelled(request, urls).chain([spell(request, method, url, "the method")]).collect()
}

/// Returns one spelling for each of these URLs: the request with this URL, and the difference from
/// the explained item.
fn spelled<const URLS: usize>(
    request: &OwnedRequest,
    urls: [(Option<String>, &'static str); URLS],
) -> impl Iterator<Item = Spelling> {
    let urls = urls.into_iter().filter_map(|(url, differs)| Some((url?, differs)));
    urls.map(|(url, differs)| spell(request, &request.method, &url, differs))
}

/// Returns an authority with its host in upper case, and its user info unchanged.
fn upper_host(authority: &str) -> String {
    let host = authority.rfind('@').map_or(0, |at| at + 1);
    authority[..host].to_owned() + &authority[host..].to_ascii_uppercase()
}

/// Returns an item for the request with another method and URL. The item is a bare URL, if that
/// describes the request completely.
fn spell(request: &OwnedRequest, method: &str, url: &str, differs: &'static str) -> Spelling {
    if method == "GET" && request.body.is_empty() && !request.verbatim_url {
        return Spelling { item: url.to_owned(), differs };
    }
    Spelling { item: object(request, method, url).to_string(), differs }
}

/// Returns an item for the request with additional parts that do not affect its fingerprint, such
/// as headers.
fn dressed(request: &OwnedRequest, url: &str) -> Spelling {
    let mut object = object(request, &request.method, url);
    object["headers"] = json!({ "Cookie": "a=b", "User-Agent": "any" });
    object["meta"]["depth"] = json!(3);
    object["priority"] = json!(10);
    object["callback"] = json!("parse_page");
    Spelling { item: object.to_string(), differs: "headers, cookies, meta, priority, callback" }
}

fn object(request: &OwnedRequest, method: &str, url: &str) -> serde_json::Value {
    use base64::Engine;
    use base64::prelude::BASE64_STANDARD;
    let mut object = json!({ "url": url });
    if method != "GET" {
        object["method"] = json!(method);
    }
    match std::str::from_utf8(&request.body) {
        Ok("") => {}
        Ok(body) => object["body"] = json!(body),
        Err(_) => object["body_base64"] = json!(BASE64_STANDARD.encode(&request.body)),
    }
    if request.verbatim_url {
        object["meta"] = json!({ "verbatim_url": true });
    }
    object
}
