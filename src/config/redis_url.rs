//! Where Redis is, and the password that nobody gets to see.

use redis::IntoConnectionInfo;
use std::fmt;

/// A text that is never shown: `***` wherever it is formatted.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Hides `text`.
    pub fn new(text: String) -> Self {
        Self(text)
    }

    /// The text itself, for those it is meant for.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// The address of a Redis server, checked for syntax. Shown without user, password and query.
#[derive(Clone, PartialEq, Eq)]
pub struct RedisUrl {
    url: Secret,
    /// Goes before the one in the URL.
    password: Option<Secret>,
}

/// What a URL that [`RedisUrl::parse`] takes looks like.
pub(super) const ALLOWED: &str = "redis://[[user]:password@]host[:port][/database], the same with \
    rediss:// for TLS, or unix:///path/to/socket[?db=0]; in a password, characters such as / ? # @ \
    are written %2F %3F %23 %40";

impl RedisUrl {
    /// Checks a URL's syntax; `None` if it does not name a Redis server in a way that is
    /// [`ALLOWED`].
    pub(super) fn parse(text: &str) -> Option<Self> {
        let scheme = text.split_once("://")?.0;
        if !["redis", "rediss", "unix", "redis+unix"].contains(&scheme) {
            return None;
        }
        let info = text.into_connection_info().ok()?;
        // The parser takes databases below zero, which no server has.
        (info.redis_settings().db() >= 0)
            .then(|| Self { url: Secret::new(text.to_owned()), password: None })
    }

    /// The server on this machine, at the usual port.
    pub(super) fn local() -> Self {
        Self { url: Secret::new("redis://127.0.0.1:6379/0".to_owned()), password: None }
    }

    /// The same server with another password.
    #[must_use]
    pub fn with_password(mut self, password: Secret) -> Self {
        self.password = Some(password);
        self
    }

    /// The URL, and the password that goes before one in it; for those who connect.
    pub fn expose(&self) -> (&str, Option<&str>) {
        (self.url.expose(), self.password.as_ref().map(Secret::expose))
    }
}

impl fmt::Display for RedisUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&masked(self.url.expose()))
    }
}

impl fmt::Debug for RedisUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RedisUrl({self})")
    }
}

/// Whether a URL brings a password along, as far as one can tell of a malformed one.
pub(super) fn carries_password(text: &str) -> bool {
    match text.into_connection_info() {
        Ok(info) => info.redis_settings().password().is_some(),
        Err(_) => text.contains('@') || text.contains("pass"),
    }
}

/// A URL, or what was meant to be one, with everything replaced by `***` that might be a password:
/// what stands before the last `@`, the query (`unix:///socket?pass=…`), and what follows a `:`
/// without being a port (`redis://:password` with the host forgotten).
pub(super) fn masked(text: &str) -> String {
    let (scheme, rest) = match text.split_once("://") {
        Some((scheme, rest)) if scheme.bytes().all(is_scheme) => (format!("{scheme}://"), rest),
        _ => (String::new(), text),
    };
    let (user, server) = match rest.rsplit_once('@') {
        // An @ behind a ? may stand in a query's password as well as behind a URL's.
        Some((before, _)) if before.contains('?') => return format!("{scheme}***"),
        Some((_, server)) => ("***@", server),
        None => ("", rest),
    };
    let (address, query) = match server.split_once('?') {
        Some((address, _)) => (address, "?***"),
        None => (server, ""),
    };
    // Colons inside brackets are an IPv6 address's own.
    let v6_end = if address.starts_with('[') { address.find(']') } else { None };
    let host = v6_end.map_or(0, |bracket| bracket + 1);
    let port = address[host..].find(':').map(|colon| host + colon + 1);
    match port.filter(|port| !is_port_and_database(&address[*port..])) {
        Some(port) => format!("{scheme}{user}{}***{query}", &address[..port]),
        None => format!("{scheme}{user}{address}{query}"),
    }
}

fn is_scheme(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"+-.".contains(&byte)
}

