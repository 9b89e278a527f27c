//! Content of a request, common to all forms of an item: its URL, its priority and its `ttl`. A
//! start URL for the sink is JSON that scrapy-redis's `RedisMixin.make_request_from_data` reads.
//! That method knows `url`, `method` and `meta`. It would turn any other key into form data, which
//! replaces the query of a GET.

use std::borrow::Cow;
use std::time::Duration;

use memchr::{memchr, memmem};

use super::Unreadable;
use urlseen_filter::Lifetime;
use urlseen_filter::choice::MARK;
use urlseen_filter::expire_after::ExpireAfter;
use urlseen_fingerprint::{Fingerprint, Request};
use urlseen_redis::reject::bounded::{Bounded, TooLong};

/// Fields of a request that people read.
pub(super) const FIELDS: [&str; 5] = ["method", "url", "fingerprint", "priority", "callback"];

/// Content of an item, as its form has it.
pub(super) enum Parsed<'a> {
    /// Request, maybe with its fingerprint.
    Request(ItemRequest<'a>),
    /// Fingerprint without a request.
    Fingerprint(Fingerprint),
}

/// Request that an item describes, with a URL, a fingerprint, or both.
#[derive(Debug, Clone, PartialEq)]
pub struct ItemRequest<'a> {
    pub(super) url: Option<Cow<'a, str>>,
    pub(super) method: Cow<'a, str>,
    pub(super) body: Cow<'a, [u8]>,
    pub(super) verbatim_url: bool,
    /// Fingerprint that the producer gave. It replaces a computed fingerprint.
    pub fingerprint: Option<Fingerprint>,
    pub(super) dont_filter: bool,
    pub(super) priority: Priority,
    /// Time after which the item is to pass again.
    pub(super) ttl: Ttl<'a>,
    /// Payload that goes to the sink in place of the item, without fingerprint and flags.
    pub(super) payload: Option<&'a [u8]>,
}

/// A GET without a body, and with neither URL nor fingerprint.
impl Default for ItemRequest<'_> {
    fn default() -> Self {
        Self {
            url: None,
            method: Cow::Borrowed("GET"),
            body: Cow::Borrowed(&[]),
            verbatim_url: false,
            fingerprint: None,
            dont_filter: false,
            priority: Priority::default(),
            ttl: Ttl::Nothing,
            payload: None,
        }
    }
}

/// Priority of a request; consumers get the highest priority first.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Priority {
    Number(f64),
    /// Description of a value that is not a number.
    Wrong(&'static str),
}

impl Default for Priority {
    fn default() -> Self {
        Self::Number(0.0)
    }
}

/// Reads a fingerprint that a producer gave as text. White space around hex digits, `0x` before
/// them and upper case make no difference. Other text stays as it is.
#[inline]
pub(super) fn given(text: &[u8]) -> Fingerprint {
    Fingerprint::from_hex(text).unwrap_or_else(|| {
        let trimmed = text.trim_ascii();
        let digits = trimmed.strip_prefix(b"0x").or(trimmed.strip_prefix(b"0X"));
        let digits = digits.unwrap_or(trimmed).to_ascii_lowercase();
        Fingerprint::from_text(if is_hex(&digits) { &digits } else { text })
    })
}

/// Returns true if text consists of the hex digits of whole bytes.
fn is_hex(text: &[u8]) -> bool {
    text.len().is_multiple_of(2) && text.iter().all(u8::is_ascii_hexdigit)
}

impl ItemRequest<'_> {
    /// Returns true if the producer gave a fingerprint that is no digest.
    #[inline]
    pub(super) fn has_odd_fingerprint(&self) -> bool {
        matches!(&self.fingerprint, Some(Fingerprint::Text(text)) if !is_hex(text))
    }

    /// Returns the request for the computation of a fingerprint; `None` if the item has no URL. An
    /// item without a URL has a [`fingerprint`](Self::fingerprint).
    pub fn request(&self) -> Option<Request<'_>> {
        self.url.as_deref().map(|url| Request {
            method: &self.method,
            url,
            body: &self.body,
            verbatim_url: self.verbatim_url,
        })
    }
}

impl Priority {
    /// Returns the score for a sorted set. Consumers pop the lowest score first, as scrapy-redis
    /// does.
    pub(super) fn score(self) -> Result<f64, Unreadable> {
        match self {
            // Avoids a score of -0.
            Self::Number(0.0) => Ok(0.0),
            Self::Number(number) if number.is_finite() => Ok(-number),
            Self::Number(_) => Err(Unreadable::Priority { found: "not finite" }),
            Self::Wrong(found) => Err(Unreadable::Priority { found }),
        }
    }
}

