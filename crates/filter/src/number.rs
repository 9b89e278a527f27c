//! Numbers as people write them: `1e9`, `10_000_000`, `10M`. The configuration and all commands
//! read numbers with this module.

/// Reason why a text is not a count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CountError {
    /// The text does not consist of digits with an optional fraction, exponent and suffix.
    #[error("not a number; write it as 1000000, 1_000_000, 1e6 or 1M")]
    NotANumber,
    /// Digits other than 0 follow the decimal point.
    #[error("not a whole number")]
    NotWhole,
    /// The number is below zero.
    #[error("below 0")]
    Negative,
    /// The number takes more than 64 bits.
    #[error("over {}", u64::MAX)]
    TooLarge,
}

/// Reads a count: digits with `_` between them, a fraction, an exponent (`2.5e6`), and a suffix.
/// The suffixes are powers of a thousand: `k` or `K`, `M`, `G` and `T`.
///
/// The function uses no floating point, so every number up to `u64::MAX` is exact.
pub fn parse_count(text: &str) -> Result<u64, CountError> {
    if let Some(magnitude) = text.strip_prefix('-') {
        return if parse_magnitude(magnitude)? == 0 { Ok(0) } else { Err(CountError::Negative) };
    }
    parse_magnitude(text.strip_prefix('+').unwrap_or(text))
}

/// Reads a number of 0 or more, in the same forms as a count. The number may have a fraction.
pub fn parse_number(text: &str) -> Result<f64, CountError> {
    let (mantissa, power) = split_power(text.strip_prefix('+').unwrap_or(text))?;
    let (whole, fraction) = split_fraction(mantissa)?;
    // Both parts are only digits, so the text is always a number.
    format!("{whole}.{fraction}e{power}").parse().map_err(|_| CountError::NotANumber)
}

/// Reads a count without a sign.
fn parse_magnitude(unsigned: &str) -> Result<u64, CountError> {
    let (mantissa, power) = split_power(unsigned)?;
    let (whole, fraction) = split_fraction(mantissa)?;
    let all = format!("{whole}{fraction}");
    let significant = all.trim_end_matches('0');
    if significant.is_empty() {
        return Ok(0);
    }
    // The value is the digits up to the last one that is not 0, read as one whole number, times ten
    // to this power.
    let shift = i128::from(power) + whole.len() as i128 - significant.len() as i128;
    if shift < 0 {
        return Err(CountError::NotWhole);
    }
    let scale = u32::try_from(shift).ok().and_then(|shift| 10_u64.checked_pow(shift));
    let value = scale.and_then(|scale| significant.parse::<u64>().ok()?.checked_mul(scale));
    value.ok_or(CountError::TooLarge)
}

/// Splits a mantissa at its decimal point. One of the two sides may be empty.
fn split_fraction(mantissa: &str) -> Result<(String, String), CountError> {
    Ok(match mantissa.split_once('.').unwrap_or((mantissa, "")) {
        (whole, "") => (digits(whole)?, String::new()),
        ("", fraction) => (String::new(), digits(fraction)?),
        (whole, fraction) => (digits(whole)?, digits(fraction)?),
    })
}

/// Splits off a suffix and an exponent. Returns the mantissa and the power of ten.
fn split_power(text: &str) -> Result<(&str, i64), CountError> {
    let unit = match text.as_bytes().last() {
        Some(b'k' | b'K') => 3,
        Some(b'M') => 6,
        Some(b'G') => 9,
        Some(b'T') => 12,
        _ => 0,
    };
    let number = if unit == 0 { text } else { &text[..text.len() - 1] };
    let Some((mantissa, exponent)) = number.split_once(['e', 'E']) else {
        return Ok((number, unit));
    };
    let (negative, exponent) = match exponent.strip_prefix('-') {
        Some(exponent) => (true, exponent),
        None => (false, exponent.strip_prefix('+').unwrap_or(exponent)),
    };
    // An exponent too long for 64 bits counts as the largest one.
    let power: i64 = digits(exponent)?.parse().unwrap_or(i64::MAX);
    Ok((mantissa, unit.saturating_add(if negative { -power } else { power })))
}

