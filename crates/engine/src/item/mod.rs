//! Items of the source, and the forms that they can have.
//!
//! A new form needs one new file with a `read` function, a variant of [`ItemForm`], and one line in
//! [`Reader::read`].

pub mod batch;
mod content;
pub(crate) mod findings;
mod items;
pub mod json;
pub mod key;
mod pickle;
mod reader;
mod request;
mod tab;

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

pub use content::{ItemContent, ItemSummary, OwnedRequest};
pub use findings::{Fate, Findings, OverLimit};
pub use items::Items;
use json::JsonError;
use key::NoKey;
pub(crate) use pickle::PickleError;
pub(crate) use request::Ttl;
pub use request::{ItemRequest, bare_url};

pub use reader::{Decision, ExpireRule, NamedRule, Options, Reader};
pub use urlseen_filter::choice::{Emit, ItemForm};
use urlseen_filter::{Lifetime, PlacementError};
use urlseen_fingerprint::canonical::CanonicalizeError;
use urlseen_fingerprint::choices;
use urlseen_fingerprint::{Fingerprint, Partition};

/// Item as read from its bytes.
#[derive(Debug, PartialEq)]
pub struct Item<'a> {
    /// Identity of the item, which the filter judges.
    pub identity: Identity,
    /// URL as received, if the item has a URL.
    pub(crate) url: Option<Cow<'a, str>>,
    /// True if the item contains its fingerprint, which rules `[[same]]` do not change.
    pub(crate) has_own_fingerprint: bool,
    /// Replacement for the sink; `None` if the item is pushed as received.
    pub emitted: Option<Box<[u8]>>,
    /// Number of the rule that lets the item pass unchecked ([`Options::pass`]).
    pub passed: Option<u16>,
    /// Score in a sorted set; consumers pop the lowest score first.
    pub score: f64,
    /// Lifetime of the fingerprint. The default if the filter's fingerprints do not expire.
    pub(crate) lifetime: Lifetime,
}

impl Item<'_> {
    /// Makes an item that has only an identity. If `has_own_fingerprint` is true, that is a
    /// fingerprint of its own.
    #[inline]
    fn only(identity: Identity, has_own_fingerprint: bool) -> Self {
        let (url, emitted, passed, score) = (None, None, None, 0.0);
        let lifetime = Lifetime::default();
        Self { identity, url, has_own_fingerprint, emitted, passed, score, lifetime }
    }
}

/// Identity of an item, which the filter judges.
#[derive(Debug, PartialEq, Eq)]
pub enum Identity {
    /// Fingerprint. The item is seen if the filter holds this fingerprint.
    Fingerprint(Fingerprint),
    /// Item that passes unchecked and unrecorded, because of its `dont_filter` or a rule.
    Unfiltered,
    /// Item that never passes, because of the rule with this number ([`Options::drop`]).
    Dropped(u16),
}

/// Reason why an item could not be read.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)] // each variant is its message
pub enum Unreadable {
    #[error("the item is empty")]
    Empty,
    #[error("the URL is not UTF-8: byte {offset} begins no character")]
    NotUtf8 { offset: usize },
    #[error("{0}")]
    Url(#[from] CanonicalizeError),
    #[error("there is {found} before the scheme of the URL{advice}")]
    BeforeScheme { found: &'static str, advice: &'static str },
    #[error("{0}")]
    NoKey(#[from] NoKey),
    #[error("{0}")]
    Json(#[from] JsonError),
    #[error("there is no tab between a fingerprint and a payload")]
    NoTab,
    #[error("the fingerprint contains a tab; use the item form `tab` for items with a payload")]
    TabInFingerprint,
    #[error(
        "the flags between fingerprint and payload are wrong; they are `&`, or any of \
         `&dont_filter`, `&priority=NUMBER` and `&ttl=TIME`"
    )]
    Flags,
    #[error("{0}")]
    Pickle(#[from] PickleError),
    #[error(
        "`fingerprint` is not the hex digits of a digest; set source.item to `json` or `pickle` \
         to accept any text"
    )]
    Fingerprint,
    #[error("`ttl` is neither a number of seconds nor a time such as \"12h\" or \"3d\"")]
    Ttl,
    #[error("the item has no URL to emit (sink.emit is not `item`)")]
    NothingToEmit,
    #[error(
        "the priority is {found}; a sink that sorts by it (sink.kind is `zset`) needs a finite \
         number"
    )]
    Priority { found: &'static str },
    #[error(
        "the fingerprint belongs to partition {owner}, and this is partition {}",
        .here.number()
    )]
    OtherPartition { owner: Partition, here: Partition },
    #[error("{length} bytes are not a digest; a digest has 16, 20 or 32 bytes")]
    NoDigest { length: usize },
    #[error("a filter of this kind cannot hold the fingerprint: {0}")]
    NoPlace(PlacementError),
    #[error("the output (sink.emit) has more than {most} bytes, over twice the size of the item")]
    Grown { most: usize },
    #[error("the item has {length} bytes, more than source.item_bytes ({most})")]
    TooLarge { length: usize, most: usize },
}

