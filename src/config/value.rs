//! Values as found in the file, in the environment or in `--set`. Rules convert them to typed ones,
//! and describe the allowed values.

use super::partitions::PartitionChoice;
use super::secret::masked;
use humantime::{format_duration, parse_duration};
use serde_json::Value as Json;
use std::fmt::Display;
use std::net::Ipv6Addr;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;
use toml::de::DeValue;
use urlseen_filter::choice::{self, Choice, choose};
use urlseen_filter::expire_after::ExpireAfter;
use urlseen_filter::number::{grouped, parse_count};
use urlseen_fingerprint::PartitionCount;
use urlseen_redis::{self, RedisAddress};

/// Value as found. It may be a password, so only the code that knows the key may show it.
pub(super) struct Raw {
    /// Type of the value in words, for a message about a wrong type.
    pub(super) kind: &'static str,
    /// Text, number or boolean, or an array of strings as JSON; empty for a value of another type.
    pub(super) text: String,
}

/// Kind of a text from the environment or from `--set`. The rule of the key decides how to read it.
const TEXT: &str = "a text";
/// Kinds of values of a TOML file. A number is an integer or a float, in decimal.
pub(super) const STRING: &str = "a string";
pub(super) const NUMBER: &str = "a number";
pub(super) const BOOLEAN: &str = "a boolean";
pub(super) const ARRAY: &str = "an array";

impl Raw {
    /// Makes a value from the environment or from `--set`.
    pub(super) fn new(text: String) -> Self {
        Self { kind: TEXT, text }
    }

    pub(super) fn from_toml(value: &DeValue<'_>) -> Self {
        let (kind, text) = match value {
            DeValue::String(text) => (STRING, text.to_string()),
            DeValue::Integer(integer) => {
                let value = u64::from_str_radix(integer.as_str(), integer.radix());
                (NUMBER, value.map_or_else(|_| integer.to_string(), |value| value.to_string()))
            }
            DeValue::Float(float) => (NUMBER, float.as_str().to_owned()),
            DeValue::Boolean(value) => (BOOLEAN, value.to_string()),
            DeValue::Datetime(_) => ("a date", String::new()),
            DeValue::Array(array) => {
                let texts: Option<Vec<_>> = array.iter().map(|it| it.get_ref().as_str()).collect();
                (ARRAY, Json::from(texts).to_string())
            }
            DeValue::Table(_) => ("a table", String::new()),
        };
        Self { kind, text }
    }

    /// Returns the value as text on one line, shortened if the text is long.
    pub(super) fn shown(&self) -> String {
        const LONGEST: usize = 80;
        let start: String = self.text.chars().take(LONGEST).collect();
        match self.kind {
            TEXT | STRING if start.len() < self.text.len() => format!("{start:?}…"),
            TEXT | STRING => format!("{start:?}"),
            NUMBER | BOOLEAN => start,
            other => other.to_owned(),
        }
    }

    /// Returns the value like [`Self::shown`], without any password that is part of an address.
    pub(super) fn masked(&self) -> String {
        match self.kind {
            TEXT | STRING => Self::new(masked(&self.text)).shown(),
            // A number may be a password, so only its type is shown.
            kind => kind.to_owned(),
        }
    }

    /// Returns the texts of an array of strings, or of a text separated by commas.
    pub(super) fn list(&self) -> Option<Vec<String>> {
        match self.text.trim() {
            array if self.kind == ARRAY => serde_json::from_str(array).ok()?,
            // The text is an array in the syntax of TOML.
            text if text.starts_with('[') => {
                Self::from_toml(DeValue::parse(text).ok()?.get_ref()).list()
            }
            "" => Some(Vec::new()),
            text => Some(text.split(',').map(|text| text.trim().to_owned()).collect()),
        }
    }
}

/// Rule of a key: its allowed values, and the conversion to a `T`.
pub(super) struct Rule<T> {
    /// Kinds of the allowed values in a file. Other layers have texts.
    kinds: &'static [&'static str],
    /// Description of the allowed values, for the end of a message.
    allowed: String,
    /// Converts a value of an allowed kind. If the value is refused, the error has the reason,
    /// unless the reason is that the value is not among the allowed ones.
    read: Conversion<Raw, Result<T, Option<String>>>,
    /// Converts a value back to the form that a file has. A password is left out.
    pub(super) write: Conversion<T, Json>,
}

type Conversion<From, To> = Box<dyn Fn(&From) -> To>;