/// Checks a text of decimal digits, and removes each single `_` between two digits.
fn digits(text: &str) -> Result<String, CountError> {
    let plain = |group: &str| !group.is_empty() && group.bytes().all(|byte| byte.is_ascii_digit());
    if text.split('_').all(plain) { Ok(text.replace('_', "")) } else { Err(CountError::NotANumber) }
}

/// Returns a number without its fraction. Numbers below zero give 0, and numbers above [`u64::MAX`]
/// give [`u64::MAX`].
#[inline]
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
pub fn whole(number: f64) -> u64 {
    number as u64
}

/// Formats a number with `_` between its thousands, as in configuration files.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.char_indices() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push('_');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn counts_can_be_written_in_all_documented_forms() {
        for (text, value) in [
            ("0", 0),
            ("-0", 0),
            ("0e999", 0),
            ("123", 123),
            ("+7", 7),
            ("007", 7),
            ("1_000", 1000),
            ("1e9", 1_000_000_000),
            ("1E9", 1_000_000_000),
            ("1e+3", 1000),
            ("1_0e1_0", 100_000_000_000),
            ("2.5e6", 2_500_000),
            ("1.0", 1),
            ("1500e-2", 15),
            ("0.001e3", 1),
            ("10k", 10_000),
            ("10K", 10_000),
            ("1.5M", 1_500_000),
            ("10G", 10_000_000_000),
            ("2T", 2_000_000_000_000),
            (".5k", 500),
            ("5.", 5),
            ("1e3k", 1_000_000),
            ("18446744073709551615", u64::MAX),
            ("18446744073709551615000e-3", u64::MAX),
        ] {
            assert_eq!(parse_count(text), Ok(value), "{text:?}");
        }
    }

    #[test]
    fn texts_that_are_not_counts_are_refused_with_a_reason() {
        use CountError::{Negative, NotANumber, NotWhole, TooLarge};
        for (why, texts) in [
            (
                NotANumber,
                &[
                    "", " 1", "many", "k", "e5", "1e", "1kk", "10m", "10 M", ".", ".k", "5..",
                    "_1", "1__0", "1_", "0x10", "nan", "inf", "١", "--1", "-many",
                ][..],
            ),
            (Negative, &["-1", "-1e3"]),
            (NotWhole, &["2.5", "1e-1", "1.2345k", "1e-99999999999999999999"]),
            (TooLarge, &["18446744073709551616", "1e20", "2e19", "1e99999999999999999999"]),
        ] {
            for text in texts {
                assert_eq!(parse_count(text), Err(why), "{text:?}");
            }
        }
    }

    #[test]
    fn a_number_need_not_be_whole() {
        for (text, value) in [("1.5", 1.5), ("0.1k", 100.0), (".5", 0.5), ("+2.5e-1", 0.25)] {
            assert_eq!(parse_number(text), Ok(value), "{text:?}");
        }
        for text in ["", "-1", "nan", "inf", "1 k", "1e", "."] {
            assert_eq!(parse_number(text), Err(CountError::NotANumber), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn every_count_reads_back_however_it_is_written(value: u64, power in 0_u32..20) {
            prop_assert_eq!(parse_count(&value.to_string()), Ok(value));
            prop_assert_eq!(parse_count(&grouped(value)), Ok(value));
            let scale = 10_u64.checked_pow(power);
            let wanted = scale.and_then(|scale| value.checked_mul(scale));
            prop_assert_eq!(parse_count(&format!("{value}e{power}")).ok(), wanted);
        }

        #[test]
        fn no_text_panics(text in "[-+0-9_.eEkKMGT]{0,12}") {
            let _ = parse_count(&text);
        }
    }
}
