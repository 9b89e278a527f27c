//! Expiry that an item asks for: `ttl` and `lastmod`.

use std::borrow::Cow;
use std::time::{Duration, SystemTime};

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

use super::Unreadable;
use urlseen_core::filter::calendar::Calendar;
use urlseen_core::filter::generation::Generation;
use urlseen_core::filter::lifetime::Lifetime;

/// Expiry of an item's fingerprint, in generations of the filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Expiry {
    /// Lifetime of the fingerprint, if the item passes.
    pub lifetime: Lifetime,
    /// Generation in which the page changed last, if the item says that. A page that was let
    /// through in an earlier one passes once more.
    pub changed: Option<Generation>,
}

/// Value of `ttl` or `lastmod`, as found in an item.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) enum SaidTime<'a> {
    #[default]
    Nothing,
    Number(f64),
    Text(Cow<'a, str>),
    /// Value of another type.
    Wrong,
}

impl Expiry {
    /// Reads what an item says. `lifetime` is the longest one that the item may have.
    pub(super) fn read(
        ttl: &SaidTime<'_>,
        lastmod: &SaidTime<'_>,
        lifetime: Lifetime,
        calendar: &Calendar,
    ) -> Result<Self, Unreadable> {
        let ttl = ttl.span()?.map(|span| calendar.lifetime(span));
        let changed = lastmod.date()?.and_then(|date| calendar.generation_of(date));
        Ok(Self { lifetime: lifetime.min(ttl.unwrap_or(lifetime)), changed })
    }
}

impl SaidTime<'_> {
    /// Reads a length of time: a number of seconds, or text with units.
    fn span(&self) -> Result<Option<Duration>, Unreadable> {
        let span = match self {
            Self::Nothing => return Ok(None),
            Self::Number(seconds) => Duration::try_from_secs_f64(*seconds).ok(),
            Self::Text(text) => humantime::parse_duration(text.trim()).ok(),
            Self::Wrong => None,
        };
        span.map(Some).ok_or(Unreadable::Ttl)
    }

    /// Reads a date: seconds since 1970, or a date as in a sitemap.
    fn date(&self) -> Result<Option<SystemTime>, Unreadable> {
        let date = match self {
            Self::Nothing => return Ok(None),
            Self::Number(seconds) => Duration::try_from_secs_f64(*seconds)
                .ok()
                .and_then(|since| SystemTime::UNIX_EPOCH.checked_add(since)),
            Self::Text(text) => w3c_date(text.trim()),
            Self::Wrong => None,
        };
        date.map(Some).ok_or(Unreadable::Lastmod)
    }
}

/// Reads a date in a form of <https://www.w3.org/TR/NOTE-datetime>, which sitemaps use. A date
/// without a time zone is taken as UTC.
fn w3c_date(text: &str) -> Option<SystemTime> {
    let whole = match text.len() {
        4 => Cow::Owned(format!("{text}-01-01")),
        7 => Cow::Owned(format!("{text}-01")),
        _ => Cow::Borrowed(text),
    };
    let midnight = |date: Date| date.to_zoned(TimeZone::UTC);
    let instant = whole.parse::<Timestamp>().ok();
    let instant = instant.or_else(|| {
        let local = whole.parse::<jiff::civil::DateTime>().ok()?;
        Some(local.to_zoned(TimeZone::UTC).ok()?.timestamp())
    });
    let instant = instant.or_else(|| Some(Zoned::timestamp(&midnight(whole.parse().ok()?).ok()?)));
    instant.map(SystemTime::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_of_sitemaps_are_read() {
        let day = 1_793_664_000; // 2026-11-03
        for (text, seconds) in [
            ("2026-11-03", day),
            ("2026-11", day - 2 * 86_400),
            ("2026", 1_767_225_600),
            ("2026-11-03T12:30Z", day + 45_000),
            ("2026-11-03T12:30:15+02:00", day + 37_815),
            (" 2026-11-03T12:30:15.25Z\n", day + 45_015),
            ("2026-11-03 12:30:15", day + 45_015),
        ] {
            let date = SaidTime::Text(text.into()).date().unwrap().unwrap();
            let since = date.duration_since(SystemTime::UNIX_EPOCH).unwrap();
            assert_eq!(since.as_secs(), seconds, "{text}");
        }
        for text in ["", "yesterday", "2026-13-01", "03.11.2026", "2026-11-03T25:00Z"] {
            let refused = SaidTime::Text(text.into()).date();
            assert!(matches!(refused, Err(Unreadable::Lastmod)), "{text}");
        }
    }

    #[test]
    fn a_ttl_is_seconds_or_text_with_units() {
        let of = |said: SaidTime<'_>| said.span().ok().flatten().map(|it| it.as_secs());
        assert_eq!(of(SaidTime::Number(90.5)), Some(90));
        assert_eq!(of(SaidTime::Text("1day 6h".into())), Some(108_000));
        for wrong in [-1.0, f64::NAN, 1e300] {
            assert!(matches!(SaidTime::Number(wrong).span(), Err(Unreadable::Ttl)), "{wrong}");
        }
        assert!(matches!(SaidTime::Text("soon".into()).span(), Err(Unreadable::Ttl)));
        assert!(matches!(SaidTime::Wrong.span(), Err(Unreadable::Ttl)));
        assert!(SaidTime::Nothing.span().unwrap().is_none());
    }

    #[test]
    fn a_ttl_shortens_the_lifetime() {
        let now = Generation::new(50);
        let calendar = Calendar::new("5h".parse().unwrap(), now, SystemTime::now());
        let read = |ttl, lifetime| {
            let expiry = Expiry::read(&ttl, &SaidTime::Nothing, lifetime, &calendar);
            expiry.unwrap().lifetime
        };
        let hours = |hours| Lifetime::at_least(Duration::from_hours(hours), "5h".parse().unwrap());
        assert_eq!(read(SaidTime::Number(7200.0), Lifetime::WHOLE), hours(2));
        assert_eq!(read(SaidTime::Number(7200.0), Lifetime::FOREVER), hours(2));
        assert_eq!(read(SaidTime::Number(7200.0), hours(1)), hours(1));
        assert_eq!(read(SaidTime::Nothing, Lifetime::FOREVER), Lifetime::FOREVER);
    }
}