impl<T: 'static> Rule<T> {
    /// Makes a rule from its two conversions. `read` returns `None` for a value that is not
    /// allowed.
    fn new(
        kinds: &'static [&'static str],
        allowed: impl Into<String>,
        read: impl Fn(&Raw) -> Option<T> + 'static,
        write: impl Fn(&T) -> Json + 'static,
    ) -> Self {
        let read = move |raw: &Raw| read(raw).ok_or(None);
        Self { kinds, allowed: allowed.into(), read: Box::new(read), write: Box::new(write) }
    }

    /// Makes a rule of a text that a function converts. `parse` returns `None` for a text that is
    /// not allowed.
    pub(super) fn text(
        allowed: impl Into<String>,
        parse: impl Fn(&str) -> Option<T> + 'static,
        write: fn(&T) -> String,
    ) -> Self {
        Self::new(&[STRING], allowed, move |raw| parse(&raw.text), move |it| write(it).into())
    }

    /// Makes a rule that also allows the text `off`, and all texts for which `is_off` holds.
    /// `meaning` says what such a text means.
    fn or(self, off: &'static str, meaning: &str, is_off: fn(&str) -> bool) -> Rule<Option<T>> {
        let Self { kinds, allowed, read, write } = self;
        let read = move |raw: &Raw| {
            if is_off(&raw.text) { Some(None) } else { read(raw).ok().map(Some) }
        };
        Rule::new(kinds, format!("{off:?} ({meaning}), or {allowed}"), read, move |value| {
            value.as_ref().map_or_else(|| off.into(), &*write)
        })
    }

    /// Converts a value of a rule in the file to the form that a file has.
    pub(super) fn json(&self, raw: &Raw) -> Result<Json, String> {
        self.read(raw, &raw.shown()).map(|value| (self.write)(&value))
    }

    /// Converts a value that was found in a layer, and that messages show as `shown`.
    ///
    /// # Errors
    /// The value is refused. The error has the value, and the reason or what is allowed.
    pub(super) fn read(&self, raw: &Raw, shown: &str) -> Result<T, String> {
        let Self { kinds, allowed, read, .. } = self;
        let is_of_kind = raw.kind == TEXT || kinds.contains(&raw.kind);
        let value = if is_of_kind { read(raw) } else { Err(None) };
        value.map_err(|reason| match reason {
            Some(reason) => format!("{shown}: {reason}"),
            None if is_of_kind || shown == raw.kind => format!("{shown}; allowed: {allowed}"),
            None => format!("{shown}, {}; allowed: {allowed}", raw.kind),
        })
    }
}

/// Integer in a range. `of` says in messages what is counted, for example " of bytes" in "a whole
/// number of bytes".
pub(super) fn whole<T>(range: RangeInclusive<u64>, of: &str) -> Rule<T>
where
    T: TryFrom<u64> + Into<Json> + Copy + 'static,
{
    let (least, most) = (grouped(*range.start()), grouped(*range.end()));
    let read = move |raw: &Raw| {
        let value = parse_count(&raw.text).ok().filter(|value| range.contains(value));
        T::try_from(value?).ok()
    };
    let allowed = format!("a whole number{of} from {least} to {most}");
    Rule::new(&[NUMBER], allowed, read, |&value| value.into())
}

/// Number in a range, which may have a fraction.
pub(super) fn number(range: RangeInclusive<f64>) -> Rule<f64> {
    let allowed = format!("a number from {:e} to {}", range.start(), range.end());
    let read = move |raw: &Raw| {
        let value = raw.text.replace('_', "").parse::<f64>().ok();
        value.filter(|value| range.contains(value))
    };
    Rule::new(&[NUMBER], allowed, read, |&value| value.into())
}

/// Boolean, `true` or `false`.
pub(super) fn flag() -> Rule<bool> {
    let read = |raw: &Raw| raw.text.parse().ok();
    Rule::new(&[BOOLEAN], "true, false", read, |&value: &bool| value.into())
}

/// Duration with its unit, from the first one to the second one.
pub(super) fn duration(least: &'static str, most: &'static str) -> Rule<Duration> {
    let allowed = format!("from {least:?} to {most:?}, with its unit: ms, s, m or h");
    let parse = move |text: &str| {
        let range = parse_duration(least).ok()?..=parse_duration(most).ok()?;
        parse_duration(text).ok().filter(|span| range.contains(span))
    };
    Rule::text(allowed, parse, |&span| format_duration(span).to_string())
}

/// Duration in a range; `0s` switches the setting off.
pub(super) fn duration_or_off(least: &'static str, most: &'static str) -> Rule<Option<Duration>> {
    duration(least, most).or("0s", "off", |text| parse_duration(text) == Ok(Duration::ZERO))
}

/// Word out of a fixed list of words.
pub(super) fn word<T: Choice + Display>() -> Rule<T> {
    Rule::text(choice::allowed::<T>(), |text| choose(text).ok(), T::to_string)
}

/// Non-empty name of a Redis key.
pub(super) fn redis_key() -> Rule<String> {
    let parse = |key: &str| (!key.is_empty()).then(|| key.to_owned());
    Rule::text("a Redis key, not empty", parse, String::clone)
}

/// Path of a folder, not empty.
pub(super) fn folder() -> Rule<PathBuf> {
    Rule::text("the path of a folder, not empty", path, |it| path_text(it))
}

