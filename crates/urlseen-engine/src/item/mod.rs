//! Items of the source, and the forms that they can have.
//!
//! A new form needs one new file with a `read` function, a variant of [`ItemForm`], and one line in
//! [`Reader::read`].

pub mod batch;
mod canonical;
mod digest;
pub mod fate;
pub(crate) mod findings;
mod fingerprint;
mod items;
pub mod json;
mod outline;
mod partition;
mod pickle;
mod reject_reason;
mod rules;
mod said;
mod start_url;
mod tab;
mod ttl;
pub mod url;

use std::borrow::Cow;
use std::sync::Arc;

pub use findings::{Findings, OverLimit};
pub use items::Items;
use json::JsonError;
pub use outline::{Brief, Outline, OwnedRequest};
pub(crate) use pickle::PickleError;
use pickle::Pickles;
pub use reject_reason::RejectReason;
pub use said::Said;

pub use rules::{ExpireRule, NamedRule};
use urlseen_core::filter::PlacementError;
pub use urlseen_core::filter::choice::{Emit, ItemForm};
use urlseen_core::filter::expire_after::ExpireAfter;
use urlseen_core::filter::lifetime::Lifetime;
use urlseen_core::fingerprint::canonical::CanonicalizeError;
use urlseen_core::fingerprint::pages::Page;
use urlseen_core::fingerprint::{ByPages, Fingerprint, FingerprintSpec, Fingerprinter, Partition};
use urlseen_core::limit::LimitRule;
use urlseen_core::redis::reject::bounded::{TooLong, most_made};

/// Item as read from its bytes.
#[derive(Debug, PartialEq)]
pub struct Item<'a> {
    /// Identity of the item, which the filter judges.
    pub identity: Identity,
    /// URL as received, if the item has a URL.
    pub(crate) url: Option<Cow<'a, str>>,
    /// True if the item contains its fingerprint, which rules `[[same]]` do not change.
    pub has_own_fingerprint: bool,
    /// Replacement for the sink; `None` if the item is pushed as received.
    pub emitted: Option<Box<[u8]>>,
    /// Number of the rule that lets the item pass unchecked ([`Options::pass`]).
    pub passed: Option<u16>,
    /// Score in a sorted set; consumers pop the lowest score first.
    pub score: f64,
    /// Lifetime of the fingerprint. The default if the filter's fingerprints do not expire.
    pub lifetime: Lifetime,
}

impl From<Fingerprint> for Item<'_> {
    /// Makes an item that has only a fingerprint.
    #[inline]
    fn from(fingerprint: Fingerprint) -> Self {
        Self::only(Identity::Fingerprint(fingerprint), true)
    }
}

impl From<Identity> for Item<'_> {
    /// Makes an item that has only an identity.
    fn from(identity: Identity) -> Self {
        Self::only(identity, false)
    }
}

impl Item<'_> {
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

/// Identity of an item, and what the rules say about its URL.
struct Ruling {
    identity: Identity,
    /// Number of the rule that lets the item pass unchecked.
    passed: Option<u16>,
    /// Longest lifetime of the fingerprint.
    lifetime: Lifetime,
}

