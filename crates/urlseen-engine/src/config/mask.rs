//! What is said of a URL that may be malformed, so that no password in it is ever shown.

use urlseen_core::redis::RedisAddress;

/// Whether a URL brings a password along, as far as one can tell of a malformed one.
pub(super) fn carries_password(text: &str) -> bool {
    match RedisAddress::parse(text) {
        Ok(address) => address.password().is_some(),
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
            let shown = said_of(url);
            assert!(!shown.contains("sec") && !shown.contains("ret"), "{url} -> {shown}");
        }
    }

    /// Everything that is ever formatted of a URL that was parsed, or not.
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
                // With the host forgotten, what follows an @ cannot be told from one.
                _ => format!("redis://user:{}", password.replace('@', "")),
            };
            let shown = masked(&url);
            prop_assert!(!shown.contains(&one) && !shown.contains(&two), "{url} -> {shown}");
            let shown = said_of(&url);
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
