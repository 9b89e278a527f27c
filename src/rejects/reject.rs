//! A reject: an item that could not be read, as it is kept for people.

use std::fmt::Display;
use std::time::SystemTime;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

/// An item that could not be read.
///
/// In Redis it is a JSON object of `reason`, `time` (RFC 3339) and `item`, or `item_base64` where
/// the item is not UTF-8.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(into = "Json")]
pub struct Reject {
    /// Why it could not be read.
    pub reason: String,
    /// When it was judged, RFC 3339.
    pub time: String,
    /// The item as it was taken.
    pub item: Vec<u8>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Json {
    reason: String,
    time: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    item: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    item_base64: Option<String>,
}

impl Reject {
    /// Reads what [`to_json`] wrote. What has other fields is not ours, and is not guessed at.
    pub fn from_json(json: &[u8]) -> Option<Self> {
        let Json { reason, time, item, item_base64 } = serde_json::from_slice(json).ok()?;
        let item = match (item, item_base64) {
            (Some(text), None) => text.into_bytes(),
            (None, Some(encoded)) => STANDARD.decode(encoded).ok()?,
            _ => return None,
        };
        Some(Self { reason, time, item })
    }
}

impl From<Reject> for Json {
    fn from(reject: Reject) -> Self {
        let Reject { reason, time, item } = reject;
        let (item, item_base64) = match String::from_utf8(item) {
            Ok(text) => (Some(text), None),
            Err(error) => (None, Some(STANDARD.encode(error.as_bytes()))),
        };
        Self { reason, time, item, item_base64 }
    }
}

/// The JSON object that the rejects list holds for an item.
pub fn to_json(item: &[u8], reason: &impl Display, time: SystemTime) -> Vec<u8> {
    let time = humantime::format_rfc3339_millis(time).to_string();
    serde_json::to_vec(&Reject { reason: reason.to_string(), time, item: item.to_vec() })
        .expect("strings are JSON")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::item::Unreadable;

    #[test]
    fn a_reject_says_why_when_and_what() {
        let json = |item: &[u8]| {
            String::from_utf8(to_json(item, &Unreadable::NoTab, SystemTime::UNIX_EPOCH)).unwrap()
        };
        let head = concat!(
            r#"{"reason":"there is no tab between a fingerprint and a payload","#,
            r#""time":"1970-01-01T00:00:00.000Z","#
        );
        assert_eq!(json(b"a \"b\"\n"), format!(r#"{head}"item":"a \"b\"\n"}}"#));
        assert_eq!(json(b"\xff\x00"), format!(r#"{head}"item_base64":"/wA="}}"#));
    }

    #[test]
    fn any_item_reads_back_byte_for_byte() {
        let every_byte: Vec<u8> = (0..=255).collect();
        for item in [&b""[..], b"\0", b"a\r\n\x1b", &every_byte, "\u{feff}ü\u{10ffff}".as_bytes()]
        {
            let json = to_json(item, &Unreadable::Empty, SystemTime::UNIX_EPOCH);
            let reject = Reject::from_json(&json).unwrap();
            assert_eq!(reject.item, item);
            assert_eq!(reject.reason, Unreadable::Empty.to_string());
            assert_eq!(reject.time, "1970-01-01T00:00:00.000Z");
        }
    }

    #[test]
    fn what_is_not_ours_is_not_guessed_at() {
        for json in [
            "",
            "http://a/",
            "{}",
            "[]",
            r#"{"reason":"r","time":"t"}"#,
            r#"{"reason":"r","time":"t","item":1}"#,
            r#"{"reason":"r","time":"t","item":"a","item_base64":"YQ=="}"#,
            r#"{"reason":"r","time":"t","item_base64":"*"}"#,
            r#"{"reason":"r","time":"t","item":"a","more":1}"#,
            r#"{"reason":"r","time":"t","item":"a"} x"#,
        ] {
            assert_eq!(Reject::from_json(json.as_bytes()), None, "{json}");
        }
    }
}