impl From<Identity> for Ruling {
    fn from(identity: Identity) -> Self {
        Self { identity, passed: None, lifetime: Lifetime::WHOLE }
    }
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
    Json(#[from] JsonError),
    #[error("there is no tab between a fingerprint and a payload")]
    NoTab,
    #[error("the fingerprint contains a tab; use the item form `tab` for items with a payload")]
    TabInFingerprint,
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

/// Reader that finds the identity of items in any form. Each thread has a clone of its own, with
/// buffers for fingerprints. Clones share the patterns of rules.
#[derive(Debug, Clone)]
pub struct Reader {
    options: Options,
    fingerprinter: Fingerprinter,
    pickles: Pickles,
    /// Time of the filter, if its fingerprints expire.
    expire_after: Option<ExpireAfter>,
    /// Pages of the rules. Each reader has a copy, because two threads cannot share the memory of a
    /// pattern.
    pass: ByPages,
    drop: ByPages,
    expire: ByPages,
}

/// Options for reading items.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Form of all items to be read.
    pub form: Form,
    /// Content that is pushed to the sink.
    pub emit: Emit,
    /// Spec of the fingerprints of items that have none.
    pub fingerprint: FingerprintSpec,
    /// True if each item needs a score (`Item::score`).
    pub scored: bool,
    /// Rules that let items pass unchecked and unrecorded.
    pub pass: Arc<[NamedRule]>,
    /// Rules that drop items.
    pub drop: Arc<[NamedRule]>,
    /// Rules with the times after which URLs of some pages pass again.
    pub expire: Arc<[ExpireRule]>,
    /// Rules that limit unseen items. A [`Reader`] does not apply them.
    pub limits: Arc<[LimitRule]>,
    /// Partition to which the items must belong.
    pub partition: Partition,
    /// Maximum size of an item in bytes.
    pub item_bytes: usize,
}

impl Options {
    /// Makes options with which items are pushed as received and have no score.
    pub fn new(form: Form, fingerprint: impl Into<FingerprintSpec>) -> Self {
        Self {
            form,
            emit: Emit::Item,
            fingerprint: fingerprint.into(),
            scored: false,
            pass: Arc::default(),
            drop: Arc::default(),
            expire: Arc::default(),
            limits: Arc::default(),
            partition: Partition::WHOLE,
            item_bytes: usize::MAX,
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
}

impl Form {
    /// Returns the form in which a non-empty item is read; `None` for a digest.
    #[inline]
    pub fn of(self, bytes: &[u8]) -> Option<ItemForm> {
        match self {
            Self::Digest => None,
            Self::Item(ItemForm::Auto) => Some(ItemForm::detect(bytes)),
            Self::Item(form) => Some(form),
        }
    }
}

impl From<ItemForm> for Form {
    fn from(form: ItemForm) -> Self {
        Self::Item(form)
    }
}

impl Reader {
    /// Makes a reader with these options.
    pub fn new(options: Options) -> Self {
        Self {
            fingerprinter: Fingerprinter::new(options.fingerprint.clone()),
            pickles: Pickles::default(),
            expire_after: None,
            pass: ByPages::new(options.pass.iter().map(|rule| &rule.pages)),
            drop: ByPages::new(options.drop.iter().map(|rule| &rule.pages)),
            expire: ByPages::new(options.expire.iter().map(|rule| &rule.pages)),
            options,
        }
    }

    /// Reads the lifetimes of items for a filter whose fingerprints expire after this time.
    pub(crate) fn expiring(self, expire_after: Option<ExpireAfter>) -> Self {
        Self { expire_after, ..self }
    }

    /// Reads one item in any form.
    pub fn read<'a>(&mut self, bytes: &'a [u8]) -> Result<Item<'a>, Unreadable> {
        let item = self.read_any(bytes);
        if self.options.partition.has_others() { self.of_partition(item?) } else { item }
    }

