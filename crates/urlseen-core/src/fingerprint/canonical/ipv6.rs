//! IPv6 addresses, read and written as Python's `ipaddress` does.
//!
//! `std::net` differs: it writes `::ffff:102:304` as `::ffff:1.2.3.4`, and has no zones here.

use std::fmt;

/// IPv6 address, and the zone after its `%`. The zone is kept as written.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Address<'a> {
    groups: [u16; 8],
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
        let groups = match address.split_once("::") {
            None => {
                let mut groups = Groups::default();
                groups.read(address)?;
                (groups.length == 8).then_some(groups.values)?
            }
            Some((before, behind)) => {
                let (mut high, mut low) = (Groups::default(), Groups::default());
                if !before.is_empty() {
                    // An IPv4 tail may only end the whole address.
                    (!before.contains('.')).then_some(())?;
                    high.read(before)?;
                }
                if !behind.is_empty() {
                    low.read(behind)?;
                }
                // `::` stands for at least one group.
                (high.length + low.length < 8).then_some(())?;
                let mut values = high.values;
                values[8 - low.length..].copy_from_slice(&low.values[..low.length]);
                values
            }
        };
        Some(Self { groups, zone })
    }

    /// First of the longest runs of two or more zero groups, the run that `::` replaces.
    fn longest_zeros(&self) -> Option<(usize, usize)> {
        let mut longest = (0, 0);
        let mut start = 0;
        for end in 1..=8 {
            if self.groups[end - 1] != 0 {
                start = end;
            } else if end - start > longest.1 - longest.0 {
                longest = (start, end);
            }
        }
        (longest.1 - longest.0 > 1).then_some(longest)
    }
}

/// Writes lower-case hex without leading zeros, shortened once with `::`, and the zone.
impl fmt::Display for Address<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.longest_zeros() {
            Some((start, end)) => {
                write_groups(f, &self.groups[..start])?;
                f.write_str("::")?;
                write_groups(f, &self.groups[end..])?;
            }
            None => write_groups(f, &self.groups)?,
        }
        self.zone.map_or(Ok(()), |zone| write!(f, "%{zone}"))
    }
}

fn write_groups(f: &mut fmt::Formatter<'_>, groups: &[u16]) -> fmt::Result {
    for (index, group) in groups.iter().enumerate() {
        let separator = if index == 0 { "" } else { ":" };
        write!(f, "{separator}{group:x}")?;
    }
    Ok(())
}

/// Groups read so far, at most eight.
#[derive(Default)]
struct Groups {
    values: [u16; 8],
    length: usize,
}

impl Groups {
    /// Reads groups of one to four hex digits, separated by colons. The last part may be an IPv4
    /// address, which makes two groups.
    fn read(&mut self, text: &str) -> Option<()> {
        let mut parts = text.split(':').peekable();
        while let Some(part) = parts.next() {
            if parts.peek().is_none() && part.contains('.') {
                let [a, b, c, d] = parse_ipv4(part)?;
                self.add(u16::from_be_bytes([a, b]))?;
                self.add(u16::from_be_bytes([c, d]))?;
            } else {
                let digits = (1..=4).contains(&part.len())
                    && part.bytes().all(|digit| digit.is_ascii_hexdigit());
                digits.then_some(())?;
                self.add(u16::from_str_radix(part, 16).ok()?)?;
            }
        }
        Some(())
    }

    fn add(&mut self, group: u16) -> Option<()> {
        *self.values.get_mut(self.length)? = group;
        self.length += 1;
        Some(())
    }
}

/// Reads four decimal numbers up to 255, without leading zeros.
pub(super) fn parse_ipv4(text: &str) -> Option<[u8; 4]> {
    let mut octets = [0; 4];
    let mut parts = text.split('.');
    for octet in &mut octets {
        let part = parts.next()?;
        let plain = part.bytes().all(|digit| digit.is_ascii_digit())
            && (part == "0" || !part.starts_with('0'));
        plain.then_some(())?;
        *octet = part.parse().ok()?;
    }
    parts.next().is_none().then_some(octets)
}
