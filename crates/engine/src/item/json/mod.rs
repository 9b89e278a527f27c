//! JSON form of an item: an object with a URL or a fingerprint, and any other fields of its
//! producer.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::Deserialize;
use serde::de::{self, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::request::{FIELDS, ItemRequest, Priority, Ttl, given};
use urlseen_filter::choice::unmarked;

/// Reason why a JSON item is not a request.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)] // the messages explain the fields
pub enum JsonError {
    /// Text that is not JSON or not UTF-8, or JSON that is not an object.
    #[error("not a JSON object: {0}")]
    Syntax(#[from] serde_json::Error),
    /// Field with a value of another type.
    #[error("`{field}` is {found}; it must be {expected}")]
    Type { field: &'static str, expected: &'static str, found: &'static str },
    /// `body_base64` that cannot be decoded.
    #[error("`body_base64` is not standard base64 with padding: {0}")]
    Base64(base64::DecodeError),
    /// Object with two bodies.
    #[error("there are both `body` and `body_base64`; give one of them")]
    TwoBodies,
    /// Encoding that urlseen cannot hash. Scrapy encodes the URL and the body in it.
    #[error(
        "`encoding` is not UTF-8, and the URL or the body has characters that are not ASCII; give \
         a URL with percent-escapes and `body_base64`"
    )]
    Encoding,
    /// Object with neither a URL nor a fingerprint.
    #[error("there is neither `url` nor `fingerprint`; give one of them")]
    NoIdentity,
    /// Empty fingerprint. All items with an empty fingerprint would be equal.
    #[error("`fingerprint` is empty; leave it out to have it computed from `url`")]
    EmptyFingerprint,
}

/// Reads the fields that urlseen needs from a JSON object. Text without escapes is borrowed. `line`
/// may hold only the object, white space, and a byte order mark at its start.
///
/// ```json
/// {"url": "https://example.com/", "method": "POST", "body": "a=1", "meta": {"depth": 3}}
/// ```
/// | field | value | default |
/// |---|---|---|
/// | `url` | text, required unless there is a `fingerprint` | |
/// | `method` | text | `GET` |
/// | `body` | text, hashed as UTF-8 | empty |
/// | `body_base64` | standard base64, in place of `body` | |
/// | `encoding` | `utf-8`, unless `url` and `body` are ASCII | `utf-8` |
/// | `fingerprint` | hex digits: the fingerprint, ready made | computed |
/// | `dont_filter` | boolean: pass on unchecked and unrecorded, as Scrapy does | false |
/// | `meta.verbatim_url` | boolean: the URL is sent unchanged | false |
/// | `priority` | number: the urgency, for a sorted set as sink | 0 |
/// | `ttl`, `meta.ttl` | seconds, or a time such as `12h`: pass again after it | |
///
/// `null` means that the field is absent. Other fields may hold anything. If a key is repeated, the
/// last one counts, as in Python.
pub fn read(line: &[u8]) -> Result<ItemRequest<'_>, JsonError> {
    let mut deserializer = serde_json::Deserializer::from_slice(unmarked(line));
    let fields = deserializer.deserialize_map(FieldsVisitor)?;
    deserializer.end()?;
    let meta = match fields.meta {
        FieldValue::Object(meta) => *meta,
        FieldValue::Null => MetaFields::default(),
        other => return Err(wrong("meta", "an object", other.kind())),
    };
    let body = fields.body.text("body")?;
    let body_base64 = fields.body_base64.text("body_base64")?;
    let url = fields.url.text("url")?;
    let encoding = fields.encoding.text("encoding")?;
    let is_utf8 = encoding.is_none_or(|it| it.eq_ignore_ascii_case("utf-8"));
    let is_ascii = |text: &Option<Cow<'_, str>>| text.as_ref().is_none_or(|it| it.is_ascii());
    if !(is_utf8 || is_ascii(&url) && is_ascii(&body)) {
        return Err(JsonError::Encoding);
    }
    let method = fields.method.text("method")?.unwrap_or(Cow::Borrowed("GET"));
    let body = match (body, body_base64) {
        (Some(_), Some(_)) => return Err(JsonError::TwoBodies),
        (Some(Cow::Borrowed(text)), None) => Cow::Borrowed(text.as_bytes()),
        (Some(Cow::Owned(text)), None) => Cow::Owned(text.into_bytes()),
        (None, Some(base64)) => {
            let decoded = BASE64_STANDARD.decode(base64.as_bytes());
            Cow::Owned(decoded.map_err(JsonError::Base64)?)
        }
        (None, None) => Cow::Borrowed(&[][..]),
    };
    let fingerprint = fields.fingerprint.text("fingerprint")?;
    let truth =
        |field, found: Result<bool, _>| found.map_err(|found| wrong(field, "true or false", found));
    let dont_filter = truth("dont_filter", fields.dont_filter.truth())?;
    let verbatim_url = truth("meta.verbatim_url", meta.verbatim_url.truth())?;
    let ttl = fields.ttl.time_or(meta.ttl);
    match (&url, &fingerprint) {
        (None, None) => return Err(JsonError::NoIdentity),
        (_, Some(fingerprint)) if fingerprint.is_empty() => {
            return Err(JsonError::EmptyFingerprint);
        }
        _ => {}
    }
    let fingerprint = fingerprint.map(|text| given(text.as_bytes()));
    let priority = fields.priority.priority();
    Ok(ItemRequest {
        url,
        method,
        body,
        verbatim_url,
        fingerprint,
        dont_filter,
        priority,
        ttl,
        payload: None,
    })
}

