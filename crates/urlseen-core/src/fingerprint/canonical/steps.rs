//! Trace of the steps that make a URL canonical, as an explanation for people.
//!
//! Batches never run this code. The trace applies the parts of [`push_request_url`](super) one
//! after the other, and writes the URL after each part.

use super::bytes::{SAFE, SAFE_SPECIAL_QUERY, push_quoted};
use super::query::Field;
use super::scheme::Scheme;
use super::split::{self, UrlTail};
use super::{
    CanonicalizeError, Fragments, Pass, Rule, UrlPart, authority, is_absolute, path, query,
};

/// Change that one rule made to a URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Function of w3lib that made the change.
    pub pass: Pass,
    /// Rule that required the change.
    pub rule: Rule,
    /// URL before the change.
    pub before: String,
    /// URL after the change by the rule.
    pub after: String,
}

/// Trace of a URL through all rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    /// All changes, in order. For a refused URL, the changes before the refusal.
    pub steps: Vec<Step>,
    /// Canonical form of the URL, or the reason for its refusal.
    pub outcome: Result<String, CanonicalizeError>,
}

/// Traces the work of [`push_request_url`](super::push_request_url) on a request's URL.
pub fn trace(url: &str, fragments: Fragments) -> Trace {
    let mut steps = Vec::new();
    let outcome = pass(Pass::Safe, url, fragments, &mut steps).and_then(|safe| {
        if !is_absolute(&safe) {
            return Err(CanonicalizeError::NotAbsolute);
        }
        pass(Pass::Canonical, &safe, fragments, &mut steps)
    });
    Trace { steps, outcome }
}

/// Traces the work of `push_canonical_url` on a URL that was never made safe.
pub fn trace_verbatim(url: &str, fragments: Fragments) -> Trace {
    let mut steps = Vec::new();
    let outcome = pass(Pass::Canonical, url, fragments, &mut steps);
    Trace { steps, outcome }
}

/// Returns the parts of a URL as written, in order and without delimiters. A missing part is
/// `None`. The path includes its `;` parameters.
pub fn parts(url: &str) -> [(UrlPart, Option<String>); 7] {
    let Pieces { scheme, user_info, host, port, path, parameters, query, fragment, .. } =
        Pieces::of(url);
    let path = match parameters {
        Some(parameters) => format!("{path};{parameters}"),
        None => path,
    };
    [
        (UrlPart::Scheme, scheme),
        (UrlPart::UserInfo, user_info),
        (UrlPart::Host, Some(host)),
        (UrlPart::Port, port),
        (UrlPart::Path, Some(path)),
        (UrlPart::Query, query),
        (UrlPart::Fragment, fragment),
    ]
}

/// Parts of a URL, as written or as changed so far.
#[derive(Debug)]
struct Pieces {
    scheme: Option<String>,
    has_slashes: bool,
    user_info: Option<String>,
    /// Host with its brackets.
    host: String,
    port: Option<String>,
    path: String,
    parameters: Option<String>,
    query: Option<String>,
    fragment: Option<String>,
}

impl Pieces {
    fn of(url: &str) -> Self {
        let (scheme, rest) = Scheme::split(url);
        let (authority, has_slashes, rest) = match rest.strip_prefix("//") {
            Some(rest) => {
                let (authority, rest) =
                    rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
                (authority, true, rest)
            }
            None => ("", false, rest),
        };
        let (user_info, host_and_port) = authority::split_user_info(authority);
        let end = match (host_and_port.find(']'), authority.contains('[')) {
            (Some(end), true) => end + 1,
            (None, true) => host_and_port.len(),
            (_, false) => host_and_port.find(':').unwrap_or(host_and_port.len()),
        };
        let (host, port) = host_and_port.split_at(end);
        let UrlTail { path, .. } = UrlTail::split(rest);
        let (query, fragment) = match rest[path.len()..].split_once('#') {
            Some((query, fragment)) => (query, Some(fragment)),
            None => (&rest[path.len()..], None),
        };
        let own = |text: &str| Some(text.to_owned());
        Self {
            scheme: if scheme.is_empty() { None } else { own(&url[..scheme.len()]) },
            has_slashes,
            user_info: user_info.and_then(own),
            host: host.to_owned(),
            port: port.strip_prefix(':').and_then(own),
            path: path.to_owned(),
            parameters: None,
            query: query.strip_prefix('?').and_then(own),
            fragment: fragment.and_then(own),
        }
    }

