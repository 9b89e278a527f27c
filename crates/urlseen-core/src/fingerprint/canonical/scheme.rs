//! Scheme of a URL, and the rules that depend on the scheme.

use super::bytes::SCHEME;

/// Scheme of a URL as written; empty if the URL has no scheme.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scheme<'a>(&'a str);

/// Special schemes of the WHATWG URL standard. In URLs with these schemes, a `\` has the meaning of
/// a `/`.
const SPECIAL: [&str; 6] = ["http", "https", "ftp", "file", "ws", "wss"];

/// `uses_netloc` of Python's `urllib.parse`: schemes whose URLs usually have an authority. With
/// these schemes, a URL that has the path `/a` and no authority is written `scheme:///a`.
const WITH_AUTHORITY: [&str; 25] = [
    "ftp", "http", "gopher", "nntp", "telnet", "imap", "wais", "file", "mms", "https", "shttp",
    "snews", "prospero", "rtsp", "rtsps", "rtspu", "rsync", "svn", "svn+ssh", "sftp", "nfs", "git",
    "git+ssh", "ws", "wss",
];

/// `uses_params` of Python's `urllib.parse`: schemes whose last path segment may have `;`
/// parameters.
const WITH_PARAMETERS: [&str; 16] = [
    "", "ftp", "hdl", "prospero", "http", "imap", "https", "shttp", "rtsp", "rtsps", "rtspu",
    "sip", "sips", "mms", "sftp", "tel",
];

impl<'a> Scheme<'a> {
    /// Splits `url` into its scheme and the text after the colon. Without a scheme, that text is
    /// the whole URL.
    pub(super) fn split(url: &'a str) -> (Self, &'a str) {
        let length = SCHEME.run(url.as_bytes());
        let starts_with_letter = url.starts_with(|first: char| first.is_ascii_alphabetic());
        match url[length..].strip_prefix(':') {
            Some(rest) if starts_with_letter => (Self(&url[..length]), rest),
            _ => (Self(""), url),
        }
    }

    /// Returns the scheme as written.
    pub(super) fn text(self) -> &'a str {
        self.0
    }

    pub(super) fn is_special(self) -> bool {
        self.is_one_of(&SPECIAL)
    }

    pub(super) fn has_authority(self) -> bool {
        self.is_one_of(&WITH_AUTHORITY)
    }

    pub(super) fn has_parameters(self) -> bool {
        self.is_one_of(&WITH_PARAMETERS)
    }

    fn is_one_of(self, schemes: &[&str]) -> bool {
        schemes.iter().any(|scheme| scheme.eq_ignore_ascii_case(self.0))
    }

    /// Appends the scheme in lower case and a colon. If the scheme is empty, appends nothing.
    pub(super) fn push(self, out: &mut String) {
        if !self.0.is_empty() {
            let start = out.len();
            out.push_str(self.0);
            out[start..].make_ascii_lowercase();
            out.push(':');
        }
    }
}
