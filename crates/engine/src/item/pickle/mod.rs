//! Pickled form of an item: a request as scrapy-redis queues it. That is `pickle.dumps` of
//! `Request.to_dict`, protocols 2 to 5.
//!
//! Only data is read. `meta` and `cb_kwargs` may hold objects; the reader skips objects and never
//! creates them. An object in a field that is needed makes the item unreadable.
//!
//! The crate serde-pickle is not suitable. It refuses some ways to make objects, copies every
//! string, and copies values of the memo: a pickle of a few hundred bytes can need gigabytes.

mod code;
mod json;
mod machine;
mod opcode;
mod value;

use std::borrow::Cow;

use super::request::{FIELDS, ItemRequest, Priority, Ttl, given};
use machine::Machine;
use urlseen_fingerprint::Fingerprint;
use value::PickleValue;

/// Reader of pickles, which reuses its memory for the next pickle.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pickles {
    machine: Machine,
    /// `meta` of the request that was read last.
    meta: Option<PickleValue>,
}

/// Reason why a pickle is not a request.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)] // each variant is its message
pub enum PickleError {
    #[error("not a pickle of protocol 2 to 5: it does not begin with byte 0x80")]
    NoPickle,
    #[error("a pickle of protocol {found}; 2 to 5 are read")]
    Protocol { found: u8 },
    #[error("the pickle is cut short")]
    Short,
    #[error("the pickle is damaged: byte {at} ({opcode:#04x}) is not an opcode")]
    Opcode { opcode: u8, at: usize },
    #[error("the pickle is damaged: the opcode at byte {at} cannot be run")]
    Broken { at: usize },
    #[error("the pickle has more than {most} opcodes")]
    TooLong { most: usize },
    #[error("the pickle holds {found}, not a request as a dict")]
    NotADict { found: &'static str },
    #[error("`{field}` of the pickled request is {found}; it must be {expected}")]
    Type { field: &'static str, expected: &'static str, found: &'static str },
    #[error("`{field}` of the pickled request is not UTF-8")]
    NotUtf8 { field: &'static str },
    #[error("`body` of the pickled request is a str in an encoding other than UTF-8")]
    Encoding,
    #[error(
        "`meta` of the pickled request holds {found}, which JSON cannot express; start URLs \
         (sink.emit) are written as JSON"
    )]
    NotJson { found: &'static str },
    #[error("the pickled request has neither `url` nor `fingerprint`")]
    NoIdentity,
    #[error("`fingerprint` of the pickled request is empty; leave it out to have it computed")]
    EmptyFingerprint,
}

/// Values of the fields that are read.
#[derive(Default)]
struct PickleFields {
    url: PickleValue,
    method: PickleValue,
    body: PickleValue,
    encoding: PickleValue,
    fingerprint: PickleValue,
    dont_filter: PickleValue,
    priority: PickleValue,
    meta: PickleValue,
    verbatim_url: PickleValue,
    ttl: PickleValue,
}

impl Pickles {
    /// Reads the request that a pickle contains.
    pub(super) fn read<'a>(&mut self, pickle: &'a [u8]) -> Result<ItemRequest<'a>, PickleError> {
        self.meta = None;
        let fields = self.fields(pickle)?;
        self.meta = Some(fields.meta);
        let text = |field, value| text(pickle, field, value);
        let url = text("url", fields.url)?.map(Cow::Borrowed);
        let fingerprint = match fields.fingerprint {
            PickleValue::Text(span) => Some(given(span.of(pickle))),
            other => bytes(pickle, "fingerprint", other, "a str or bytes")?.map(|bytes| {
                // Tries hex digits first. In practice, the bytes of a raw digest are never all hex
                // digits.
                let digits = Fingerprint::from_hex(&bytes);
                let digest = digits.or_else(|| Fingerprint::from_raw(&bytes));
                digest.unwrap_or_else(|| given(&bytes))
            }),
        };
        match (&url, &fingerprint) {
            (None, None) => return Err(PickleError::NoIdentity),
            (_, Some(given)) if given.as_bytes().is_empty() => {
                return Err(PickleError::EmptyFingerprint);
            }
            _ => {}
        }
        Ok(ItemRequest {
            url,
            method: text("method", fields.method)?.map_or(Cow::Borrowed("GET"), Cow::Borrowed),
            body: body(pickle, &fields)?,
            verbatim_url: self.truth("meta.verbatim_url", fields.verbatim_url)?,
            fingerprint,
            dont_filter: self.truth("dont_filter", fields.dont_filter)?,
            priority: priority(fields.priority),
            ttl: time(pickle, fields.ttl),
            payload: None,
        })
    }