    /// Joins the parts to a URL.
    fn write(&self) -> String {
        let mut url = String::new();
        let mut push = |before: &str, text: &Option<String>, behind: &str| {
            if let Some(text) = text {
                url.extend([before, text, behind]);
            }
        };
        push("", &self.scheme, ":");
        push(if self.has_slashes { "//" } else { "" }, &Some(String::new()), "");
        push("", &self.user_info, "@");
        push("", &Some(self.host.clone()), "");
        push(":", &self.port, "");
        push("", &Some(self.path.clone()), "");
        push(";", &self.parameters, "");
        push("?", &self.query, "");
        push("#", &self.fragment, "");
        url
    }
}

/// Recorder of the changes that one function of w3lib makes to a URL.
struct StepWalk<'a> {
    pass: Pass,
    pieces: Pieces,
    steps: &'a mut Vec<Step>,
}

impl StepWalk<'_> {
    /// Applies a rule, and records the change if there is one.
    fn apply(&mut self, rule: Rule, change: impl FnOnce(&mut Pieces)) {
        let before = self.pieces.write();
        change(&mut self.pieces);
        note(self.steps, self.pass, rule, before, self.pieces.write());
    }
}

fn note(steps: &mut Vec<Step>, pass: Pass, rule: Rule, before: String, after: String) {
    if before != after {
        steps.push(Step { pass, rule, before, after });
    }
}

/// Makes a URL safe or canonical, and records the changes.
fn pass(
    pass: Pass,
    url: &str,
    fragments: Fragments,
    steps: &mut Vec<Step>,
) -> Result<String, CanonicalizeError> {
    let url = clean(pass, url, steps);
    let checked = split::split(&url)?;
    let (scheme, tail) = (checked.scheme, checked.tail);
    let (host, port) = authority::host_and_port(checked.authority);
    let mut walk = StepWalk { pass, pieces: Pieces::of(&url), steps };
    walk.apply(Rule::SchemeCase, |it| {
        it.scheme = it.scheme.as_ref().map(|scheme| scheme.to_ascii_lowercase());
    });
    walk.apply(Rule::UserInfo, |it| {
        it.user_info =
            it.user_info.as_ref().map(|raw| written(|out| authority::push_user_info(raw, out)));
    });
    walk.host(host)?;
    walk.port(port)?;
    match pass {
        Pass::Safe => {
            walk.apply(Rule::PathEscaped, |it| it.path = quoted(&it.path));
            let is_needed = !tail.query.is_empty() && scheme.is_special();
            walk.apply(Rule::EmptyPath, |it| {
                if it.path.is_empty() && is_needed {
                    it.path.push('/');
                }
            });
        }
        Pass::Canonical => walk.path(scheme),
    }
    walk.apply(Rule::Slashes, |it| {
        let has_authority = it.user_info.is_some() || !it.host.is_empty() || it.port.is_some();
        it.has_slashes = has_authority
            || it.path.starts_with("//")
            || (it.path.is_empty() || it.path.starts_with('/')) && scheme.has_authority();
    });
    walk.apply(Rule::EmptyParameters, |it| empty_goes(&mut it.parameters));
    walk.apply(Rule::Parameters, |it| {
        it.parameters = it.parameters.as_deref().map(quoted);
    });
    walk.apply(Rule::EmptyQuery, |it| empty_goes(&mut it.query));
    match pass {
        Pass::Safe => walk.apply(Rule::QueryEscaped, |it| {
            let safe = if scheme.is_special() { &SAFE_SPECIAL_QUERY } else { &SAFE };
            let escaped = |raw: &String| written(|out| push_quoted(raw, safe, out));
            it.query = it.query.as_ref().map(escaped);
        }),
        Pass::Canonical => walk.query(),
    }
    walk.apply(Rule::EmptyFragment, |it| empty_goes(&mut it.fragment));
    if pass == Pass::Canonical && fragments == Fragments::Drop {
        walk.apply(Rule::FragmentDropped, |it| it.fragment = None);
    }
    walk.apply(Rule::FragmentEscaped, |it| it.fragment = it.fragment.as_deref().map(quoted));
    Ok(walk.pieces.write())
}

