//! Rules that convert found values to typed ones, and describe the allowed values.

use super::partitions::PartitionChoice;
use super::raw::{Raw, ValueError};
use super::secret::masked;
use serde_json::Value as Json;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;
use toml::de::DeValue;
use urlseen_core::filter::choice::{self, Choice, ChoiceError, choose};
use urlseen_core::filter::expire_after::ExpireAfter;
use urlseen_core::filter::number::{grouped, parse_count};
use urlseen_core::fingerprint::PartitionCount;
use urlseen_core::redis::{self, RedisAddress};

/// Rule of a key: its allowed values, and the conversion to a `T`.
pub(super) trait Rule<T> {
    /// Converts a value that was found in a layer.
    fn read(&self, raw: &Raw) -> Result<T, ValueError>;

    /// Describes the allowed values, for the end of a message.
    fn allowed(&self) -> String;

    /// Converts a value back to the form that a file has. A password is left out.
    fn write(&self, value: &T) -> Json;

    /// Shows a value in a message, without any secret in it.
    fn shown(&self, raw: &Raw) -> String {
        raw.shown()
    }
}

/// Integer in a range. The text says in messages what is counted, for example " of bytes" in "a
/// whole number of bytes".
pub struct WholeNumber(pub(super) RangeInclusive<u64>, pub(super) &'static str);

impl<T: TryFrom<u64> + TryInto<u64> + Copy> Rule<T> for WholeNumber {
    fn read(&self, raw: &Raw) -> Result<T, ValueError> {
        let value = parse_count(raw.number()?).map_err(|_| ValueError::Value)?;
        let value = Some(value).filter(|value| self.0.contains(value)).ok_or(ValueError::Value)?;
        T::try_from(value).map_err(|_| ValueError::Value)
    }

    fn allowed(&self) -> String {
        let (least, most) = (grouped(*self.0.start()), grouped(*self.0.end()));
        format!("a whole number{} from {least} to {most}", self.1)
    }

    fn write(&self, value: &T) -> Json {
        (*value).try_into().ok().into()
    }
}

/// Number in a range, which may have a fraction.
pub(super) struct Number(pub(super) RangeInclusive<f64>);

impl Rule<f64> for Number {
    fn read(&self, raw: &Raw) -> Result<f64, ValueError> {
        let value: f64 = raw.number()?.replace('_', "").parse().map_err(|_| ValueError::Value)?;
        Some(value).filter(|value| self.0.contains(value)).ok_or(ValueError::Value)
    }

    fn allowed(&self) -> String {
        format!("a number from {:e} to {}", self.0.start(), self.0.end())
    }

    fn write(&self, value: &f64) -> Json {
        (*value).into()
    }
}

/// Boolean, `true` or `false`.
pub(super) struct Flag;

impl Rule<bool> for Flag {
    fn read(&self, raw: &Raw) -> Result<bool, ValueError> {
        match raw {
            Raw::Bool(value) => Ok(*value),
            Raw::Text(text) => text.parse().map_err(|_| ValueError::Value),
            _ => Err(ValueError::Type),
        }
    }

    fn allowed(&self) -> String {
        "true, false".to_owned()
    }

    fn write(&self, value: &bool) -> Json {
        (*value).into()
    }
}

/// Units of time, the longest first.
const UNITS: [(&str, u64); 4] = [("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// Reads an integer and its unit: `ms`, `s`, `m` or `h`.
pub(super) fn parse_span(text: &str) -> Option<Duration> {
    let unit_at = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(unit_at);
    let (_, millis) = UNITS.iter().find(|(name, _)| *name == unit)?;
    number.parse::<u64>().ok()?.checked_mul(*millis).map(Duration::from_millis)
}

/// Writes a duration as a whole number of the longest possible unit.
pub(super) fn shown(span: Duration) -> String {
    let millis = span.as_millis();
    let (unit, length) = UNITS
        .iter()
        .find(|(_, length)| millis.is_multiple_of(u128::from(*length)))
        .unwrap_or(&("ms", 1));
    format!("{}{unit}", millis / u128::from(*length))
}

/// Duration with its unit, from the first one to the second one.
pub(super) struct DurationRange(pub(super) &'static str, pub(super) &'static str);

impl Rule<Duration> for DurationRange {
    fn read(&self, raw: &Raw) -> Result<Duration, ValueError> {
        let range = parse_span(self.0)..=parse_span(self.1);
        let span = parse_span(raw.text()?).filter(|&span| range.contains(&Some(span)));
        span.ok_or(ValueError::Value)
    }

    fn allowed(&self) -> String {
        format!("from \"{}\" to \"{}\", with its unit: ms, s, m or h", self.0, self.1)
    }

    fn write(&self, value: &Duration) -> Json {
        shown(*value).into()
    }
}

/// Duration in a range; `0s` switches the setting off.
impl Rule<Option<Duration>> for DurationRange {
    fn read(&self, raw: &Raw) -> Result<Option<Duration>, ValueError> {
        match parse_span(raw.text()?) {
            Some(Duration::ZERO) => Ok(None),
            _ => Rule::<Duration>::read(self, raw).map(Some),
        }
    }

    fn allowed(&self) -> String {
        format!("\"0s\" (off), or {}", Rule::<Duration>::allowed(self))
    }

    fn write(&self, value: &Option<Duration>) -> Json {
        Rule::<Duration>::write(self, &value.unwrap_or_default())
    }
}

/// Word out of a fixed list of words.
pub(super) struct Word;

impl<T: Choice + PartialEq> Rule<T> for Word {
    fn read(&self, raw: &Raw) -> Result<T, ValueError> {
        choose(raw.text()?).map_err(|error| match error {
            ChoiceError::Unknown { .. } => ValueError::Value,
            ChoiceError::NotYet { .. } => ValueError::NotYet,
        })
    }

    fn allowed(&self) -> String {
        choice::allowed::<T>()
    }

    fn write(&self, value: &T) -> Json {
        T::ALL.iter().find(|(_, choice)| choice == value).map(|(word, _)| *word).into()
    }
}

/// Text that a function converts.
pub(super) struct Parsed<T> {
    /// Description of the allowed texts, for the end of a message.
    pub(super) allowed: &'static str,
    /// Converts a text; `None` if it is not allowed.
    pub(super) read: fn(&str) -> Option<T>,
    pub(super) write: fn(&T) -> String,
}

impl<T> Rule<T> for Parsed<T> {
    fn read(&self, raw: &Raw) -> Result<T, ValueError> {
        (self.read)(raw.text()?).ok_or(ValueError::Value)
    }

    fn allowed(&self) -> String {
        self.allowed.to_owned()
    }

    fn write(&self, value: &T) -> Json {
        (self.write)(value).into()
    }
}

/// Text that a function converts; an empty text switches the setting off.
impl<T> Rule<Option<T>> for Parsed<T> {
    fn read(&self, raw: &Raw) -> Result<Option<T>, ValueError> {
        match raw.text()? {
            "" => Ok(None),
            _ => Rule::<T>::read(self, raw).map(Some),
        }
    }

    fn allowed(&self) -> String {
        self.allowed.to_owned()
    }

    fn write(&self, value: &Option<T>) -> Json {
        value.as_ref().map_or_else(String::new, self.write).into()
    }
}

/// Non-empty name of a Redis key.
pub(super) const REDIS_KEY: Parsed<String> = Parsed {
    allowed: "a Redis key, not empty",
    read: |key| (!key.is_empty()).then(|| key.to_owned()),
    write: String::clone,
};

/// Path of a folder, not empty.
pub(super) const FOLDER: Parsed<PathBuf> =
    Parsed { allowed: "the path of a folder, not empty", read: path, write: |it| path_text(it) };

/// Path of a file in PEM form, or none.
pub(super) const PEM_FILE: Parsed<PathBuf> = Parsed {
    allowed: "\"\" (none), or the path of a file in PEM form",
    read: path,
    write: |it| path_text(it),
};

fn path(text: &str) -> Option<PathBuf> {
    (!text.is_empty() && !text.contains('\0')).then(|| text.into())
}

fn path_text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// Name of a crawl, which must also be a valid folder name.
pub(super) const CRAWL: Parsed<String> = Parsed {
    allowed: "a name of 1 to 200 bytes that a folder can have: no / or control characters, no \
              blanks at the ends",
    read: |name| {
        let is_good = (1..=200).contains(&name.len())
            && ![".", ".."].contains(&name)
            && name.trim() == name
            && !name.chars().any(|c| c == '/' || c.is_control());
        is_good.then(|| name.to_owned())
    },
    write: String::clone,
};

/// Time after which fingerprints pass again, or never.
pub(super) const EXPIRE_AFTER: Parsed<ExpireAfter> = Parsed {
    allowed: "\"\" (never), or a time from \"5s\" to \"20y\" such as \"30d\" or \"12h\"",
    read: |text| text.parse().ok(),
    write: ExpireAfter::to_string,
};

/// Partitions that a process runs.
pub(super) const RUN: Parsed<PartitionChoice> = Parsed {
    allowed: "\"all\", numbers and ranges like \"0-3,8\", \"ordinal\", or \"ordinal/\" and the \
              number of processes",
    read: PartitionChoice::parse,
    write: PartitionChoice::to_string,
};

/// Number of partitions of a crawl.
pub(super) struct Count;

impl Rule<PartitionCount> for Count {
    fn read(&self, raw: &Raw) -> Result<PartitionCount, ValueError> {
        raw.number()?.parse().map_err(|_| ValueError::Value)
    }

    fn allowed(&self) -> String {
        "a power of two from 1 to 256".to_owned()
    }

    fn write(&self, value: &PartitionCount) -> Json {
        value.get().into()
    }
}

/// Seed of the filter's hash: `random`, or a number.
///
/// Attackers who know the seed can make URLs that cause false positives for other URLs. The seed is
/// therefore random unless a user needs the same bits twice.
pub(super) struct Seed;

const SEEDS: WholeNumber = WholeNumber(0..=u32::MAX as u64, "");

impl Rule<Option<u32>> for Seed {
    fn read(&self, raw: &Raw) -> Result<Option<u32>, ValueError> {
        match raw {
            Raw::Text(word) | Raw::String(word) if word == "random" => Ok(None),
            // The value is a number in quotes, or a misspelt word.
            Raw::String(_) => Err(ValueError::Value),
            _ => SEEDS.read(raw).map(Some),
        }
    }

    fn allowed(&self) -> String {
        format!("\"random\", or {} without quotes", Rule::<u32>::allowed(&SEEDS))
    }

    fn write(&self, value: &Option<u32>) -> Json {
        value.map_or_else(|| "random".into(), Json::from)
    }
}

/// Address of a Redis server.
pub(super) struct Redis;

impl Rule<RedisAddress> for Redis {
    fn read(&self, raw: &Raw) -> Result<RedisAddress, ValueError> {
        RedisAddress::parse(raw.text()?).map_err(|error| ValueError::Because(error.to_string()))
    }

    fn allowed(&self) -> String {
        redis::ALLOWED.to_owned()
    }

    fn write(&self, value: &RedisAddress) -> Json {
        value.without_password().to_string().into()
    }

    fn shown(&self, raw: &Raw) -> String {
        match raw {
            Raw::Text(text) | Raw::String(text) => Raw::Text(masked(text)).shown(),
            // A number may be a password, so only its type is shown.
            other => other.kind().to_owned(),
        }
    }
}

/// List of texts: an array of strings, or a text separated by commas. A blank text is an empty
/// list.
pub(super) struct Texts {
    pub(super) count: RangeInclusive<usize>,
    pub(super) is_good: fn(&str) -> bool,
    pub(super) allowed: &'static str,
}

impl Rule<Vec<String>> for Texts {
    fn read(&self, raw: &Raw) -> Result<Vec<String>, ValueError> {
        let texts = texts(raw)?;
        let is_good =
            self.count.contains(&texts.len()) && texts.iter().all(|it| (self.is_good)(it));
        if is_good { Ok(texts) } else { Err(ValueError::Value) }
    }

    fn allowed(&self) -> String {
        self.allowed.to_owned()
    }

    fn write(&self, value: &Vec<String>) -> Json {
        value.as_slice().into()
    }
}

/// List of Redis keys, none empty.
pub(super) const REDIS_KEYS: Texts = Texts {
    count: 1..=1000,
    is_good: |key| !key.is_empty(),
    allowed: "an array of 1 to 1000 Redis keys, none of them empty",
};

/// Returns the strings of an array, or of a text separated by commas.
fn texts(raw: &Raw) -> Result<Vec<String>, ValueError> {
    match raw {
        Raw::List(texts) => Ok(texts.clone()),
        // The text is an array in the syntax of TOML.
        Raw::Text(text) if text.trim_start().starts_with('[') => {
            let array = DeValue::parse(text.trim()).map_err(|_| ValueError::Value)?;
            texts(&Raw::from_toml(array.get_ref()))
        }
        Raw::Text(text) if text.trim().is_empty() => Ok(Vec::new()),
        Raw::Text(text) => Ok(text.split(',').map(|text| text.trim().to_owned()).collect()),
        _ => Err(ValueError::Type),
    }
}
