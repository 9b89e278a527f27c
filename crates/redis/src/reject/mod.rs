//! Rejects: records of items that urlseen could not read, stored for people.

pub mod bounded;

use std::borrow::Cow;
use std::fmt::{Display, Write as _};
use std::time::SystemTime;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize, Serializer};
use sha1::{Digest, Sha1};

use crate::reject::bounded::{Bounded, most_made};

/// Maximum number of bytes that a shortened reject has from the start of its item.
pub const BEGINNING: usize = 4096;

/// Maximum size of a reason in bytes, because some reasons repeat parts of the item.
const REASON: usize = 2048;

/// Record of an item that could not be read.
///
/// A reject in Redis is a JSON object of `reason`, `time` (RFC 3339) and `item`, or `item_base64`
/// if the item is not UTF-8. A shortened reject has `bytes`, `sha1` and `begins`, or
/// `begins_base64`, in place of the item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reject {
    /// Reason why the item could not be read.
    pub reason: String,
    /// Time when the item was rejected, in RFC 3339.
    pub time: String,
    /// Content of the item, or its description.
    pub item: RejectedItem,
}

/// Item of a reject: the whole item, or only a description.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RejectedItem {
    /// Whole item, as the daemon claimed it from the source.
    Whole(Vec<u8>),
    /// Description of an item that is too large for its reject.
    Shortened {
        /// Length of the item in bytes.
        bytes: u64,
        /// SHA-1 of the item in hex.
        sha1: String,
        /// First bytes of the item.
        begins: Vec<u8>,
    },
}

/// Form of a reject in JSON.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Json<'a> {
    reason: Cow<'a, str>,
    time: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    item: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    item_base64: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sha1: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    begins: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    begins_base64: Option<String>,
}

impl Reject {
    /// Reads an object that [`write()`] made. An object with other fields was not written by
    /// urlseen, and is refused.
    pub fn from_json(json: &[u8]) -> Option<Self> {
        let Json { reason, time, item, item_base64, bytes, sha1, begins, begins_base64 } =
            serde_json::from_slice(json).ok()?;
        let decoded = |text: Option<Cow<'_, str>>, encoded| match (text, encoded) {
            (Some(text), None) => Some(text.into_owned().into_bytes()),
            (None, Some(encoded)) => STANDARD.decode::<String>(encoded).ok(),
            _ => None,
        };
        let has_item = item.is_some() || item_base64.is_some();
        let item = match (bytes, sha1) {
            (None, None) if begins.is_none() && begins_base64.is_none() => {
                RejectedItem::Whole(decoded(item, item_base64)?)
            }
            (Some(bytes), Some(sha1)) if !has_item => {
                let begins = decoded(begins, begins_base64)?;
                RejectedItem::Shortened { bytes, sha1: sha1.into_owned(), begins }
            }
            _ => return None,
        };
        Some(Self { reason: reason.into_owned(), time: time.into_owned(), item })
    }
}

impl Serialize for Reject {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { reason, time, item } = self;
        let mut json = Json { reason: reason.into(), time: time.into(), ..Json::default() };
        match item {
            RejectedItem::Whole(item) => (json.item, json.item_base64) = encoded(item),
            RejectedItem::Shortened { bytes, sha1, begins } => {
                (json.bytes, json.sha1) = (Some(*bytes), Some(sha1.into()));
                (json.begins, json.begins_base64) = encoded(begins);
            }
        }
        json.serialize(serializer)
    }
}

/// Encodes bytes as text, or as base64 if they are not UTF-8.
fn encoded(bytes: &[u8]) -> (Option<Cow<'_, str>>, Option<String>) {
    match std::str::from_utf8(bytes) {
        Ok(text) => (Some(text.into()), None),
        Err(_) => (None, Some(STANDARD.encode(bytes))),
    }
}

/// Writes the JSON object that is stored for an item. It has at most [`most_made`] bytes.
pub fn write(item: &[u8], reason: &impl Display, time: SystemTime) -> Vec<u8> {
    let [reason, time] = head(reason, time);
    let mut fields = Json { reason: reason.into(), time: time.into(), ..Json::default() };
    if let Ok(text) = std::str::from_utf8(item) {
        let mut json = Bounded::new(most_made(item.len()));
        fields.item = Some(text.into());
        if json.push_json(&fields).is_ok() {
            return json.into_bytes();
        }
        // Escapes can make a text six times as long, and base64 makes it only a third longer.
        fields.item = None;
    }
    fields.item_base64 = Some(STANDARD.encode(item));
    serde_json::to_vec(&fields).expect("strings are JSON")
}

/// Writes the JSON object for an item that is too large for it: its length, SHA-1 and first bytes.
pub fn shortened(item: &[u8], reason: &impl Display, time: SystemTime) -> Vec<u8> {
    let [reason, time] = head(reason, time);
    let begins = beginning(item).to_vec();
    let item = RejectedItem::Shortened { bytes: item.len() as u64, sha1: sha1(item), begins };
    serde_json::to_vec(&Reject { reason, time, item }).expect("strings are JSON")
}

