//! Folds: differences between URLs that a rule ignores.

use super::SameRule;
use crate::canonical::{decoded, idna};
use crate::choice::{Choice, choices};

/// Ports that `http` and `https` use by default.
const DEFAULT_PORTS: [&str; 2] = [":80", ":443"];

/// Start of the name of an index page, in lower case, and the endings that it may have.
const INDEX: [&str; 2] = ["index.", "default."];
const INDEX_ENDINGS: [&str; 13] = [
    "asp", "aspx", "cfm", "cgi", "htm", "html", "jsp", "jspx", "php", "php5", "pl", "shtml",
    "xhtml",
];

choices! {
    /// Difference between URLs that a rule ignores.
    Fold {
        /// `http` and `https`, and the ports 80 and 443 written out.
        Scheme = "scheme",
        /// User name and password before the host.
        Userinfo = "userinfo",
        /// Host with percent-escapes, as in `%65xample.com`.
        EncodedHost = "encoded-host",
        /// Dots at the end of the host, as in `example.com.`.
        TrailingDot = "trailing-dot",
        /// `www.` before the host.
        Www = "www",
        /// Parameters of the path's segments, such as `;jsessionid=1`.
        Matrix = "matrix",
        /// Upper and lower case of ASCII letters in the path.
        Case = "case",
        /// Several slashes after each other in the path.
        DoubleSlashes = "double-slashes",
        /// Name of an index page at the end of the path, such as `index.html`.
        Index = "index",
        /// Slashes at the end of the path.
        TrailingSlash = "trailing-slash",
    }
}

impl Fold {
    /// Iterates over all folds, in the order in which they are applied.
    pub fn all() -> impl Iterator<Item = Self> {
        <Self as Choice>::ALL.iter().map(|&(_, fold)| fold)
    }

    /// Returns the effect on a URL, in words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Scheme => "https becomes http, without the ports 80 and 443",
            Self::Userinfo => "user name and password are dropped",
            Self::EncodedHost => "the host is decoded",
            Self::TrailingDot => "dots at the end of the host are dropped",
            Self::Www => "www. before the host is dropped",
            Self::Matrix => "parameters in the path are dropped",
            Self::Case => "letters of the path become lower case",
            Self::DoubleSlashes => "slashes after a slash of the path are dropped",
            Self::Index => "the name of an index page is dropped",
            Self::TrailingSlash => "slashes at the end of the path are dropped",
        }
    }
}

/// Set of the folds of one rule, or of several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Folds(u16);

impl Folds {
    pub(super) fn with(self, fold: Fold) -> Self {
        Self(self.0 | 1 << fold as u8)
    }

    pub(super) fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(super) fn have(self, fold: Fold) -> bool {
        self.0 & 1 << fold as u8 != 0
    }

    pub(super) fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(super) fn iter(self) -> impl Iterator<Item = Fold> {
        Fold::all().filter(move |&fold| self.have(fold))
    }
}

/// Canonical URL with `http` or `https`, cut into its parts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cut<'a> {
    /// True if the scheme is `https`.
    pub(super) is_https: bool,
    /// User, host and port, as they stand in the URL.
    pub(super) authority: &'a str,
    /// Path, with its first slash.
    pub(super) path: &'a str,
    /// Query without its `?`.
    pub(super) query: &'a str,
    /// Fragment with its `#`; empty if there is none.
    pub(super) fragment: &'a str,
}

impl<'a> Cut<'a> {
    /// Cuts a canonical URL. Returns `None` for another scheme than `http` and `https`, and without
    /// a host: in the form of w3lib 2.4, a path of such a URL may not begin with two slashes.
    pub(super) fn of(url: &'a str) -> Option<Self> {
        let rest = url.strip_prefix("http")?;
        let (is_https, rest) = match rest.strip_prefix('s') {
            Some(rest) => (true, rest),
            None => (false, rest),
        };
        let rest = rest.strip_prefix("://")?;
        let (rest, fragment) = rest.split_at(rest.find('#').unwrap_or(rest.len()));
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let url = Self { is_https, authority, path, query, fragment };
        Some(url).filter(|_| !authority.is_empty())
    }

    /// Writes the URL with these folds, and with the parameters that `rules` leave.
    pub(super) fn write<'r>(
        self,
        folds: Folds,
        rules: &(impl Iterator<Item = &'r SameRule> + Clone),
        out: &mut String,
    ) {
        out.clear();
        let is_https = self.is_https && !folds.have(Fold::Scheme);
        out.push_str(if is_https { "https://" } else { "http://" });
        push_authority(self.authority, folds, out);
        push_path(self.path, folds, |param| rules.clone().any(|it| it.is_session(param)), out);
        let removed = |field: &str| rules.clone().any(|it| it.removes(field));
        let (mut before, mut valueless) = ('?', "");
        for mut field in self.query.split('&').filter(|it| !it.is_empty() && !removed(it)) {
            if rules.clone().any(|it| it.ignores_value(field)) {
                field = field.find('=').map_or(field, |at| &field[..=at]);
                // The fields are sorted, so those with one name follow each other.
                if field == std::mem::replace(&mut valueless, field) {
                    continue;
                }
            }
            out.push(before);
            out.push_str(field);
            before = '&';
        }
        out.push_str(self.fragment);
    }
}