    /// Reads one item of any partition.
    #[expect(clippy::inline_always, reason = "otherwise each item is copied")]
    #[inline(always)]
    fn read_any<'a>(&mut self, bytes: &'a [u8]) -> Result<Item<'a>, Unreadable> {
        if bytes.is_empty() {
            return Err(Unreadable::Empty);
        }
        let (length, most) = (bytes.len(), self.options.item_bytes);
        if length > most {
            return Err(Unreadable::TooLarge { length, most });
        }
        let Some(form) = self.options.form.of(bytes) else { return digest::read(bytes) };
        let said = match form {
            ItemForm::Auto | ItemForm::Url => url::read(bytes)?,
            ItemForm::Json => json::read(bytes)?,
            ItemForm::Pickle => self.pickles.read(bytes)?,
            ItemForm::Fingerprint | ItemForm::Tab if self.options.emit != Emit::Item => {
                return Err(Unreadable::NothingToEmit);
            }
            ItemForm::Fingerprint => return fingerprint::read(bytes),
            ItemForm::Tab => return tab::read(bytes),
        };
        if said.has_odd_fingerprint() && self.options.form == Form::Item(ItemForm::Auto) {
            return Err(Unreadable::Fingerprint);
        }
        let Ruling { identity, passed, lifetime } =
            if self.has_rules() { self.by_rules(&said)? } else { self.identity(&said)?.into() };
        if let Identity::Dropped(_) = identity {
            return Ok(identity.into());
        }
        let score = if self.options.scored { said.priority.score()? } else { 0.0 };
        let emitted = match self.options.emit {
            Emit::Item => None,
            Emit::Url => {
                let url = said.url.as_deref().ok_or(Unreadable::NothingToEmit)?.as_bytes();
                (url != bytes).then(|| url.into())
            }
            Emit::StartUrl => Some(self.start_url(&said, form, bytes)?),
        };
        let lifetime = match self.expire_after {
            Some(expire_after) => said.ttl.shorten(lifetime, expire_after)?,
            None => Lifetime::default(),
        };
        let has_own_fingerprint = said.fingerprint.is_some();
        let url = said.url;
        Ok(Item { identity, url, has_own_fingerprint, emitted, passed, score, lifetime })
    }

    /// Finds the identity of a request.
    #[inline]
    fn identity(&mut self, said: &Said<'_>) -> Result<Identity, Unreadable> {
        match (said.dont_filter, &said.fingerprint, said.request()) {
            (true, ..) => Ok(Identity::Unfiltered),
            (false, Some(given), _) => Ok(Identity::Fingerprint(given.clone())),
            (false, None, Some(request)) => {
                Ok(Identity::Fingerprint(self.fingerprinter.fingerprint(&request)?))
            }
            (false, None, None) => Err(JsonError::NoIdentity.into()),
        }
    }

    fn has_rules(&self) -> bool {
        !(self.pass.is_empty() && self.drop.is_empty())
            || (!self.expire.is_empty() && self.expire_after.is_some())
    }

    /// Finds the identity of a request, and what the rules say about its URL.
    fn by_rules(&mut self, said: &Said<'_>) -> Result<Ruling, Unreadable> {
        let Some(request) = said.request() else { return Ok(self.identity(said)?.into()) };
        let canonical = self.fingerprinter.canonical(&request);
        // Many links that are dropped have no canonical URL, such as those to mail addresses.
        let url = canonical.as_ref().map_or(request.url, |url| *url);
        let is_foreign = [&self.drop, &self.pass, &self.expire].iter().all(|it| it.is_foreign(url));
        let page = (!is_foreign).then(|| Page::of(url));
        let first = |rules: &mut ByPages| rules.matching(page.as_ref()?).next();
        let number = |rules: &mut ByPages| first(rules).and_then(|it| u16::try_from(it).ok());
        if let Some(rule) = number(&mut self.drop) {
            return Ok(Identity::Dropped(rule).into());
        }
        match (canonical, &said.fingerprint) {
            _ if said.dont_filter => return Ok(Identity::Unfiltered.into()),
            (Ok(_), _) => {}
            // A request with a fingerprint may have any URL, even an invalid URL.
            (Err(_), Some(given)) => return Ok(Identity::Fingerprint(given.clone()).into()),
            (Err(refusal), None) => return Err(refusal.into()),
        }
        if let Some(rule) = number(&mut self.pass) {
            return Ok(Ruling { passed: Some(rule), ..Identity::Unfiltered.into() });
        }
        let rule = first(&mut self.expire).map(|number| &self.options.expire[number]);
        let lifetime = rule.zip(self.expire_after);
        let lifetime = lifetime.map(|(rule, expire_after)| rule.lifetime(expire_after));
        let fingerprint = match &said.fingerprint {
            Some(given) => given.clone(),
            None => self.fingerprinter.finish(&request),
        };
        let lifetime = lifetime.unwrap_or_default();
        Ok(Ruling { lifetime, ..Identity::Fingerprint(fingerprint).into() })
    }

    /// Writes a request as a start URL for the sink.
    fn start_url(
        &self,
        said: &Said<'_>,
        form: ItemForm,
        bytes: &[u8],
    ) -> Result<Box<[u8]>, Unreadable> {
        let url = said.url.as_deref().ok_or(Unreadable::NothingToEmit)?;
        let most = most_made(bytes.len());
        let meta = match form {
            ItemForm::Json => start_url::meta_of_json(bytes)?.map(Cow::Borrowed),
            ItemForm::Pickle => self.pickles.meta(bytes)?.map(Cow::Owned),
            _ => None,
        };
        let written = start_url::write(url, said, meta.as_deref(), most);
        written.map_err(|TooLong| Unreadable::Grown { most })
    }
}

#[cfg(test)]
mod tests;