/// Cuts the `meta` out of an item in JSON, unchanged. Returns `None` if the `meta` is empty.
pub(super) fn meta_of_json(item: &[u8]) -> Result<Option<&[u8]>, JsonError> {
    // If a key is repeated, its last value counts.
    let fields: BTreeMap<FieldName<'_>, &RawValue> = serde_json::from_slice(unmarked(item))?;
    let meta = fields.get(&FieldName(Cow::Borrowed("meta"))).map(|meta| meta.get().as_bytes());
    let is_empty =
        |meta: &[u8]| meta == b"null" || meta.iter().all(|byte| b"{} \t\r\n".contains(byte));
    Ok(meta.filter(|meta| !is_empty(meta)))
}

/// Returns the fields [`FIELDS`] of a JSON object as text for people.
pub(super) fn words(line: &[u8]) -> [Option<String>; FIELDS.len()] {
    let fields = serde_json::from_slice::<BTreeMap<FieldName<'_>, &RawValue>>(unmarked(line));
    let fields = fields.unwrap_or_default();
    FIELDS.map(|name| {
        let value = fields.get(&FieldName(Cow::Borrowed(name))).map_or("null", |it| it.get());
        match value.as_bytes() {
            b"null" if name == "method" => Some("GET".to_owned()),
            b"null" | [b'{' | b'[', ..] => None,
            _ => Some(serde_json::from_str(value).unwrap_or_else(|_| value.to_owned())),
        }
    })
}

fn wrong(field: &'static str, expected: &'static str, found: &'static str) -> JsonError {
    JsonError::Type { field, expected, found }
}

/// Values of the known fields, as found. If a field is repeated, its last value counts.
#[derive(Default)]
struct JsonFields<'a> {
    url: FieldValue<'a>,
    method: FieldValue<'a>,
    body: FieldValue<'a>,
    body_base64: FieldValue<'a>,
    encoding: FieldValue<'a>,
    fingerprint: FieldValue<'a>,
    dont_filter: FieldValue<'a>,
    priority: FieldValue<'a>,
    ttl: FieldValue<'a>,
    meta: FieldValue<'a>,
}

/// Values of the known fields of `meta`.
#[derive(Default)]
struct MetaFields<'a> {
    verbatim_url: FieldValue<'a>,
    ttl: FieldValue<'a>,
}

