//! Passwords that no message ever shows, also in malformed URLs.

use std::fmt;

use sha1::{Digest, Sha1};
use subtle::ConstantTimeEq;
use urlseen_redis::RedisAddress;

/// Minimum length of a token, in characters.
const SHORTEST_TOKEN: usize = 16;

/// Password that no message shows.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Makes the password of a server, or the token that requests to `admin` have in a header.
    /// Returns `None` for an empty text: in a Compose file, a variable without a value is empty.
    ///
    /// # Errors
    /// A token is so short that it can be guessed, or a header cannot have it. The error does not
    /// show the text.
    pub(super) fn of(server: &str, text: String) -> Result<Option<Self>, String> {
        let is_good =
            || text.len() >= SHORTEST_TOKEN && text.bytes().all(|byte| byte.is_ascii_graphic());
        if text.is_empty() || server != "admin" || is_good() {
            return Ok(Some(Self(text)).filter(|secret| !secret.0.is_empty()));
        }
        Err(format!(
            "is not a valid token; allowed: {SHORTEST_TOKEN} or more ASCII characters without \
             spaces, such as the output of: openssl rand -hex 16"
        ))
    }

    /// Returns the text of the password, for a server that requires the password.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }

    /// Checks a guess. The comparison of two digests takes constant time. So an attacker cannot
    /// learn from the time how much of the guess was right, or how long the password is.
    pub(crate) fn is(&self, guess: &[u8]) -> bool {
        let digest = |text: &[u8]| <[u8; 20]>::from(Sha1::digest(text));
        digest(self.0.as_bytes()).ct_eq(&digest(guess)).into()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// Returns true if a URL contains a password. For a malformed URL this is a guess.
pub(super) fn carries_password(text: &str) -> bool {
    match RedisAddress::parse(text) {
        Ok(address) => address.password.is_some(),
        Err(_) => text.contains('@') || text.contains("pass"),
    }
}

/// Replaces every part of a URL that may be a password with `***`. The URL may be malformed. The
/// replaced parts are the text before the last `@`, the query (`unix:///socket?pass=…`), and text
/// after a `:` that is not a port (`redis://:password` without a host).
pub(super) fn masked(text: &str) -> String {
    let is_scheme = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
    let (scheme, rest) = match text.split_once("://") {
        Some((scheme, rest)) if scheme.bytes().all(is_scheme) => (format!("{scheme}://"), rest),
        _ => (String::new(), text),
    };
    let (user, server) = match rest.rsplit_once('@') {
        // An `@` after a `?` may be part of a password in the query. It may also end the user and
        // the password before the host.
        Some((before, _)) if before.contains('?') => return format!("{scheme}***"),
        Some((_, server)) => ("***@", server),
        None => ("", rest),
    };
    let (address, query) = match server.split_once('?') {
        Some((address, _)) => (address, "?***"),
        None => (server, ""),
    };
    // Colons inside brackets belong to an IPv6 address.
    let v6_end = if address.starts_with('[') { address.find(']') } else { None };
    let host = v6_end.map_or(0, |bracket| bracket + 1);
    let port = address[host..].find(':').map(|colon| host + colon + 1);
    match port.filter(|port| !is_port_and_database(&address[*port..])) {
        Some(port) => format!("{scheme}{user}{}***{query}", &address[..port]),
        None => format!("{scheme}{user}{address}{query}"),
    }
}

/// Returns true for a port number, with or without a `/` and a database number after it.
fn is_port_and_database(text: &str) -> bool {
    let (port, database) = text.split_once('/').unwrap_or((text, ""));
    port.parse::<u16>().is_ok() && database.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_secret_matches_only_itself_and_is_not_shown() {
        let secret = Secret("hunter2".to_owned());
        assert!(secret.is(b"hunter2"));
        assert!(!secret.is(b"") && !Secret(String::new()).is(b"hunter2"));
        assert!(!secret.is(b"hunter") && !secret.is(b"hunter22") && !secret.is(b"hunter3"));
        assert!(!format!("{secret:?}").contains("hunter"));
    }

    /// URLs with `secret`, or pieces of it, as the intended password.
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
            let shown = said_of(url);
            assert!(!shown.contains("sec") && !shown.contains("ret"), "{url} -> {shown}");
        }
    }

    /// Collects all texts that are ever formatted from a URL, parsed or not.
    fn said_of(url: &str) -> String {
        match RedisAddress::parse(url) {
            Ok(address) => format!("{address} {address:?} {address:#?}"),
            Err(error) => format!("{error} {error:?} {error:#?}"),
        }
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
                // Without a host, the text after an `@` cannot be distinguished from a host.
                _ => format!("redis://user:{}", password.replace('@', "")),
            };
            let shown = masked(&url);
            prop_assert!(!shown.contains(&one) && !shown.contains(&two), "{url} -> {shown}");
            let shown = said_of(&url);
            prop_assert!(!shown.contains(&one) && !shown.contains(&two), "{url} -> {shown}");
        }
    }

    #[test]
    fn other_parts_of_a_url_are_shown() {
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
    fn urls_that_contain_a_password_are_detected() {
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
