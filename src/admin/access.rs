//! Access to the requests at `admin.listen` that show the crawl: its state, and items.

use std::net::IpAddr;

use crate::config::Secret;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

/// Name of the scheme in the header `Authorization`.
const SCHEME: &str = "Bearer ";

/// Rule for requests that show the crawl.
#[derive(Debug, Clone)]
pub(super) enum Access {
    /// Every request is answered.
    Open,
    /// A request is answered if it has the token.
    Token(Secret),
    /// No request is answered.
    Closed,
}

impl Access {
    /// Returns the rule for an address: beyond loopback, a token is necessary.
    pub(super) fn at(address: IpAddr, token: Option<&Secret>) -> Self {
        match token {
            Some(token) => Self::Token(token.clone()),
            None if address.to_canonical().is_loopback() => Self::Open,
            None => Self::Closed,
        }
    }

    /// Returns the rule for the page, which shows nothing before it knows the token.
    pub(super) fn to_page(&self) -> Self {
        match self {
            Self::Open | Self::Token(_) => Self::Open,
            Self::Closed => Self::Closed,
        }
    }

    /// Refuses a request that this rule does not permit. Passes on all other requests.
    pub(super) async fn guard(
        State(access): State<Self>,
        request: Request,
        next: Next,
    ) -> Response {
        match access {
            Self::Open => next.run(request).await,
            Self::Token(token) if has_token(&request, &token) => next.run(request).await,
            Self::Token(_) => {
                let reason = "this request needs the token in URLSEEN_ADMIN_TOKEN: send the header \
                              Authorization: Bearer TOKEN\n";
                let scheme = HeaderValue::from_static("Bearer");
                let headers = [(header::WWW_AUTHENTICATE, scheme)];
                (StatusCode::UNAUTHORIZED, headers, reason).into_response()
            }
            Self::Closed => {
                let reason = "this address is not on loopback, and the daemon has no token: set \
                              URLSEEN_ADMIN_TOKEN in its environment, or use urlseen status on its \
                              machine\n";
                (StatusCode::FORBIDDEN, reason).into_response()
            }
        }
    }
}

fn has_token(request: &Request, token: &Secret) -> bool {
    let field = request.headers().get(header::AUTHORIZATION).map(HeaderValue::as_bytes);
    let parts = field.and_then(|field| field.split_at_checked(SCHEME.len()));
    parts.is_some_and(|(scheme, guess)| {
        scheme.eq_ignore_ascii_case(SCHEME.as_bytes()) && token.is(guess)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_is_open_without_a_token() {
        for (address, is_open) in [
            ("127.0.0.1", true),
            ("127.1.2.3", true),
            ("::1", true),
            ("::ffff:127.0.0.1", true),
            ("0.0.0.0", false),
            ("::", false),
            ("10.0.0.1", false),
            ("fe80::1", false),
            ("::ffff:10.0.0.1", false),
        ] {
            let access = Access::at(address.parse().unwrap(), None);
            assert_eq!(matches!(access, Access::Open), is_open, "{address}");
            assert_eq!(matches!(access.to_page(), Access::Open), is_open, "{address}");
        }
    }
}