    /// Writes the `meta` of the last request as JSON. `pickle` holds that request. Returns `None`
    /// if the `meta` is empty.
    pub(super) fn meta(&self, pickle: &[u8]) -> Result<Option<Vec<u8>>, PickleError> {
        json::Writer::new(pickle, &self.machine.heap).meta(self.meta.unwrap_or(PickleValue::None))
    }

    /// Returns the fields [`FIELDS`] of a request as text for people, as far as the pickle can be
    /// run: the item may be cut off.
    pub(super) fn words(&mut self, pickle: &[u8]) -> [Option<String>; FIELDS.len()] {
        let mut found = [const { None }; FIELDS.len()];
        // A frame promises more bytes than a pickle has that is cut off.
        let is_framed = pickle.get(2) == Some(&opcode::FRAME);
        let pickle = pickle.get(if is_framed { 11 } else { 0 }..).unwrap_or_default();
        let made = self.machine.run(pickle).ok();
        for (key, value) in self.machine.pairs(made) {
            let PickleValue::Text(key) = key else { continue };
            let Some(field) = FIELDS.iter().position(|it| it.as_bytes() == key.of(pickle)) else {
                continue;
            };
            found[field] = match value {
                PickleValue::Text(text) | PickleValue::Latin1(text) => {
                    Some(String::from_utf8_lossy(text.of(pickle)).into_owned())
                }
                PickleValue::Bytes(bytes) => {
                    let bytes = bytes.of(pickle);
                    let digest = || Fingerprint::from_raw(bytes).map(|it| it.to_string());
                    str::from_utf8(bytes).map(str::to_owned).ok().or_else(digest)
                }
                PickleValue::Int(value) => Some(value.to_string()),
                PickleValue::Float(value) => Some(value.to_string()),
                _ => None,
            };
        }
        // The method of a request may be in the missing part of its pickle.
        found[0] = found[0].take().or(made.map(|_| "GET".to_owned()));
        found
    }

    /// Finds the values of the known fields in a pickle.
    fn fields(&mut self, pickle: &[u8]) -> Result<PickleFields, PickleError> {
        if pickle.first() != Some(&opcode::PROTO) {
            return Err(PickleError::NoPickle);
        }
        let request = self.machine.run(pickle)?;
        let PickleValue::Dict(dict) = request else {
            return Err(PickleError::NotADict { found: request.kind() });
        };
        let mut fields = PickleFields::default();
        for (key, value) in self.machine.heap.pairs(dict) {
            let PickleValue::Text(key) = key else { continue };
            let field = match key.of(pickle) {
                b"url" => &mut fields.url,
                b"method" => &mut fields.method,
                b"body" => &mut fields.body,
                b"encoding" => &mut fields.encoding,
                b"fingerprint" => &mut fields.fingerprint,
                b"dont_filter" => &mut fields.dont_filter,
                b"priority" => &mut fields.priority,
                b"meta" => &mut fields.meta,
                _ => continue,
            };
            *field = value;
        }
        match fields.meta {
            PickleValue::None => {}
            PickleValue::Dict(meta) => {
                for (key, value) in self.machine.heap.pairs(meta) {
                    let PickleValue::Text(key) = key else { continue };
                    match key.of(pickle) {
                        b"verbatim_url" => fields.verbatim_url = value,
                        b"ttl" => fields.ttl = value,
                        _ => {}
                    }
                }
            }
            other => return Err(wrong("meta", "a dict", other)),
        }
        Ok(fields)
    }