fn push_authority(authority: &str, folds: Folds, out: &mut String) {
    let at = authority.rfind('@').map_or(0, |at| at + 1);
    let (mut user, mut host) = authority.split_at(at);
    if folds.have(Fold::Scheme)
        && let Some(bare) = DEFAULT_PORTS.into_iter().find_map(|port| host.strip_suffix(port))
    {
        host = bare;
    }
    if folds.have(Fold::Userinfo) && !host.is_empty() {
        user = "";
    }
    let colon = host.rfind(':').filter(|&at| !host[at..].contains(']'));
    let (mut host, port) = host.split_at(colon.unwrap_or(host.len()));
    let decoded = if folds.have(Fold::EncodedHost) { decoded_host(host) } else { None };
    host = decoded.as_deref().unwrap_or(host);
    // A host that is not ASCII is one that IDNA refuses, perhaps because of its dots.
    if folds.have(Fold::TrailingDot) && host.is_ascii() {
        let name = host.trim_end_matches('.');
        host = if name.is_empty() { host } else { name };
    }
    if folds.have(Fold::Www) {
        // A name such as `www.com` keeps its `www.`.
        while let Some(rest) = host.strip_prefix("www.").filter(|rest| rest.contains('.')) {
            host = rest;
        }
    }
    out.push_str(user);
    out.push_str(host);
    out.push_str(port);
}

/// Returns a host without its percent-escapes, in its canonical form. Returns `None` if there are
/// none, or if they stand for no valid host.
fn decoded_host(host: &str) -> Option<String> {
    let bytes = host.contains('%').then(|| decoded(host).collect())?;
    let lower = String::from_utf8(bytes).ok()?.to_lowercase();
    // A host whose form depends on the version of w3lib stays as it is.
    let ascii =
        idna::encode(&lower, false).filter(|it| idna::encode(&lower, true).as_ref() == Some(it))?;
    let mut labels = ascii.strip_suffix('.').unwrap_or(&ascii).split('.');
    let is_plain =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte);
    let is_valid = labels.all(|label| !label.is_empty() && label.bytes().all(is_plain));
    is_valid.then_some(ascii)
}

/// Appends a path. `is_session` returns true for a parameter with a session id.
fn push_path(path: &str, folds: Folds, is_session: impl Fn(&str) -> bool, out: &mut String) {
    let start = out.len();
    if path.contains(';') {
        path.split_inclusive('/').for_each(|it| push_segment(it, folds, &is_session, out));
    } else {
        out.push_str(path);
    }
    if folds.have(Fold::Case) {
        let folded = lower_case(&out[start..]);
        out.truncate(start);
        out.push_str(&folded);
    }
    if folds.have(Fold::DoubleSlashes) {
        let single = out[start..].split('/').filter(|it| !it.is_empty()).collect::<Vec<_>>();
        let end = if out.ends_with('/') && !single.is_empty() { "/" } else { "" };
        let path = format!("/{}{end}", single.join("/"));
        out.replace_range(start.., &path);
    }
    // An index page can come to the end when a slash goes, and a slash when an index page goes.
    loop {
        let length = out.len();
        if folds.have(Fold::Index) {
            let name = out[start..].rfind('/').map_or(length, |slash| start + slash + 1);
            if is_index(&out[name..]) {
                out.truncate(name);
            }
        }
        if folds.have(Fold::TrailingSlash) {
            let path = out[start..].trim_end_matches('/');
            // Without its slash, a last segment such as `.;a` or `a;` would be another one.
            let kept = path.len() + usize::from(path.is_empty() || needs_slash(path));
            out.truncate(start + kept);
        }
        if out.len() == length {
            return;
        }
    }
}

/// Appends a segment of a path, with a slash at its end if it has one. If there is a session id, it
/// and empty parameters go.
fn push_segment(segment: &str, folds: Folds, is_session: impl Fn(&str) -> bool, out: &mut String) {
    let (bare, end) = segment.strip_suffix('/').map_or((segment, ""), |bare| (bare, "/"));
    let (name, params) = bare.split_once(';').unwrap_or((bare, ""));
    let changes = folds.have(Fold::Matrix) || params.split(';').any(&is_session);
    // Without its parameters, a dot segment would be resolved.
    if !changes || matches!(name, "." | "..") {
        return out.push_str(segment);
    }
    out.push_str(name);
    let goes = |param: &&str| folds.have(Fold::Matrix) || param.is_empty() || is_session(param);
    for param in params.split(';').filter(|param| !goes(param)) {
        out.push(';');
        out.push_str(param);
    }
    out.push_str(end);
}

