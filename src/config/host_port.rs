//! Addresses to listen on, and names of hosts, as values of the configuration.

use std::fmt;

/// Host and port to listen on. Only the syntax is checked: a name is not resolved yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPort {
    /// Name or address of the host. An IPv6 address has no brackets here.
    pub host: String,
    /// Port number; for 0 the system chooses a port.
    pub port: u16,
}

impl HostPort {
    /// Reads `host:port`, with brackets around an IPv6 address.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (host, port) = text.rsplit_once(':')?;
        let port = port.bytes().all(|byte| byte.is_ascii_digit()).then_some(port)?.parse().ok()?;
        let host = match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
            Some(address) => address.parse::<std::net::Ipv6Addr>().ok().map(|_| address)?,
            None => host,
        };
        let odd = |c: char| c.is_whitespace() || c.is_control() || "/@[]".contains(c);
        let bare_v6 = text.starts_with(|c| c != '[') && host.contains(':');
        let bad = host.is_empty() || host.contains(odd) || bare_v6;
        (!bad).then(|| Self { host: host.to_owned(), port })
    }
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
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
    fn hosts_and_ports_read_back() {
        for text in ["127.0.0.1:9090", "localhost:0", "[::]:9090", "[::1]:65535", "metrics.lan:1"] {
            assert_eq!(HostPort::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(HostPort::parse("[::1]:80").unwrap().host, "::1");
    }
}