/// Applies the steps of [`split::cleaned`] one by one.
fn clean(pass: Pass, url: &str, steps: &mut Vec<Step>) -> String {
    let trimmed = url.trim_matches(|edge: char| edge <= ' ').to_owned();
    note(steps, pass, Rule::Edges, url.to_owned(), trimmed.clone());
    let joined = trimmed.replace(['\t', '\n', '\r'], "");
    note(steps, pass, Rule::Breaks, trimmed, joined.clone());
    let cleaned = split::cleaned(&joined, &mut String::new()).to_owned();
    note(steps, pass, Rule::Backslashes, joined, cleaned.clone());
    cleaned
}

impl StepWalk<'_> {
    /// Rewrites the host. `host` is the host without its brackets.
    fn host(&mut self, host: &str) -> Result<(), CanonicalizeError> {
        self.apply(Rule::HostCase, |it| {
            let end = it.host.find('%').unwrap_or(it.host.len());
            it.host = it.host[..end].to_lowercase() + &it.host[end..];
        });
        let mut safe = String::new();
        authority::push_host(host, &mut safe)?;
        let rule = if host.is_ascii() { Rule::Brackets } else { Rule::Idna };
        self.apply(rule, |it| it.host.clone_from(&safe));
        if self.pass == Pass::Canonical {
            self.apply(Rule::HostCase, |it| it.host = it.host.to_lowercase());
            self.apply(Rule::Ipv6, |it| {
                if let Some(short) = authority::shortened(&it.host) {
                    it.host = short;
                }
            });
        }
        Ok(())
    }

    fn port(&mut self, port: &str) -> Result<(), CanonicalizeError> {
        if port.is_empty() {
            self.apply(Rule::EmptyPort, |it| it.port = None);
            return Ok(());
        }
        let mut number = String::new();
        authority::push_port(port, &mut number)?;
        self.apply(Rule::Port, |it| it.port = Some(number));
        Ok(())
    }

    fn path(&mut self, scheme: Scheme<'_>) {
        let raw = self.pieces.path.clone();
        let (raw, parameters) =
            if scheme.has_parameters() { path::split_parameters(&raw) } else { (raw.as_str(), "") };
        let has_parameters = raw.len() < self.pieces.path.len();
        raw.clone_into(&mut self.pieces.path);
        self.pieces.parameters = has_parameters.then(|| parameters.to_owned());
        let resolved = written(|out| path::push(raw, &mut String::new(), out));
        self.apply(Rule::PathDecoded, |it| {
            // Each segment is converted by itself, so that this step does not resolve dot segments.
            let segment = |segment: &str| match segment {
                "" => String::new(),
                segment => written(|out| path::push(segment, &mut String::new(), out)),
            };
            it.path = raw.split('/').map(segment).collect::<Vec<_>>().join("/");
        });
        let rule = if raw.is_empty() { Rule::EmptyPath } else { Rule::DotSegments };
        self.apply(rule, |it| it.path = resolved);
    }

    fn query(&mut self) {
        let Some(raw) = self.pieces.query.clone() else { return };
        let fields: Vec<&str> = raw.split('&').filter(|field| !field.is_empty()).collect();
        let joined = |fields: Vec<String>| (!fields.is_empty()).then(|| fields.join("&"));
        let own = |field: &&str| (*field).to_owned();
        self.apply(Rule::EmptyFields, |it| it.query = joined(fields.iter().map(own).collect()));
        self.apply(Rule::BlankValues, |it| {
            let kept =
                |field: &&str| if field.contains('=') { own(field) } else { format!("{field}=") };
            it.query = joined(fields.iter().map(kept).collect());
        });
        self.apply(Rule::QueryDecoded, |it| {
            let field = |field: &&str| canonical_query(field).unwrap_or_default();
            it.query = joined(fields.iter().map(field).collect());
        });
        self.apply(Rule::QuerySorted, |it| it.query = canonical_query(&raw));
    }
}

/// Returns the canonical form of a query or of one field, without its `?`. Returns `None` if
/// nothing is left.
fn canonical_query(raw: &str) -> Option<String> {
    let (mut fields, mut out) = (Vec::<Field>::new(), String::new());
    query::push(raw, &mut fields, &mut String::new(), &mut out);
    out.strip_prefix('?').map(str::to_owned)
}

fn empty_goes(part: &mut Option<String>) {
    if part.as_ref().is_some_and(String::is_empty) {
        *part = None;
    }
}

fn quoted(raw: &str) -> String {
    written(|out| push_quoted(raw, &SAFE, out))
}

fn written(push: impl FnOnce(&mut String)) -> String {
    let mut out = String::new();
    push(&mut out);
    out
}