/// Whether all there is are a port and perhaps a database, which are numbers.
fn is_port_and_database(text: &str) -> bool {
    let (port, database) = text.split_once('/').unwrap_or((text, ""));
    port.parse::<u16>().is_ok() && database.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn urls_of_every_form_are_taken() {
        for url in [
            "redis://127.0.0.1:6379/0",
            "redis://localhost",
            "redis://[::1]:6380/3",
            "redis://:secret@localhost",
            "rediss://user:secret@redis.example:6379/15",
            "unix:///run/redis/redis.sock",
            "redis+unix:///run/redis.sock?db=2&user=crawler&pass=secret",
            "redis://localhost/?protocol=resp3",
        ] {
            assert!(RedisUrl::parse(url).is_some(), "{url}");
        }
        for url in [
            "",
            "localhost",
            "localhost:6379",
            "http://localhost",
            "valkey://localhost",
            "redis:localhost",
            "redis:///0",
            "redis://localhost:port",
            "redis://localhost:99999",
            "redis://localhost/zero",
            "redis://localhost/-1",
            "redis://:sec/ret@localhost",
            "redis://localhost?protocol=9",
            "unix:///run/redis.sock?db=x",
            "unix://host/run/redis.sock",
        ] {
            assert!(RedisUrl::parse(url).is_none(), "{url}");
        }
    }

    #[test]
    fn the_password_set_apart_goes_first() {
        let url = RedisUrl::parse("redis://crawler:old@localhost/2").unwrap();
        let settings = |url: &RedisUrl| url.connection_info().unwrap().redis_settings().clone();
        assert_eq!(settings(&url).password(), Some("old"));
        let url = url.with_password(Secret::new("n/e@w".to_owned()));
        assert_eq!(settings(&url).password(), Some("n/e@w"));
        assert_eq!((settings(&url).username(), settings(&url).db()), (Some("crawler"), 2));
        assert!(RedisUrl::local().connection_info().is_ok());
    }

    /// Each holds `secret`, or pieces of one, where a password was meant to be.
    const WITH_PASSWORD: [&str; 21] = [
        "redis://:secret@localhost:6379/0",
        "redis://user:secret@localhost",
        "redis://user:sec@ret@localhost",
        "redis://user:sec/ret@localhost",
        "redis://user:sec?ret@localhost",
        "redis://user:sec#ret@localhost",
        "redis://user:sec:ret@localhost",
        "redis://user:secret@",
        "redis://:secret",
        "redis://user:secret/0",
        "redis://user:9/secret",
        "redis://user:sec]ret:9/0",
        "redis:://user:secret@localhost",
        "redis:/user:secret@localhost",
        "redsi://:secret@localhost:port",
        ":secret@localhost",
        "user:secret",
        "unix:///run/redis.sock?pass=secret",
        "unix:///run/redis.sock?pass=sec@ret&db=x",
        "http://localhost?password=secret",
        "redis://[::1]:secret",
    ];

    #[test]
    fn no_password_is_shown_however_malformed_the_url() {
        for url in WITH_PASSWORD {
            let shown = masked(url);
            assert!(!shown.contains("sec") && !shown.contains("ret"), "{url} -> {shown}");
            assert!(shown.contains("***"), "{url} -> {shown}");
            if let Some(parsed) = RedisUrl::parse(url) {
                let parsed = parsed.with_password(Secret::new("secret".to_owned()));
                let shown = format!("{parsed} {parsed:?} {parsed:#?}");
                assert!(!shown.contains("secret"), "{shown}");
            }
        }
        let secret = Secret::new("secret".to_owned());
        assert_eq!(format!("{secret} {secret:?} {secret:#?}"), "*** *** ***");
    }

    proptest! {
        #[test]
        fn no_half_of_a_password_is_shown(
            (one, two) in ("9[0-9]{5}", "9[0-9]{5}"),
            between in r"[:/?#@%&=\[\]\\ ]{0,3}",
            shape in 0_usize..8,
        ) {
            let password = format!("{one}{between}{two}");
            let url = match shape {
                0 => format!("redis://:{password}@localhost:6379/0"),
                1 => format!("redis://user:{password}@localhost"),
                2 => format!("rediss://user:{password}@[::1]:port"),
                3 => format!("user:{password}@localhost"),
                4 => format!("redis:/:{password}@"),
                5 => format!("unix:///run/redis.sock?user=a&pass={password}&db=x"),
                6 => format!("unix:///run/redis.sock?pass={password}"),
                // With the host forgotten, what follows an @ cannot be told from one.
                _ => format!("redis://user:{}", password.replace('@', "")),
            };
            let shown = masked(&url);
            prop_assert!(!shown.contains(&one) && !shown.contains(&two), "{url} -> {shown}");
        }
    }

    #[test]
    fn what_is_no_password_is_shown() {
        for (url, shown) in [
            ("redis://127.0.0.1:6379/0", "redis://127.0.0.1:6379/0"),
            ("redis://[::1]:6380/3", "redis://[::1]:6380/3"),
            ("unix:///run/redis.sock", "unix:///run/redis.sock"),
            ("localhost:6379", "localhost:6379"),
            ("http://localhost", "http://localhost"),
            ("redis://a:b@localhost:6379/0", "redis://***@localhost:6379/0"),
        ] {
            assert_eq!(masked(url), shown);
        }
    }

    #[test]
    fn urls_that_bring_a_password_are_known() {
        for url in [
            "redis://:secret@localhost:6379/0",
            "redis://user:sec/ret@localhost",
            "unix:///run/redis.sock?pass=secret",
            "unix:///run/redis.sock?pass=secret&db=x",
        ] {
            assert!(carries_password(url), "{url}");
        }
        for url in ["redis://localhost", "redis://crawler@localhost", "localhost:6379"] {
            assert!(!carries_password(url), "{url}");
        }
    }
}
