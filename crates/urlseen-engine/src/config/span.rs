//! Durations in the configuration, always with a unit: `10s`, `500ms`.

use super::raw::{Raw, ValueError};
use super::value::Rule;
use serde_json::Value as Json;
use std::ops::RangeInclusive;
use std::time::Duration;

/// Units of time, the longest first.
const UNITS: [(&str, u64); 4] = [("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// Reads an integer and its unit: `ms`, `s`, `m` or `h`.
fn parse_span(text: &str) -> Option<Duration> {
    let unit_at = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(unit_at);
    let (_, millis) = UNITS.iter().find(|(name, _)| *name == unit)?;
    number.parse::<u64>().ok()?.checked_mul(*millis).map(Duration::from_millis)
}

/// Writes a duration as a whole number of the longest possible unit.
fn shown(span: Duration) -> String {
    let millis = span.as_millis();
    let (unit, length) = UNITS
        .iter()
        .find(|(_, length)| millis.is_multiple_of(u128::from(*length)))
        .unwrap_or(&("ms", 1));
    format!("{}{unit}", millis / u128::from(*length))
}

/// Duration in a range, with its unit.
pub(super) struct DurationRange(pub(super) RangeInclusive<Duration>);

impl Rule<Duration> for DurationRange {
    fn read(&self, raw: &Raw) -> Result<Duration, ValueError> {
        let span = parse_span(raw.text()?).ok_or(ValueError::Value)?;
        if self.0.contains(&span) { Ok(span) } else { Err(ValueError::Value) }
    }

    fn allowed(&self) -> String {
        let (least, most) = (shown(*self.0.start()), shown(*self.0.end()));
        format!("from \"{least}\" to \"{most}\", with its unit: ms, s, m or h")
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_have_a_number_and_a_unit() {
        for (text, millis) in
            [("0s", 0), ("500ms", 500), ("10s", 10_000), ("5m", 300_000), ("2h", 7_200_000)]
        {
            assert_eq!(parse_span(text), Some(Duration::from_millis(millis)), "{text}");
        }
        for text in
            ["", "10", "s", "10 s", "-1s", "1.5s", "10sec", "1d", "1s1", "9999999999999999h"]
        {
            assert_eq!(parse_span(text), None, "{text}");
        }
    }

    #[test]
    fn a_span_is_shown_as_it_is_written() {
        for text in ["1ms", "999ms", "1s", "61s", "1m", "59m", "24h"] {
            assert_eq!(parse_span(text).map(shown).as_deref(), Some(text));
        }
    }
}
