//! Rules that convert found values to typed ones, and describe the allowed values.

use super::raw::{Raw, ValueError};
use serde_json::Value as Json;
use std::ops::RangeInclusive;
use std::path::Path;
use toml::de::DeValue;
use urlseen_core::filter::choice::{self, Choice, ChoiceError, choose};
use urlseen_core::filter::number::{grouped, parse_count};

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

/// Text, not empty, that passes a test: a description of the allowed texts, and the test.
pub(super) struct Text(&'static str, fn(&str) -> bool);

impl<T: for<'a> From<&'a str> + AsRef<Path>> Rule<T> for Text {
    fn read(&self, raw: &Raw) -> Result<T, ValueError> {
        let text = raw.text()?;
        if self.1(text) { Ok(text.into()) } else { Err(ValueError::Value) }
    }

    fn allowed(&self) -> String {
        self.0.to_owned()
    }

    fn write(&self, value: &T) -> Json {
        value.as_ref().to_string_lossy().into()
    }
}

/// Non-empty name of a Redis key.
pub(super) const REDIS_KEY: Text = Text("a Redis key, not empty", |key| !key.is_empty());

/// Path of a folder, not empty.
pub(super) const FOLDER: Text =
    Text("the path of a folder, not empty", |path| !path.is_empty() && !path.contains('\0'));

/// Name of a crawl, which must also be a valid folder name.
pub(super) const CRAWL: Text = Text(
    "a name of 1 to 200 bytes that a folder can have: no / or control characters, no blanks at \
     the ends",
    |name| {
        (1..=200).contains(&name.len())
            && ![".", ".."].contains(&name)
            && name.trim() == name
            && !name.chars().any(|c| c == '/' || c.is_control())
    },
);

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

#[cfg(test)]
mod tests {
    use super::super::seed::{Seed, SeedChoice};
    use super::super::span::DurationRange;
    use super::*;
    use std::time::Duration;

    #[test]
    fn keys_are_an_array_or_separated_by_commas() {
        let keys = |raw| REDIS_KEYS.read(&raw);
        let both = || Ok(vec!["a".to_owned(), "b".to_owned()]);
        assert_eq!(keys(text("a, b")), both());
        assert_eq!(keys(text("['a', \"b\"]")), both());
        assert_eq!(keys(toml("['a', 'b']")), both());
        assert_eq!(keys(toml("'a'")), Err(ValueError::Type));
        assert_eq!(keys(toml("['a', 1]")), Err(ValueError::Type));
        for bad in ["", "a,,b", "['a'", "[]"] {
            assert_eq!(keys(text(bad)), Err(ValueError::Value), "{bad}");
        }
    }

    fn text(text: &str) -> Raw {
        Raw::Text(text.to_owned())
    }

    fn toml(text: &str) -> Raw {
        Raw::from_toml(DeValue::parse(text).unwrap().get_ref())
    }

    #[test]
    fn a_file_needs_the_right_types() {
        let whole = |raw| Rule::<u64>::read(&WholeNumber(1..=1_000_000_000, ""), &raw);
        for (value, wanted) in [
            ("10_000", Ok(10_000)),
            ("0x10", Ok(16)),
            ("+5", Ok(5)),
            ("1e8", Ok(100_000_000)),
            ("2.5", Err(ValueError::Value)),
            ("-1", Err(ValueError::Value)),
            ("0xffff_ffff_ffff_ffff_ffff", Err(ValueError::Value)),
            ("inf", Err(ValueError::Value)),
            ("\"10\"", Err(ValueError::Type)),
            ("true", Err(ValueError::Type)),
            ("[10]", Err(ValueError::Type)),
            ("2026-01-01", Err(ValueError::Type)),
        ] {
            assert_eq!(whole(toml(value)), wanted, "{value}");
        }
        assert_eq!(Number(0.0..=1.0).read(&toml("1")), Ok(1.0));
        assert_eq!(Number(0.0..=1.0).read(&toml("nan")), Err(ValueError::Value));
        assert_eq!(Number(0.0..=1.0).read(&toml("\"1\"")), Err(ValueError::Type));
        assert_eq!(Flag.read(&toml("\"true\"")), Err(ValueError::Type));
        assert_eq!(Rule::<String>::read(&REDIS_KEY, &toml("7")), Err(ValueError::Type));
        assert_eq!(
            Rule::<Option<Duration>>::read(&DurationRange(A_DAY), &toml("10")),
            Err(ValueError::Type)
        );
        assert_eq!(Seed.read(&toml("42")), Ok(SeedChoice::Fixed(42)));
        assert_eq!(Seed.read(&toml("\"42\"")), Err(ValueError::Value));
        assert_eq!(Seed.read(&toml("4294967296")), Err(ValueError::Value));
    }

    const A_DAY: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_hours(24);

    #[test]
    fn ranges_include_their_ends_and_no_more() {
        let whole = |value| Rule::<u16>::read(&WholeNumber(1..=100_000, ""), &text(value));
        assert_eq!(whole("1"), Ok(1));
        assert_eq!(whole("0"), Err(ValueError::Value));
        assert_eq!(whole("100_001"), Err(ValueError::Value));
        assert_eq!(whole("65536"), Err(ValueError::Value), "more than the type holds");
        let every = |value| Rule::<Option<Duration>>::read(&DurationRange(A_DAY), &text(value));
        assert_eq!(every("0s"), Ok(None));
        assert_eq!(every("1s"), Ok(Some(Duration::from_secs(1))));
        assert_eq!(every("24h"), Ok(Some(Duration::from_hours(24))));
        assert_eq!(every("999ms"), Err(ValueError::Value));
        assert_eq!(every("25h"), Err(ValueError::Value));
        let span = |value| Rule::<Duration>::read(&DurationRange(A_DAY), &text(value));
        assert_eq!(span("1s"), Ok(Duration::from_secs(1)));
        assert_eq!(span("24h"), Ok(Duration::from_hours(24)));
        assert_eq!(span("0s"), Err(ValueError::Value));
    }

    #[test]
    fn a_crawl_name_can_be_a_folder_name() {
        for name in ["demo", "shop:de", "{shop}", "crawl 7", "ünï", "..."] {
            assert_eq!(CRAWL.read(&text(name)), Ok(name.to_owned()));
        }
        for name in ["", ".", "..", "a/b", "a\nb", " a", "a ", "a\0", &"a".repeat(201)] {
            assert_eq!(
                Rule::<String>::read(&CRAWL, &text(name)),
                Err(ValueError::Value),
                "{name:?}"
            );
        }
    }
}