    /// Returns true if Python treats a value as true.
    fn truth(&self, field: &'static str, value: PickleValue) -> Result<bool, PickleError> {
        Ok(match value {
            PickleValue::None => false,
            PickleValue::Bool(value) => value,
            PickleValue::Int(value) => value != 0,
            PickleValue::BigInt => true,
            PickleValue::Float(value) => value != 0.0,
            PickleValue::Text(span) | PickleValue::Bytes(span) | PickleValue::Latin1(span) => {
                span.start < span.end
            }
            PickleValue::List(container)
            | PickleValue::Dict(container)
            | PickleValue::Tuple(container) => !self.machine.heap.values(container).is_empty(),
            PickleValue::Set
            | PickleValue::Encode
            | PickleValue::BytesType
            | PickleValue::Opaque => {
                return Err(wrong(field, "a bool", value));
            }
        })
    }
}

fn wrong(field: &'static str, expected: &'static str, found: PickleValue) -> PickleError {
    PickleError::Type { field, expected, found: found.kind() }
}

/// Reads a field as text; an absent field is `None`.
fn text<'a>(
    pickle: &'a [u8],
    field: &'static str,
    value: PickleValue,
) -> Result<Option<&'a str>, PickleError> {
    match value {
        PickleValue::None => Ok(None),
        PickleValue::Text(span) => match std::str::from_utf8(span.of(pickle)) {
            Ok(text) => Ok(Some(text)),
            Err(_) => Err(PickleError::NotUtf8 { field }),
        },
        other => Err(wrong(field, "a str", other)),
    }
}

/// Reads a field as bytes; an absent field is `None`.
fn bytes<'a>(
    pickle: &'a [u8],
    field: &'static str,
    value: PickleValue,
    expected: &'static str,
) -> Result<Option<Cow<'a, [u8]>>, PickleError> {
    match value {
        PickleValue::None => Ok(None),
        PickleValue::Bytes(span) => Ok(Some(Cow::Borrowed(span.of(pickle)))),
        PickleValue::Latin1(span) => {
            let text = std::str::from_utf8(span.of(pickle)).ok();
            let bytes = text.and_then(|text| {
                text.chars().map(|letter| u8::try_from(letter).ok()).collect::<Option<Vec<_>>>()
            });
            bytes.map(|bytes| Some(bytes.into())).ok_or(wrong(field, expected, PickleValue::Opaque))
        }
        other => Err(wrong(field, expected, other)),
    }
}

/// Reads the body. Scrapy writes the body as bytes. A `str` is encoded as in Scrapy.
fn body<'a>(pickle: &'a [u8], fields: &PickleFields) -> Result<Cow<'a, [u8]>, PickleError> {
    if let PickleValue::Text(_) = fields.body {
        let encoding = text(pickle, "encoding", fields.encoding)?.unwrap_or("utf-8");
        if !["utf-8", "utf8"].iter().any(|known| known.eq_ignore_ascii_case(encoding)) {
            return Err(PickleError::Encoding);
        }
        return Ok(text(pickle, "body", fields.body)?.unwrap_or("").as_bytes().into());
    }
    Ok(bytes(pickle, "body", fields.body, "bytes")?.unwrap_or_default())
}

/// Reads a time. Scrapy's spiders set numbers and text; objects such as a `datetime` are not read.
fn time(pickle: &[u8], value: PickleValue) -> Ttl<'_> {
    match value {
        PickleValue::None => Ttl::Nothing,
        PickleValue::Int(value) => Ttl::Number(value as f64),
        PickleValue::Float(value) => Ttl::Number(value),
        PickleValue::Text(span) => match std::str::from_utf8(span.of(pickle)) {
            Ok(text) => Ttl::Text(text.into()),
            Err(_) => Ttl::Wrong,
        },
        _ => Ttl::Wrong,
    }
}

fn priority(value: PickleValue) -> Priority {
    match value {
        PickleValue::None => Priority::default(),
        PickleValue::Bool(value) => Priority::Number(f64::from(u8::from(value))),
        PickleValue::Int(value) => Priority::Number(value as f64),
        PickleValue::Float(value) => Priority::Number(value),
        PickleValue::BigInt => Priority::Wrong("an int of more than 64 bits"),
        other => Priority::Wrong(other.kind()),
    }
}

#[cfg(test)]
mod tests;
