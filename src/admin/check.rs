//! Body and answer of `POST /check`, with which a client asks whether the filter has seen some
//! items.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

/// Body of `POST /check`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CheckQuery {
    pub(crate) items: Vec<ItemText>,
}

/// Item as a value in JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum ItemText {
    /// Item that is UTF-8 text.
    Text(String),
    /// Item that is not UTF-8.
    #[serde(rename_all = "snake_case")]
    Encoded {
        /// Bytes in base64, with padding.
        base64: String,
    },
}

impl ItemText {
    /// Represents an item in JSON: as text if it is UTF-8, else as base64.
    pub(crate) fn of(item: &[u8]) -> Self {
        match std::str::from_utf8(item) {
            Ok(text) => Self::Text(text.to_owned()),
            Err(_) => Self::Encoded { base64: STANDARD.encode(item) },
        }
    }

    /// Returns the bytes of the item; `None` if the base64 is not valid.
    pub(crate) fn into_bytes(self) -> Option<Vec<u8>> {
        match self {
            Self::Text(text) => Some(text.into_bytes()),
            Self::Encoded { base64 } => STANDARD.decode(base64).ok(),
        }
    }
}

/// Answer to `POST /check`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Verdicts {
    /// Verdicts, one for each item, in order.
    pub(crate) items: Vec<Checked>,
}

/// Result of the check of one item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "kebab-case")]
pub enum Checked {
    /// Item whose fingerprint was seen before or is in flight.
    Seen {
        /// Fingerprint of the item, as text.
        fingerprint: String,
    },
    /// Item that was not seen before.
    Unseen {
        /// Fingerprint of the item, as text.
        fingerprint: String,
    },
    /// Item that the daemon would emit without asking the filter, because the item has
    /// `dont_filter` or matches a rule of `[[pass]]`.
    Unfiltered,
    /// Item that the daemon would drop, because of a rule of `[[drop]]`.
    Dropped {
        /// Name of the rule that drops the item.
        rule: String,
    },
    /// Item that would be rejected.
    Unreadable {
        /// Reason of the rejection.
        reason: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_of_any_bytes_go_through_json() {
        for item in [&b"http://a/\"?\n"[..], b"", b"\xff\x00", "ü".as_bytes()] {
            let json = serde_json::to_string(&ItemText::of(item)).unwrap();
            let back: ItemText = serde_json::from_str(&json).unwrap();
            assert_eq!(back.into_bytes().as_deref(), Some(item), "{json}");
        }
        assert_eq!(ItemText::Encoded { base64: "*".to_owned() }.into_bytes(), None);
    }
}