/// Returns the reason, cut if it is long, and the time.
fn head(reason: &impl Display, time: SystemTime) -> [String; 2] {
    let mut reason = reason.to_string();
    if reason.len() > REASON {
        reason.truncate(reason.floor_char_boundary(REASON));
        reason.push('…');
    }
    [reason, humantime::format_rfc3339_millis(time).to_string()]
}

/// Returns the first bytes of an item, without a part of a character at the end.
fn beginning(item: &[u8]) -> &[u8] {
    let begins = &item[..item.len().min(BEGINNING)];
    match std::str::from_utf8(begins) {
        Err(error) if error.error_len().is_none() => &begins[..error.valid_up_to()],
        _ => begins,
    }
}

/// Computes SHA-1 in hex.
fn sha1(bytes: &[u8]) -> String {
    Sha1::digest(bytes).iter().fold(String::with_capacity(40), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NO_TAB: &str = "there is no tab between a fingerprint and a payload";

    fn to_json(item: &[u8], reason: &str) -> Vec<u8> {
        write(item, &reason, SystemTime::UNIX_EPOCH)
    }

    #[test]
    fn a_reject_has_reason_time_and_item() {
        let json = |item: &[u8]| String::from_utf8(to_json(item, NO_TAB)).unwrap();
        let head = concat!(
            r#"{"reason":"there is no tab between a fingerprint and a payload","#,
            r#""time":"1970-01-01T00:00:00.000Z","#
        );
        assert_eq!(json(b"a \"b\"\n"), format!(r#"{head}"item":"a \"b\"\n"}}"#));
        assert_eq!(json(b"\xff\x00"), format!(r#"{head}"item_base64":"/wA="}}"#));
    }

    #[test]
    fn any_item_is_read_from_its_reject_byte_for_byte() {
        let every_byte: Vec<u8> = (0..=255).collect();
        for item in [&b""[..], b"\0", b"a\r\n\x1b", &every_byte, "\u{feff}ü\u{10ffff}".as_bytes()]
        {
            let json = to_json(item, NO_TAB);
            let reject = Reject::from_json(&json).unwrap();
            assert_eq!(reject.item, RejectedItem::Whole(item.to_vec()));
            assert_eq!(reject.reason, NO_TAB);
            assert_eq!(reject.time, "1970-01-01T00:00:00.000Z");
            assert_eq!(serde_json::to_vec(&reject).unwrap(), json);
        }
    }

    #[test]
    fn a_shortened_reject_has_beginning_length_and_hash() {
        let text = "ü".repeat(4000);
        for (item, begins) in [
            (text.as_bytes(), &text.as_bytes()[..4096]),
            (format!("a{text}").as_bytes(), format!("a{}", "ü".repeat(2047)).as_bytes()),
            (&[0xff; 5000][..], &[0xff; 4096][..]),
            (b"abc", b"abc"),
        ] {
            let json = shortened(item, &NO_TAB, SystemTime::UNIX_EPOCH);
            let reject = Reject::from_json(&json).unwrap();
            let RejectedItem::Shortened { bytes, sha1, begins: found } = &reject.item else {
                panic!("{reject:?}");
            };
            assert_eq!((*bytes, &found[..]), (item.len() as u64, begins));
            assert_eq!(*sha1, super::sha1(item));
            assert_eq!(serde_json::to_vec(&reject).unwrap(), json);
        }
        assert_eq!(sha1(b"abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
    }

    /// A reason can be long, because some reasons repeat a part of the item.
    #[test]
    fn a_reject_has_the_whole_item_and_is_at_most_twice_as_long() {
        const LENGTHS: [usize; 5] = [0, 10, 4000, 100_000, 3_000_000];
        let reasons = ["ü".repeat(100_000), "\u{1}".repeat(100_000), String::new()];
        for (reason, length) in reasons.iter().flat_map(|it| LENGTHS.map(|length| (it, length))) {
            for byte in [b'x', 1, 0xff, b'"'] {
                let item = vec![byte; length];
                let json = to_json(&item, reason);
                assert!(json.len() <= most_made(length), "{byte} {length}: {}", json.len());
                let reject = Reject::from_json(&json).unwrap();
                assert!(reject.item == RejectedItem::Whole(item));
            }
        }
        let large = vec![1; 64 << 10];
        assert!(shortened(&large, &reasons[1], SystemTime::now()).len() <= most_made(large.len()));
    }

    #[test]
    fn objects_of_other_programs_are_refused() {
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
            r#"{"reason":"r","time":"t","item":"a","begins":"a"}"#,
            r#"{"reason":"r","time":"t","bytes":1,"begins":"a"}"#,
            r#"{"reason":"r","time":"t","item":"a","bytes":1,"sha1":"","begins":"a"}"#,
            r#"{"reason":"r","time":"t","bytes":1,"sha1":""}"#,
        ] {
            assert_eq!(Reject::from_json(json.as_bytes()), None, "{json}");
        }
    }
}