/// Returns true if the last segment of a path needs a slash after it: without its parameters, it is
/// a dot segment, or its only parameter is empty.
fn needs_slash(path: &str) -> bool {
    let segment = path.rsplit('/').next().unwrap_or(path);
    matches!(segment.split_once(';'), Some(("." | "..", _) | (_, "")))
}

/// Converts letters to lower case, except for the digits of escapes. Canonical URLs have these in
/// upper case.
fn lower_case(path: &str) -> String {
    let mut escape = 0;
    let lower = path.chars().map(|letter| {
        if letter == '%' {
            escape = 3;
        }
        let is_digit = escape > 0;
        escape -= i32::from(is_digit);
        if is_digit { letter } else { letter.to_ascii_lowercase() }
    });
    lower.collect()
}

fn is_index(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    let ending = INDEX.into_iter().find_map(|start| lower.strip_prefix(start));
    ending.is_some_and(|ending| INDEX_ENDINGS.contains(&ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folded(folds: &[Fold], url: &str) -> String {
        let folds = folds.iter().fold(Folds::default(), |folds, &fold| folds.with(fold));
        let mut out = String::new();
        Cut::of(url).unwrap().write(folds, &std::iter::empty(), &mut out);
        out
    }

    #[test]
    fn each_fold_ignores_its_difference_and_no_other() {
        use Fold::{
            Case, DoubleSlashes, EncodedHost, Index, Matrix, Scheme, TrailingDot, TrailingSlash,
            Userinfo, Www,
        };
        for (folds, url, expected) in [
            (&[][..], "https://www.h.org:443/A/index.html;a?b=c#d", ""),
            (&[Scheme], "https://h:443/", "http://h/"),
            (&[Scheme], "https://h:80/", "http://h/"),
            (&[Scheme], "http://u@h:8080/", ""),
            (&[Userinfo], "http://u:p@h:8080/@", "http://h:8080/@"),
            (&[Userinfo], "http://u@/", ""),
            (&[TrailingDot], "http://u.@h..:8080/a.", "http://u.@h:8080/a."),
            (&[TrailingDot], "http://[::1]/", ""),
            (&[TrailingDot], "http://./", ""),
            (&[TrailingDot], "http://é../", ""),
            (&[TrailingDot, Www], "http://www.com./", "http://www.com/"),
            (
                &[EncodedHost],
                "http://u%41@%65x%2dample.com:80/%41",
                "http://u%41@ex-ample.com:80/%41",
            ),
            (&[EncodedHost], "http://b%c3%bccher.example/", "http://xn--bcher-kva.example/"),
            (&[EncodedHost], "http://a%2fb/", ""),
            (&[EncodedHost], "http://%e9.x/", ""),
            (&[EncodedHost], "http://a%2e%2eb/", ""),
            (&[EncodedHost], "http://%zz/", ""),
            (&[EncodedHost], "http://%2561/", ""),
            (&[EncodedHost, TrailingDot, Www], "http://ww%77%2eh.x%2e/", "http://h.x/"),
            (&[DoubleSlashes], "http://h//a///b//?c//d", "http://h/a/b/?c//d"),
            (&[DoubleSlashes], "http://h//", "http://h/"),
            (&[DoubleSlashes, Matrix], "http://h/;a/b", "http://h/b"),
            (&[Www], "http://u:p@www.www.h.org/", "http://u:p@h.org/"),
            (&[Www], "http://www.com/", ""),
            (&[Www], "http://www1.h.org/", ""),
            (&[Matrix], "http://h/a;b=1/c;jsessionid=2?d", "http://h/a/c?d"),
            (&[Matrix], "http://h/a/..;b/.;c", ""),
            (&[Case], "http://h/Ab%C3%A4/C?D=E#F", "http://h/ab%C3%A4/c?D=E#F"),
            (&[Index], "http://h/index.html", "http://h/"),
            (&[Index], "http://h/a/Default.ASPX?b", "http://h/a/?b"),
            (&[Index], "http://h/a/reindex.html", ""),
            (&[Index], "http://h/index.json", ""),
            (&[Index], "http://h/a/index.html/", ""),
            (&[TrailingSlash], "http://h/a//?b", "http://h/a?b"),
            (&[TrailingSlash], "http://h//", "http://h/"),
            (&[TrailingSlash], "http://h/.;a//", "http://h/.;a/"),
            (&[TrailingSlash], "http://h/a;//", "http://h/a;/"),
            (&[Index, TrailingSlash], "http://h/a/index.php/index.html/", "http://h/a"),
            (&[Matrix, Index], "http://h/index.html;a", "http://h/"),
        ] {
            let expected = if expected.is_empty() { url } else { expected };
            assert_eq!(folded(folds, url), expected, "{folds:?}");
            assert_eq!(folded(folds, expected), expected, "{folds:?}");
        }
        for url in ["ftp://h/", "httpsx://h/", "http:///;a/b"] {
            assert!(Cut::of(url).is_none(), "{url}");
        }
    }
}
