//! A reject: an item that could not be read, as it is kept for people.

use std::time::SystemTime;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;

use crate::item::Unreadable;

#[derive(Serialize)]
struct Reject<'a> {
    reason: String,
    /// When it was judged, RFC 3339.
    time: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    item: Option<&'a str>,
    /// The item where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    item_base64: Option<String>,
}

/// The JSON object that the rejects list holds for an item.
pub fn to_json(item: &[u8], reason: &Unreadable, time: SystemTime) -> Vec<u8> {
    let text = std::str::from_utf8(item).ok();
    serde_json::to_vec(&Reject {
        reason: reason.to_string(),
        time: humantime::format_rfc3339_millis(time).to_string(),
        item: text,
        item_base64: text.is_none().then(|| STANDARD.encode(item)),
    })
    .expect("strings are JSON")
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
