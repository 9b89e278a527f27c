//! Addresses to listen on, and names of hosts, as values of the configuration.

use std::net::Ipv6Addr;

/// Splits `host` or `host:port` into the host and the port, which can be empty. The host is a name,
/// an IPv4 address, or an IPv6 address in brackets. A name is not resolved.
pub(crate) fn host_and_port(text: &str) -> Option<(&str, &str)> {
    let end = if text.starts_with('[') { text.find(']')? + 1 } else { 0 };
    let (host, port) = match text[end..].find(':') {
        Some(colon) => (&text[..end + colon], &text[end + colon + 1..]),
        None => (text, ""),
    };
    let odd = |c: char| c.is_whitespace() || c.is_control() || "@[]/,".contains(c);
    let is_host = match host.strip_prefix('[') {
        Some(address) => address.strip_suffix(']')?.parse::<Ipv6Addr>().is_ok(),
        None => !host.contains(odd),
    };
    let is_port = port.len() <= 5 && port.bytes().all(|byte| byte.is_ascii_digit());
    (is_host && is_port).then_some((host, port))
}

/// Returns true for an address to listen on: a host and a port. For the port 0, the system chooses
/// one.
pub(crate) fn is_address(text: &str) -> bool {
    let parts = host_and_port(text);
    parts.is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok())
}

/// Maximum length of a host name in bytes (RFC 1035).
const LONGEST_HOST: usize = 253;

/// Returns true for a name of a host, without scheme and port.
pub(super) fn is_host(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let labels = name.strip_suffix('.').unwrap_or(name);
    labels.len() <= LONGEST_HOST
        && labels.bytes().all(is_plain)
        && labels.split('.').all(|label| !label.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_authority_has_one_host() {
        for (authority, host) in [
            ("localhost", Some("localhost")),
            ("localhost:9090", Some("localhost")),
            ("localhost:", Some("localhost")),
            ("[::1]", Some("[::1]")),
            ("[::1]:9090", Some("[::1]")),
            ("[::ffff:127.0.0.1]:1", Some("[::ffff:127.0.0.1]")),
            ("", Some("")),
            ("::1", None),
            ("[::1", None),
            ("[::1]9090", None),
            ("[::1]:9090:1", None),
            ("[localhost]", None),
            ("localhost:http", None),
            ("localhost:-1", None),
            ("localhost:123456", None),
            ("localhost:80:80", None),
            ("a@localhost", None),
            ("localhost, evil.example", None),
        ] {
            let found = host_and_port(authority).map(|(host, _)| host);
            assert_eq!(found, host, "{authority}");
        }
    }
}