choices! {
    /// Reason of a reject, without the details of the item. A new reason is one line here, and its
    /// place in [`RejectReason::of`].
    #[derive(PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    RejectReason {
        /// The item has no bytes.
        Empty = "empty",
        /// The URL is invalid or not UTF-8.
        Url = "url",
        /// The JSON is invalid, or has a value of the wrong type.
        Json = "json",
        /// The pickle is invalid, or has a value of the wrong type.
        Pickle = "pickle",
        /// The fingerprint is missing, it or its flags are malformed, or the filter cannot hold it.
        Fingerprint = "fingerprint",
        /// The `ttl` is not a time.
        Expiry = "expiry",
        /// The priority is not a finite number.
        Priority = "priority",
        /// The fingerprint belongs to another partition.
        Partition = "partition",
        /// The output for the sink is missing or too large.
        Output = "output",
        /// The item is larger than `source.item_bytes`.
        Size = "size",
    }
}

impl RejectReason {
    /// Returns the reason for a message.
    pub fn of(unreadable: &Unreadable) -> Self {
        match unreadable {
            Unreadable::Empty => Self::Empty,
            Unreadable::NotUtf8 { .. }
            | Unreadable::Url(_)
            | Unreadable::BeforeScheme { .. }
            | Unreadable::NoKey(_) => Self::Url,
            Unreadable::Json(_) => Self::Json,
            Unreadable::Pickle(_) => Self::Pickle,
            Unreadable::NoTab
            | Unreadable::TabInFingerprint
            | Unreadable::Flags
            | Unreadable::Fingerprint
            | Unreadable::NoDigest { .. }
            | Unreadable::NoPlace(_) => Self::Fingerprint,
            Unreadable::Ttl => Self::Expiry,
            Unreadable::Priority { .. } => Self::Priority,
            Unreadable::OtherPartition { .. } => Self::Partition,
            Unreadable::NothingToEmit | Unreadable::Grown { .. } => Self::Output,
            Unreadable::TooLarge { .. } => Self::Size,
        }
    }
}

/// Form of the items to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Form of the items in a source.
    Item(ItemForm),
    /// Raw bytes of digests that the caller has checked. No source holds such items.
    Digest,
    /// Any bytes, even none. Two items are equal if their bytes are. No source holds such items.
    Raw,
}

impl Form {
    /// Returns the form in which a non-empty item is read; `None` if no source holds such items.
    #[inline]
    pub fn of(self, bytes: &[u8]) -> Option<ItemForm> {
        match self {
            Self::Digest | Self::Raw => None,
            Self::Item(ItemForm::Auto) => Some(ItemForm::detect(bytes)),
            // urlseen.scrapy writes the fingerprint before a request.
            Self::Item(ItemForm::Json | ItemForm::Pickle)
                if ItemForm::detect(bytes) == ItemForm::Tab =>
            {
                Some(ItemForm::Tab)
            }
            Self::Item(form) => Some(form),
        }
    }
}

impl From<ItemForm> for Form {
    fn from(form: ItemForm) -> Self {
        Self::Item(form)
    }
}

#[cfg(test)]
mod tests;
