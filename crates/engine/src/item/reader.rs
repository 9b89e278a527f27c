//! Reader: finds the identity of an item, by its form, the rules and the partition.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use super::json::{self, JsonError};
use super::pickle::Pickles;
use super::request::{self, ItemRequest, Parsed};
use super::tab::{self, Flags, TabParts};
use super::{Emit, Form, Identity, Item, ItemForm, Unreadable};
use urlseen_filter::expire_after::ExpireAfter;
use urlseen_filter::limit::LimitRule;
use urlseen_filter::{Lifetime, digest_of};
use urlseen_fingerprint::rule_pages::{Page, Pages};
use urlseen_fingerprint::{ByPages, Fingerprint, FingerprintSpec, Fingerprinter, Partition};
use urlseen_redis::reject::bounded::{TooLong, most_made};

/// Reader that finds the identity of items in any form. Each thread has a clone of its own, with
/// buffers for fingerprints. Clones share the patterns of rules.
#[derive(Debug, Clone)]
pub struct Reader {
    pub(super) options: Options,
    pub(super) fingerprinter: Fingerprinter,
    pub(super) pickles: Pickles,
    /// Time of the filter, if its fingerprints expire.
    expire_after: Option<ExpireAfter>,
    /// Pages of the rules. Each reader has a copy, because two threads cannot share the memory of a
    /// pattern.
    pass: ByPages,
    drop: ByPages,
    expire: ByPages,
    /// True if there are such rules.
    has_rules: bool,
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

/// Rule that passes or drops the items of some pages. They are counted under its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedRule {
    /// Name that metrics and status show for the rule.
    pub name: String,
    /// Pages that the rule is for.
    pub pages: Pages,
}

/// Rule with the time after which the URLs of some pages pass again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpireRule {
    /// Pages whose URLs have this time.
    pub pages: Pages,
    /// Time after which their URLs pass again; `None` for never.
    pub after: Option<Duration>,
}

/// Identity of an item, and what the rules say about its URL.
struct Ruling {
    identity: Identity,
    /// Number of the rule that lets the item pass unchecked.
    passed: Option<u16>,
    /// Longest lifetime of the fingerprint.
    lifetime: Lifetime,
}

/// Decision of the rules about a request, without a filter.
#[derive(Debug, Default)]
pub struct Decision {
    /// True if a rule drops the request.
    pub is_dropped: bool,
    /// True if a rule lets the request pass unchecked and unrecorded.
    pub is_unfiltered: bool,
    /// Time after which the URL passes again; `None` for never.
    pub after: Option<Duration>,
    /// Canonical URL; `None` if the URL has none.
    pub url: Option<String>,
}

