//! IPv6 addresses, read and written as Python's `ipaddress` does.

use std::fmt;
use std::net::Ipv6Addr;

/// IPv6 address, and the zone after its `%`. The zone is kept as written.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Address<'a> {
    address: Ipv6Addr,
    zone: Option<&'a str>,
}

impl<'a> Address<'a> {
    /// Reads an address without its brackets. Returns `None` if `text` is not an address.
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        let (address, zone) = match text.split_once('%') {
            Some((address, zone)) => (address, Some(zone)),
            None => (text, None),
        };
        if zone.is_some_and(|zone| zone.is_empty() || zone.contains('%')) {
            return None;
        }
        Some(Self { address: address.parse().ok()?, zone })
    }
}

/// Writes the shortest form in hex, and the zone. `std` alone would write `::ffff:102:304` as
/// `::ffff:1.2.3.4`.
impl fmt::Display for Address<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.address.to_ipv4_mapped(), self.address.segments()) {
            (Some(_), [.., high, low]) => write!(f, "::ffff:{high:x}:{low:x}")?,
            (None, _) => write!(f, "{}", self.address)?,
        }
        self.zone.map_or(Ok(()), |zone| write!(f, "%{zone}"))
    }
}