/// Value of any type. Only text, booleans and numbers keep their value.
#[derive(Default)]
enum FieldValue<'a> {
    #[default]
    Null,
    Text(Cow<'a, str>),
    Boolean(bool),
    /// Number, rounded to a double as in Redis.
    Number(f64),
    /// Object, with the values of its fields that are known in `meta`.
    Object(Box<MetaFields<'a>>),
    List,
}

impl<'a> FieldValue<'a> {
    fn text(self, field: &'static str) -> Result<Option<Cow<'a, str>>, JsonError> {
        match self {
            Self::Null => Ok(None),
            Self::Text(text) => Ok(Some(text)),
            other => Err(wrong(field, "text", other.kind())),
        }
    }

    /// Returns the value of a boolean; the error describes a value of another type.
    fn truth(&self) -> Result<bool, &'static str> {
        match self {
            Self::Null => Ok(false),
            Self::Boolean(value) => Ok(*value),
            other => Err(other.kind()),
        }
    }

    /// Returns a time; that of `other` if there is none.
    fn time_or(self, other: Self) -> Ttl<'a> {
        match if matches!(self, Self::Null) { other } else { self } {
            Self::Null => Ttl::Nothing,
            Self::Number(number) => Ttl::Number(number),
            Self::Text(text) => Ttl::Text(text),
            Self::Boolean(_) | Self::Object(_) | Self::List => Ttl::Wrong,
        }
    }

    fn priority(&self) -> Priority {
        match self {
            Self::Null => Priority::default(),
            Self::Number(number) => Priority::Number(*number),
            other => Priority::Wrong(other.kind()),
        }
    }

    /// Returns the type of the value in words, for a message.
    fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Text(_) => "text",
            Self::Boolean(_) => "true or false",
            Self::Number(_) => "a number",
            Self::Object(_) => "an object",
            Self::List => "a list",
        }
    }
}

struct FieldsVisitor;

impl<'de> Visitor<'de> for FieldsVisitor {
    type Value = JsonFields<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<JsonFields<'de>, A::Error> {
        let mut fields = JsonFields::default();
        while let Some(FieldName(key)) = map.next_key()? {
            match &*key {
                "url" => fields.url = map.next_value()?,
                "method" => fields.method = map.next_value()?,
                "body" => fields.body = map.next_value()?,
                "body_base64" => fields.body_base64 = map.next_value()?,
                "encoding" => fields.encoding = map.next_value()?,
                "fingerprint" => fields.fingerprint = map.next_value()?,
                "dont_filter" => fields.dont_filter = map.next_value()?,
                "priority" => fields.priority = number(&mut map)?,
                "ttl" => fields.ttl = number(&mut map)?,
                "meta" => fields.meta = map.next_value()?,
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(fields)
    }
}

/// Reads a value that may be a number over 1.8e308, which is infinite, as in Python.
fn number<'de, A: MapAccess<'de>>(map: &mut A) -> Result<FieldValue<'de>, A::Error> {
    let raw: &RawValue = map.next_value()?;
    Ok(serde_json::from_str(raw.get()).unwrap_or(FieldValue::Number(f64::INFINITY)))
}

/// Key of a field, borrowed if it has no escapes.
#[derive(Deserialize, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FieldName<'a>(#[serde(borrow)] pub(super) Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for FieldValue<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = FieldValue<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_unit<E: de::Error>(self) -> Result<FieldValue<'de>, E> {
        Ok(FieldValue::Null)
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<FieldValue<'de>, E> {
        Ok(FieldValue::Boolean(value))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<FieldValue<'de>, E> {
        Ok(FieldValue::Number(number as f64))
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<FieldValue<'de>, E> {
        Ok(FieldValue::Number(number as f64))
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<FieldValue<'de>, E> {
        Ok(FieldValue::Number(number))
    }

    fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<FieldValue<'de>, E> {
        Ok(FieldValue::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<FieldValue<'de>, E> {
        Ok(FieldValue::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<FieldValue<'de>, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(FieldValue::List)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<FieldValue<'de>, A::Error> {
        let mut fields = MetaFields::default();
        while let Some(FieldName(key)) = map.next_key()? {
            match &*key {
                "verbatim_url" => fields.verbatim_url = map.next_value()?,
                "ttl" => fields.ttl = map.next_value()?,
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(FieldValue::Object(Box::new(fields)))
    }
}

#[cfg(test)]
mod tests;