impl From<Identity> for Ruling {
    fn from(identity: Identity) -> Self {
        Self { identity, passed: None, lifetime: Lifetime::WHOLE }
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
            has_rules: !(options.pass.is_empty() && options.drop.is_empty()),
            options,
        }
    }

    /// Reads the lifetimes of items for a filter whose fingerprints expire after this time.
    pub(crate) fn expiring(self, expire_after: Option<ExpireAfter>) -> Self {
        let has_rules = self.has_rules || expire_after.is_some() && !self.options.expire.is_empty();
        Self { expire_after, has_rules, ..self }
    }

    /// Reads one item in any form.
    pub fn read<'a>(&mut self, bytes: &'a [u8]) -> Result<Item<'a>, Unreadable> {
        let item = self.read_any(bytes);
        if self.options.partition == Partition::WHOLE { item } else { self.of_partition(item?) }
    }

    /// Reads one item of any partition.
    #[expect(clippy::inline_always, reason = "otherwise each item is copied")]
    #[inline(always)]
    fn read_any<'a>(&mut self, bytes: &'a [u8]) -> Result<Item<'a>, Unreadable> {
        if bytes.is_empty() && self.options.form != Form::Raw {
            return Err(Unreadable::Empty);
        }
        let (length, most) = (bytes.len(), self.options.item_bytes);
        if length > most {
            return Err(Unreadable::TooLarge { length, most });
        }
        let Some(form) = self.options.form.of(bytes) else {
            let is_raw = self.options.form == Form::Raw;
            return if is_raw { Ok(given(digest_of(bytes))) } else { digest(bytes) };
        };
        let needs_url = self.has_rules || self.options.emit != Emit::Item;
        match form {
            ItemForm::Fingerprint if !needs_url => return Ok(given(tab::bare(bytes)?)),
            ItemForm::Tab if !needs_url => {
                return match tab::without_flags(bytes)? {
                    Some(text) => Ok(given(Fingerprint::from_text(text))),
                    None => self.unread(&TabParts::of(bytes)?),
                };
            }
            _ => {}
        }
        let said = match form {
            ItemForm::Auto | ItemForm::Url => request::of_url(bytes)?,
            _ => match self.parse(form, bytes)? {
                Parsed::Request(said) => said,
                Parsed::Fingerprint(_) if self.options.emit != Emit::Item => {
                    return Err(Unreadable::NothingToEmit);
                }
                Parsed::Fingerprint(fingerprint) => return Ok(given(fingerprint)),
            },
        };
        if said.has_odd_fingerprint() && self.options.form == Form::Item(ItemForm::Auto) {
            return Err(Unreadable::Fingerprint);
        }
        let Ruling { identity, passed, lifetime } =
            if self.has_rules { self.by_rules(&said)? } else { self.identity(&said)?.into() };
        if let Identity::Dropped(_) = identity {
            return Ok(Item::only(identity, false));
        }
        let score = if self.options.scored { said.priority.score()? } else { 0.0 };
        let emitted = match self.options.emit {
            Emit::Item => said.payload.map(Into::into),
            Emit::Url => {
                let url = said.url.as_deref().ok_or(Unreadable::NothingToEmit)?.as_bytes();
                (url != bytes).then(|| url.into())
            }
            Emit::StartUrl => {
                let flagged = said.payload.map(|payload| (ItemForm::detect(payload), payload));
                let (form, bytes) = flagged.unwrap_or((form, bytes));
                Some(self.start_url(&said, form, bytes)?)
            }
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
    fn identity(&mut self, said: &ItemRequest<'_>) -> Result<Identity, Unreadable> {
        match (said.dont_filter, &said.fingerprint, said.request()) {
            (true, ..) => Ok(Identity::Unfiltered),
            (false, Some(given), _) => Ok(Identity::Fingerprint(given.clone())),
            (false, None, Some(request)) => {
                Ok(Identity::Fingerprint(self.fingerprinter.fingerprint(&request)?))
            }
            (false, None, None) => Err(JsonError::NoIdentity.into()),
        }
    }

    /// Finds the identity of a request, and what the rules say about its URL.
    fn by_rules(&mut self, said: &ItemRequest<'_>) -> Result<Ruling, Unreadable> {
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
        let lifetime = lifetime.map(|(rule, expire_after)| {
            rule.after.map_or(Lifetime::FOREVER, |it| Lifetime::at_least(it, expire_after))
        });
        let fingerprint = match &said.fingerprint {
            Some(given) => given.clone(),
            None => self.fingerprinter.finish(&request),
        };
        let lifetime = lifetime.unwrap_or_default();
        Ok(Ruling { lifetime, ..Identity::Fingerprint(fingerprint).into() })
    }

    /// Decides about a request by its URL.
    pub(crate) fn decide(&mut self, url: &str, verbatim_url: bool) -> Decision {
        let said = ItemRequest { url: Some(url.into()), verbatim_url, ..ItemRequest::default() };
        let ruling = self.by_rules(&said).ok();
        let is_dropped = matches!(&ruling, Some(it) if matches!(it.identity, Identity::Dropped(_)));
        let is_unfiltered = ruling.is_some_and(|it| it.passed.is_some());
        let request = said.request().expect("it has a URL");
        let url = self.fingerprinter.canonical(&request).ok();
        let rule = url.and_then(|url| self.expire.matching(&Page::of(url)).next());
        let after = rule.and_then(|number| self.options.expire[number].after);
        Decision { is_dropped, is_unfiltered, after, url: url.map(str::to_owned) }
    }

    /// Writes a request as a start URL for the sink.
    fn start_url(
        &self,
        said: &ItemRequest<'_>,
        form: ItemForm,
        bytes: &[u8],
    ) -> Result<Box<[u8]>, Unreadable> {
        let url = said.url.as_deref().ok_or(Unreadable::NothingToEmit)?;
        let most = most_made(bytes.len());
        let meta = match form {
            ItemForm::Json => json::meta_of_json(bytes)?.map(Cow::Borrowed),
            ItemForm::Pickle => self.pickles.meta(bytes)?.map(Cow::Owned),
            _ => None,
        };
        let written = request::write_start_url(url, said, meta.as_deref(), most);
        written.map_err(|TooLong| Unreadable::Grown { most })
    }

    /// Returns the part of a maximum that the partition has.
    pub(crate) fn share(&self, max: u64) -> u64 {
        self.options.partition.count().share(max)
    }

    /// Refuses an item whose fingerprint belongs to another partition.
    fn of_partition<'a>(&self, item: Item<'a>) -> Result<Item<'a>, Unreadable> {
        let here = self.options.partition;
        match &item.identity {
            Identity::Fingerprint(fingerprint) if !here.has(fingerprint) => {
                let owner = here.count().of(fingerprint);
                Err(Unreadable::OtherPartition { owner, here })
            }
            _ => Ok(item),
        }
    }

    /// Returns the canonical URL of an item; `None` if it has none.
    pub(crate) fn canonical_url(&mut self, bytes: &[u8]) -> Option<&str> {
        let Parsed::Request(said) = self.parse(self.options.form.of(bytes)?, bytes).ok()? else {
            return None;
        };
        let request = said.request()?;
        self.fingerprinter.canonical(&request).ok()
    }

    /// Makes an item of its fingerprint and its flags. Does not read the payload.
    #[inline(never)]
    fn unread<'a>(&self, parts: &TabParts<'a>) -> Result<Item<'a>, Unreadable> {
        if parts.flags.is_none() {
            return Ok(given(Fingerprint::from_text(parts.fingerprint)));
        }
        let Flags { dont_filter, priority, ttl } = parts.read_flags()?;
        let fingerprint = || Fingerprint::from_text(parts.fingerprint);
        let identity =
            if dont_filter { Identity::Unfiltered } else { Identity::Fingerprint(fingerprint()) };
        let lifetime = match self.expire_after {
            Some(expire_after) => ttl.shorten(Lifetime::WHOLE, expire_after)?,
            None => Lifetime::default(),
        };
        let score = if self.options.scored { priority.score()? } else { 0.0 };
        let emitted = Some(parts.payload.into());
        Ok(Item { emitted, score, lifetime, ..Item::only(identity, true) })
    }

    /// Reads an item of this form, also its payload if it has flags.
    #[expect(clippy::inline_always, reason = "otherwise each item is copied")]
    #[inline(always)]
    pub(super) fn parse<'a>(
        &mut self,
        form: ItemForm,
        bytes: &'a [u8],
    ) -> Result<Parsed<'a>, Unreadable> {
        Ok(Parsed::Request(match form {
            ItemForm::Auto | ItemForm::Url => request::of_url(bytes)?,
            ItemForm::Json => json::read(bytes)?,
            ItemForm::Pickle => self.pickles.read(bytes)?,
            ItemForm::Fingerprint => return Ok(Parsed::Fingerprint(tab::bare(bytes)?)),
            ItemForm::Tab => return self.with_payload(bytes),
        }))
    }

    /// Reads an item with a payload. Its flags replace those of the payload.
    fn with_payload<'a>(&mut self, bytes: &'a [u8]) -> Result<Parsed<'a>, Unreadable> {
        let parts = TabParts::of(bytes)?;
        let (fingerprint, payload) = (Fingerprint::from_text(parts.fingerprint), parts.payload);
        if parts.flags.is_none() {
            return Ok(Parsed::Fingerprint(fingerprint));
        }
        let Flags { dont_filter, priority, ttl } = parts.read_flags()?;
        let said = match ItemForm::detect(payload) {
            ItemForm::Json => json::read(payload)?,
            ItemForm::Pickle => self.pickles.read(payload)?,
            _ => request::of_url(payload)?,
        };
        let (fingerprint, payload) = (Some(fingerprint), Some(payload));
        Ok(Parsed::Request(ItemRequest {
            fingerprint,
            dont_filter,
            priority,
            ttl,
            payload,
            ..said
        }))
    }
}

/// Reads a raw digest, which an import has checked.
#[inline]
fn digest(bytes: &[u8]) -> Result<Item<'_>, Unreadable> {
    let digest = Fingerprint::from_raw(bytes);
    let digest = digest.ok_or(Unreadable::NoDigest { length: bytes.len() })?;
    Ok(given(digest))
}

#[inline]
fn given<'a>(fingerprint: Fingerprint) -> Item<'a> {
    Item::only(Identity::Fingerprint(fingerprint), true)
}
