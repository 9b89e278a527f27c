//! Check of the host name in each request at `admin.listen`.
//!
//! An attacker can make the host name of a web page resolve to this machine (DNS rebinding). Then
//! the browser of a visitor lets the page read the endpoint's answers. But the page's requests
//! carry the host name of the page, so the endpoint recognises and refuses these requests.

use std::net::Ipv4Addr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::uri::Authority;
use axum::http::{StatusCode, Version, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::admin::printable::printable;
use crate::config::host_and_port;

/// Maximum width of a refused host name in the answer, in columns.
const SHOWN: usize = 100;

/// Allowed host names in addition to `localhost` and IP addresses, in lower case and without a
/// trailing dot.
#[derive(Debug, Clone)]
pub(super) struct Hosts(Arc<[String]>);

impl Hosts {
    pub(super) fn new<'a>(names: impl Iterator<Item = &'a str>) -> Self {
        Self(names.map(plain).collect())
    }

    /// Refuses a request for a host that is not allowed. Passes on all other requests.
    pub(super) async fn guard(State(hosts): State<Self>, request: Request, next: Next) -> Response {
        match hosts.check(&request) {
            Ok(()) => next.run(request).await,
            Err((status, reason)) => (status, format!("{reason}\n")).into_response(),
        }
    }

    fn check(&self, request: &Request) -> Result<(), (StatusCode, String)> {
        let bad = |reason: &str| (StatusCode::BAD_REQUEST, reason.to_owned());
        let fields: Vec<_> = request.headers().get_all(header::HOST).iter().take(2).collect();
        let field = match fields[..] {
            [] if request.version() == Version::HTTP_10 => None,
            [field] => Some(field.to_str().map_err(|_| bad("the Host header is not ASCII"))?),
            [] => return Err(bad("the request has no Host header")),
            _ => return Err(bad("the request has more than one Host header")),
        };
        // The authority of an absolute request target takes precedence over the header (RFC 9112,
        // 3.2.2).
        let authority = request.uri().authority().map(Authority::as_str);
        match authority.or(field) {
            // The request names no host. Browsers always send a host, so no web page made it.
            None => Ok(()),
            Some(authority) => match host_and_port(authority) {
                None => Err(bad("the host of the request cannot be read: write host or host:port")),
                Some((host, _)) if self.has(host) => Ok(()),
                Some((host, _)) => {
                    let host = printable(host.as_bytes(), Some(SHOWN));
                    let reason = format!(
                        "this endpoint does not answer requests for the host \"{host}\": use an IP \
                         address or localhost, or add the name to admin.hosts"
                    );
                    Err((StatusCode::MISDIRECTED_REQUEST, reason))
                }
            },
        }
    }

    /// Returns true if requests for this host are allowed. IP addresses need no name server, and
    /// names below `localhost` stay on the machine (RFC 6761). So an attacker cannot make such a
    /// host stand for another address.
    fn has(&self, host: &str) -> bool {
        let name = plain(host);
        host.starts_with('[')
            || name.parse::<Ipv4Addr>().is_ok()
            || name == "localhost"
            || name.ends_with(".localhost")
            || self.0.contains(&name)
    }
}

/// Normalises a name: removes a trailing dot, and makes letters lower case.
fn plain(name: &str) -> String {
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_compared_whole() {
        let hosts = Hosts::new(["Metrics.Example.", "box7"].into_iter());
        for host in [
            "localhost",
            "LOCALHOST.",
            "a.localhost",
            "127.0.0.1",
            "192.0.2.7",
            "127.0.0.1.",
            "[::1]",
            "metrics.example",
            "METRICS.example.",
            "box7",
        ] {
            assert!(hosts.has(host), "{host}");
        }
        for host in [
            "",
            ".",
            "evil.example",
            "localhost.evil.example",
            "evillocalhost",
            "localhost..",
            "127.0.0.1.evil.example",
            "0x7f000001",
            "2130706433",
            "127.1",
            "a.metrics.example",
            "box7.evil.example",
            "b\u{f6}x7",
        ] {
            assert!(!hosts.has(host), "{host}");
        }
    }
}