/// Path of a file in PEM form, or none.
pub(super) fn pem_file() -> Rule<Option<PathBuf>> {
    let rule = Rule::text("the path of a file in PEM form", path, |it| path_text(it));
    rule.or("", "none", str::is_empty)
}

fn path(text: &str) -> Option<PathBuf> {
    (!text.is_empty() && !text.contains('\0')).then(|| text.into())
}

fn path_text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// Name of a crawl, which must also be a valid folder name.
pub(super) fn crawl_name() -> Rule<String> {
    let allowed = "a name of 1 to 200 bytes that a folder can have: no / or control characters, no \
                   blanks at the ends";
    let parse = |name: &str| {
        let is_good = (1..=200).contains(&name.len())
            && ![".", ".."].contains(&name)
            && name.trim() == name
            && !name.chars().any(|c| c == '/' || c.is_control());
        is_good.then(|| name.to_owned())
    };
    Rule::text(allowed, parse, String::clone)
}

/// Time after which fingerprints pass again, or never.
pub(super) fn expire_after() -> Rule<Option<ExpireAfter>> {
    let allowed = "a time from \"5s\" to \"20y\" such as \"30d\" or \"12h\"";
    let rule = Rule::text(allowed, |text| text.parse().ok(), ExpireAfter::to_string);
    rule.or("", "never", str::is_empty)
}

/// Partitions that a process runs.
pub(super) fn run() -> Rule<PartitionChoice> {
    let allowed = "\"all\", numbers and ranges like \"0-3,8\", \"ordinal\", or \"ordinal/\" and \
                   the number of processes";
    Rule::text(allowed, PartitionChoice::parse, PartitionChoice::to_string)
}

/// Number of partitions of a crawl.
pub(super) fn count() -> Rule<PartitionCount> {
    let read = |raw: &Raw| raw.text.parse::<PartitionCount>().ok();
    Rule::new(&[NUMBER], "a power of two from 1 to 256", read, |count| count.get().into())
}

/// Seed of the filter's hash: `random`, or a number.
///
/// Attackers who know the seed can make URLs that cause false positives for other URLs. The seed is
/// therefore random unless a user needs the same bits twice.
pub(super) fn seed() -> Rule<Option<u32>> {
    let seeds = whole(0..=u32::MAX.into(), "");
    let allowed = format!("\"random\", or {} without quotes", seeds.allowed);
    let read = move |raw: &Raw| match &*raw.text {
        "random" => Some(None),
        // The value is a number in quotes, or a misspelt word.
        _ if raw.kind == STRING => None,
        _ => (seeds.read)(raw).ok().map(Some),
    };
    let write = |seed: &Option<u32>| seed.map_or_else(|| "random".into(), Json::from);
    Rule::new(&[STRING, NUMBER], allowed, read, write)
}

/// Address of a Redis server.
pub(super) fn redis_url() -> Rule<RedisAddress> {
    let write = |url: &RedisAddress| url.without_password().to_string();
    let read = |raw: &Raw| RedisAddress::parse(&raw.text).map_err(|error| Some(error.to_string()));
    Rule { read: Box::new(read), ..Rule::text(urlseen_redis::ALLOWED, |_| None, write) }
}

/// List of texts: an array of strings, or a text separated by commas. A blank text is an empty
/// list.
pub(super) fn texts(
    count: RangeInclusive<usize>,
    is_good: fn(&str) -> bool,
    allowed: &str,
) -> Rule<Vec<String>> {
    let read = move |raw: &Raw| {
        raw.list().filter(|it| count.contains(&it.len()) && it.iter().all(|it| is_good(it)))
    };
    Rule::new(&[ARRAY], allowed, read, |texts| texts.as_slice().into())
}

/// List of Redis keys, none empty.
pub(super) fn redis_keys() -> Rule<Vec<String>> {
    let allowed = "an array of 1 to 1000 Redis keys, none of them empty";
    texts(1..=1000, |key| !key.is_empty(), allowed)
}

/// Names of hosts, without scheme and port. An empty list is allowed.
pub(super) fn host_names() -> Rule<Vec<String>> {
    let allowed = "an array of at most 100 host names in ASCII, like \"metrics.example\", without \
                   scheme and port";
    texts(0..=100, is_host, allowed)
}

/// Address to listen on, or none.
pub(super) fn listen() -> Rule<Option<String>> {
    let allowed = "host:port, like 127.0.0.1:9090 for this machine alone, 0.0.0.0:9090 or \
                   [::]:9090 for all";
    let parse = |text: &str| is_address(text).then(|| text.to_owned());
    Rule::text(allowed, parse, String::clone).or("", "off", str::is_empty)
}

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
fn is_host(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let labels = name.strip_suffix('.').unwrap_or(name);
    labels.len() <= LONGEST_HOST
        && labels.bytes().all(is_plain)
        && labels.split('.').all(|label| !label.is_empty())
}
