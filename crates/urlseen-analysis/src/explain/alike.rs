//! Other spellings of an item: some have the same fingerprint, others only look similar.

use serde::Serialize;
use serde_json::json;

use urlseen_core::fingerprint::{Fingerprint, Fingerprinter};
use urlseen_engine::item::{Identity, Options, Outline, OwnedRequest, Reader};

/// Another item, and its difference from the explained one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Spelling {
    /// The item, as it would be discovered.
    pub item: String,
    /// Difference from the explained item.
    pub differs: &'static str,
}

/// Finds items with the same fingerprint as `item`, and similar items with another one. Each
/// fingerprint has been computed.
pub(super) fn find(
    item: &[u8],
    outline: &Outline,
    options: Options,
) -> (Vec<Spelling>, Vec<Spelling>) {
    // A rule, or `dont_filter`, would hide the fingerprint.
    let mut reader = Reader::new(Options { pass: &[], scored: false, ..options });
    let (candidates, looks_alike) = match (&outline.given, &outline.request) {
        (Some(given), _) => (of_given(given), Vec::new()),
        (None, Some(request)) => of_request(request, options),
        (None, None) => return (Vec::new(), Vec::new()),
    };
    let own = match (&outline.given, &outline.request) {
        (Some(given), _) => Some(given.clone()),
        (None, Some(request)) => Fingerprinter::new(options.algorithm, options.keep_fragments)
            .fingerprint(&request.as_request())
            .ok(),
        (None, None) => None,
    };
    let Some(own) = own else { return (Vec::new(), Vec::new()) };
    let mut fingerprint = |spelling: &Spelling| match reader.read(spelling.item.as_bytes()) {
        Ok(read) => match read.identity {
            Identity::Fingerprint(fingerprint) => Some(fingerprint),
            Identity::Unfiltered => None,
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
    let mut others = looks_alike;
    others.retain(|spelling| fingerprint(spelling).is_some_and(|other| other != own));
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

/// Cuts a canonical URL before the path, before the `?`, and before the `#`.
fn cut(url: &str) -> (&str, &str, Option<&str>, &str) {
    let start = url.find("://").map_or(0, |at| at + 3);
    let path = url[start..].find(['/', '?', '#']).map_or(url.len(), |at| start + at);
    let fragment = url[path..].find('#').map_or(url.len(), |at| path + at);
    let query = url[path..fragment].find('?').map_or(fragment, |at| path + at);
    let fields = (query < fragment).then(|| &url[query + 1..fragment]);
    (&url[..path], &url[path..query], fields, &url[fragment..])
}

/// Returns items that have a request's fingerprint, and others that only look similar.
fn of_request(request: &OwnedRequest, options: Options) -> (Vec<Spelling>, Vec<Spelling>) {
    let mut fingerprinter = Fingerprinter::new(options.algorithm, options.keep_fragments);
    match fingerprinter.canonical(&request.as_request()) {
        Ok(url) => (same(request, url), others(request, url)),
        Err(_) => (Vec::new(), Vec::new()),
    }
}

/// Returns spellings that may have the fingerprint of a request whose canonical URL is `url`.
fn same(request: &OwnedRequest, url: &str) -> Vec<Spelling> {
    let (origin, path, query, fragment) = cut(url);
    let behind = |query: Option<&str>| match query {
        Some(query) => format!("?{query}{fragment}"),
        None => fragment.to_owned(),
    };
    let tail = behind(query);
    let fields: Vec<&str> = query.map(|query| query.split('&').collect()).unwrap_or_default();
    let (scheme, authority) = origin.split_once("://").unwrap_or((origin, ""));
    let with = |url: String, differs| spell(request, &request.method, &url, differs);

    let mut same = vec![
        with(url.to_owned(), "the canonical URL itself"),
        with(
            format!("{}://{authority}{path}{tail}", scheme.to_ascii_uppercase()),
            "case of the scheme",
        ),
        with(format!("{scheme}://{}{path}{tail}", upper_host(authority)), "case of the host"),
        with(format!("{origin}/.{path}{tail}"), "a dot segment"),
    ];
    if fields.len() > 1 {
        let reversed: Vec<&str> = fields.iter().rev().copied().collect();
        same.push(with(
            format!("{origin}{path}{}", behind(Some(&reversed.join("&")))),
            "the order of the query's fields",
        ));
    }
    if let Some(query) = query {
        let with_empty = behind(Some(&format!("{query}&")));
        same.push(with(format!("{origin}{path}{with_empty}"), "an empty field of the query"));
    }
    if let Some(blank) = query.and_then(|query| query.strip_suffix('=')) {
        let tail = behind(Some(blank));
        same.push(with(format!("{origin}{path}{tail}"), "a blank value without its ="));
    }
    if path == "/" {
        same.push(with(format!("{origin}{tail}"), "no path"));
    }
    if let Some(at) = path.rfind(|letter: char| letter.is_ascii_alphabetic()) {
        let escaped = format!("{}%{:02X}{}", &path[..at], path.as_bytes()[at], &path[at + 1..]);
        same.push(with(format!("{origin}{escaped}{tail}"), "a letter of the path escaped"));
    }
    if fragment.is_empty() {
        same.push(with(format!("{url}#fragment"), "a fragment"));
    }
    let lower = request.method.to_lowercase();
    same.push(spell(request, &lower, url, "case of the method"));
    same.push(dressed(request, url));
    same
}

/// Returns spellings that only look like a request whose canonical URL is `url`.
fn others(request: &OwnedRequest, url: &str) -> Vec<Spelling> {
    let (origin, path, query, fragment) = cut(url);
    let (scheme, authority) = origin.split_once("://").unwrap_or((origin, ""));
    let tail = query.map_or_else(|| fragment.to_owned(), |query| format!("?{query}{fragment}"));
    let with = |url: String, differs| spell(request, &request.method, &url, differs);
    let slashed = match path.strip_suffix('/') {
        Some("") => None,
        Some(path) => Some(path.to_owned()),
        None => Some(format!("{path}/")),
    };
    let mut others = Vec::new();
    let default_port = match scheme {
        "http" => Some((80, "https")),
        "https" => Some((443, "http")),
        _ => None,
    };
    if let Some((port, other)) = default_port {
        let with_port = format!("{scheme}://{authority}:{port}{path}{tail}");
        others.push(with(with_port, "the default port, written out"));
        others.push(with(format!("{other}://{authority}{path}{tail}"), "the scheme"));
        let www = match authority.strip_prefix("www.") {
            Some(rest) => rest.to_owned(),
            None => format!("www.{authority}"),
        };
        others.push(with(format!("{scheme}://{www}{path}{tail}"), "www."));
    }
    if let Some(slashed) = slashed {
        others.push(with(format!("{origin}{slashed}{tail}"), "a slash at the end of the path"));
    }
    if path.bytes().any(|byte| byte.is_ascii_lowercase()) {
        let upper = path.to_ascii_uppercase();
        others.push(with(format!("{origin}{upper}{tail}"), "case of the path"));
    }
    let method = if request.method.eq_ignore_ascii_case("GET") { "POST" } else { "GET" };
    others.push(spell(request, method, url, "the method"));
    others
}

/// Returns an authority with its host in upper case, and its user info unchanged.
fn upper_host(authority: &str) -> String {
    let host = authority.rfind('@').map_or(0, |at| at + 1);
    authority[..host].to_owned() + &authority[host..].to_ascii_uppercase()
}

/// Returns the request with another method and URL. If a bare URL describes it completely, returns
/// that.
fn spell(request: &OwnedRequest, method: &str, url: &str, differs: &'static str) -> Spelling {
    if method == "GET" && request.body.is_empty() && !request.verbatim_url {
        return Spelling { item: url.to_owned(), differs };
    }
    Spelling { item: object(request, method, url).to_string(), differs }
}

/// Returns the request with all the parts that its fingerprint ignores.
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
