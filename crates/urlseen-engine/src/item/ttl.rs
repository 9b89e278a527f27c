//! Time after which an item asks to pass again: `ttl`.

use std::borrow::Cow;
use std::time::Duration;

use super::Unreadable;
use urlseen_core::filter::expire_after::ExpireAfter;
use urlseen_core::filter::lifetime::Lifetime;

/// Value of `ttl`, as found in an item.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) enum Ttl<'a> {
    #[default]
    Nothing,
    Number(f64),
    Text(Cow<'a, str>),
    /// Value of another type.
    Wrong,
}

impl Ttl<'_> {
    /// Returns the lifetime that the item asks for. `longest` is the longest one that it may have.
    pub(super) fn shorten(
        &self,
        longest: Lifetime,
        expire_after: ExpireAfter,
    ) -> Result<Lifetime, Unreadable> {
        let asked = self.span()?.map(|span| Lifetime::at_least(span, expire_after));
        Ok(longest.min(asked.unwrap_or(longest)))
    }

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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ttl_is_seconds_or_text_with_units() {
        let of = |said: Ttl<'_>| said.span().ok().flatten().map(|it| it.as_secs());
        assert_eq!(of(Ttl::Number(90.5)), Some(90));
        assert_eq!(of(Ttl::Text("1day 6h".into())), Some(108_000));
        for wrong in [-1.0, f64::NAN, 1e300] {
            assert!(matches!(Ttl::Number(wrong).span(), Err(Unreadable::Ttl)), "{wrong}");
        }
        assert!(matches!(Ttl::Text("soon".into()).span(), Err(Unreadable::Ttl)));
        assert!(matches!(Ttl::Wrong.span(), Err(Unreadable::Ttl)));
        assert!(Ttl::Nothing.span().unwrap().is_none());
    }

    #[test]
    fn a_ttl_shortens_the_lifetime() {
        let expire_after = "5h".parse().unwrap();
        let read = |ttl: Ttl<'_>, longest| ttl.shorten(longest, expire_after).unwrap();
        let hours = |hours| Lifetime::at_least(Duration::from_hours(hours), expire_after);
        assert_eq!(read(Ttl::Number(7200.0), Lifetime::WHOLE), hours(2));
        assert_eq!(read(Ttl::Number(7200.0), Lifetime::FOREVER), hours(2));
        assert_eq!(read(Ttl::Number(7200.0), hours(1)), hours(1));
        assert_eq!(read(Ttl::Nothing, Lifetime::FOREVER), Lifetime::FOREVER);
    }
}