/// Bytes that no scheme of a URL contains. They show that an item is text of another kind. Each
/// entry has the bytes, their name and the advice.
const OTHERS: [(&[u8], &str, &str); 6] = [
    (b"[", "`[`", ", as in a list in JSON; give each request of the list as an item of its own"),
    (
        b"{",
        "`{`",
        ", as in a request in JSON; the item forms auto and json read JSON only if the item \
         begins with `{`",
    ),
    (b"\"", "`\"`", ", as in JSON or CSV; give the URL without quotes"),
    (b"(dp", "a pickle of protocol 0", "; write pickles of protocol 2 or later"),
    (b"}q", "a pickle of protocol 1", "; write pickles of protocol 2 or later"),
    (MARK, "a byte order mark (U+FEFF)", "; write the text as UTF-8 without one"),
];

/// Reads a bare URL, which stands for a GET request without a body.
#[inline]
pub(super) fn of_url(bytes: &[u8]) -> Result<ItemRequest<'_>, Unreadable> {
    let url = Some(Cow::Borrowed(bare_url(bytes)?));
    Ok(ItemRequest { url, ..ItemRequest::default() })
}

/// Reads an item as a bare URL, and returns the URL unchanged.
///
/// # Errors
/// Returns an error if the item is not UTF-8, or if it is text of another kind with a URL in it.
/// Scrapy would accept such text as a URL.
#[inline]
pub fn bare_url(bytes: &[u8]) -> Result<&str, Unreadable> {
    let is_http = bytes.starts_with(b"https:") || bytes.starts_with(b"http:");
    if !is_http {
        check_scheme(bytes)?;
    }
    std::str::from_utf8(bytes).map_err(|error| Unreadable::NotUtf8 { offset: error.valid_up_to() })
}

/// Refuses an item that has other text than a scheme (RFC 3986, 3.1) before its first colon, if it
/// has a `://` as well.
#[cold]
fn check_scheme(bytes: &[u8]) -> Result<(), Unreadable> {
    let (scheme, rest) = bytes.split_at(memchr(b':', bytes).unwrap_or(bytes.len()));
    // Scrapy ignores control characters and blanks before a URL.
    let start = scheme.iter().take_while(|&&byte| byte <= b' ').count();
    // A log has brackets and quotes elsewhere.
    let is_first = |other: &[u8]| other == b"[" || other == b"\"";
    let other = OTHERS.iter().find(|(other, ..)| match memmem::find(scheme, other) {
        Some(at) => at == start || !is_first(other),
        None => false,
    });
    if let Some((_, found, advice)) = other {
        return Err(Unreadable::BeforeScheme { found, advice });
    }
    let is_scheme = scheme.get(start).is_some_and(u8::is_ascii_alphabetic)
        && scheme[start..].iter().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(byte))
        // As in `Referer: https://example.com/`.
        && !rest.starts_with(b": ");
    if is_scheme || memmem::find(rest, b"://").is_none() {
        return Ok(());
    }
    Err(Unreadable::BeforeScheme {
        found: "other text",
        advice: ", as in a log or a table; name the URL with --find, --column or --field of \
                 urlseen filter",
    })
}

/// Value of `ttl`, the time after which an item asks to pass again, as found in the item.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) enum Ttl<'a> {
    #[default]
    Nothing,
    Number(f64),
    Text(Cow<'a, str>),
    /// Value of another type.
    Wrong,
}

impl<'a> Ttl<'a> {
    /// Reads a text: a number of seconds, or a time.
    pub(crate) fn of(text: &'a str) -> Self {
        text.parse().map_or(Self::Text(Cow::Borrowed(text)), Self::Number)
    }

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
    pub(crate) fn span(&self) -> Result<Option<Duration>, Unreadable> {
        let span = match self {
            Self::Nothing => return Ok(None),
            Self::Number(seconds) => Duration::try_from_secs_f64(*seconds).ok(),
            Self::Text(text) => humantime::parse_duration(text.trim()).ok(),
            Self::Wrong => None,
        };
        span.map(Some).ok_or(Unreadable::Ttl)
    }
}

/// Writes JSON of at most `most` bytes for the request to `url`. `meta` is JSON, or absent.
pub(super) fn write_start_url(
    url: &str,
    said: &ItemRequest<'_>,
    meta: Option<&[u8]>,
    most: usize,
) -> Result<Box<[u8]>, TooLong> {
    let mut json = Bounded::new(most).with_room(url.len() + meta.map_or(0, <[u8]>::len) + 48);
    json.push(b"{\"url\": ")?;
    json.push_json(url)?;
    let method = said.method.to_uppercase();
    if method != "GET" {
        json.push(b", \"method\": ")?;
        json.push_json(&method)?;
    }
    if let Some(meta) = meta {
        json.push(b", \"meta\": ")?;
        json.push(meta)?;
    }
    json.push(b"}")?;
    Ok(json.into_bytes().into())
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
