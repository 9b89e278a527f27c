//! An item: one element of the source, and the forms it can have.
//!
//! A new form is one new file with a `read` function, a variant of [`ItemForm`], and one line in
//! [`Reader::read`].

pub mod batch;
mod digest;
mod fingerprint;
mod items;
pub mod json;
mod outline;
mod pickle;
mod said;
mod start_url;
mod tab;
pub mod url;

use std::borrow::Cow;

pub use items::Items;
use json::JsonError;
pub use outline::{Outline, OwnedRequest};
pub(crate) use pickle::PickleError;
use pickle::Pickles;
use said::Said;

use crate::config::{Emit, ItemForm, PassRule, host_and_path};
use urlseen_core::filter::PlacementError;
use urlseen_core::fingerprint::canonical::CanonicalizeError;
use urlseen_core::fingerprint::{Algorithm, Fingerprint, Fingerprinter, lanes};
use urlseen_core::redis::reject::bounded::{TooLong, most_made};

/// What an item says.
#[derive(Debug, PartialEq)]
pub struct Item<'a> {
    /// What it is judged by.
    pub identity: Identity,
    /// Its URL as received, for the forms that have one.
    pub(crate) url: Option<Cow<'a, str>>,
    /// What goes on in its place; nothing where it goes on as received.
    pub emitted: Option<Box<[u8]>>,
    /// The number of the rule that it passes by, unchecked ([`Options::pass`]).
    pub passed: Option<u16>,
    /// Where it belongs in a sink that sorts: the less, the sooner.
    pub score: f64,
}

impl From<Fingerprint> for Item<'_> {
    /// One that says nothing else.
    fn from(fingerprint: Fingerprint) -> Self {
        let identity = Identity::Fingerprint(fingerprint);
        Item { identity, url: None, emitted: None, passed: None, score: 0.0 }
    }
}

/// What an item is judged by.
#[derive(Debug, PartialEq, Eq)]
pub enum Identity {
    /// Unseen unless this was seen before.
    Fingerprint(Fingerprint),
    /// `dont_filter`, or a rule: passed on unchecked and unrecorded.
    Unfiltered,
}

/// Why an item could not be read.
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
    #[error("a fingerprint has no tab in it; with a payload behind it the item form is `tab`")]
    TabInFingerprint,
    #[error("{0}")]
    Pickle(#[from] PickleError),
    #[error("the item has no URL to emit (sink.emit is not `item`)")]
    NothingToEmit,
    #[error(
        "the priority is {found}; a sink that sorts by it (sink.kind is `zset`) needs a finite \
         number"
    )]
    Priority { found: &'static str },
    #[error("{length} bytes are no digest, which has 16, 20 or 32")]
    NoDigest { length: usize },
    #[error("the filter's kind has no place for it: {0}")]
    NoPlace(PlacementError),
    #[error(
        "what would go on in its place (sink.emit) has more than {most} bytes: more than twice as \
         much as the item"
    )]
    Grown { most: usize },
    #[error(
        "{length} bytes would go on, which is more than Redis, or what lies before it, takes at \
         once (proto-max-bulk-len, client-query-buffer-limit)"
    )]
    TooLarge { length: usize },
}

/// Reads items: their form, and from it what they are judged by. One a thread; it keeps the
/// buffers that fingerprints are computed in.
#[derive(Debug)]
pub struct Reader {
    options: Options,
    fingerprinter: Fingerprinter,
    pickles: Pickles,
    /// Each reader has its own: a pattern's memory is not for two at once.
    pass: Vec<PassRule>,
}

/// How items are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// What they look like.
    pub form: Form,
    /// What of them goes on.
    pub emit: Emit,
    /// How the fingerprints are computed that they do not bring along.
    pub algorithm: Algorithm,
    /// Whether URLs that differ in their fragments differ.
    pub keep_fragments: bool,
    /// Whether each needs a score ([`Item::score`]).
    pub scored: bool,
    /// The rules by which items pass unchecked and unrecorded.
    pub pass: &'static [PassRule],
}

impl Options {
    /// Items go on as received and without a score.
    pub const fn new(form: Form, algorithm: Algorithm, keep_fragments: bool) -> Self {
        Self { form, emit: Emit::Item, algorithm, keep_fragments, scored: false, pass: &[] }
    }
}

/// What items look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// As a source holds them.
    Item(ItemForm),
    /// The raw bytes of digests, which others have made sure of: no source holds such.
    Digest,
}

impl Form {
    /// The form of an item that is not empty, as it is read; `None` for a digest.
    pub fn of(self, bytes: &[u8]) -> Option<ItemForm> {
        match self {
            Self::Digest => None,
            Self::Item(ItemForm::Auto) => Some(detect(bytes)),
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
    /// A reader.
    pub fn new(options: Options) -> Self {
        let fingerprinter = Fingerprinter::new(options.algorithm, options.keep_fragments);
        Self { options, fingerprinter, pickles: Pickles::default(), pass: options.pass.to_vec() }
    }

    /// Reads one item.
    pub fn read<'a>(&mut self, bytes: &'a [u8]) -> Result<Item<'a>, Unreadable> {
        if bytes.is_empty() {
            return Err(Unreadable::Empty);
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
        let (identity, passed) =
            if self.pass.is_empty() { (self.identity(&said)?, None) } else { self.pass(&said)? };
        let score = if self.options.scored { said.priority.score()? } else { 0.0 };
        let emitted = match self.options.emit {
            Emit::Item => None,
            Emit::Url => {
                let url = said.url.as_deref().ok_or(Unreadable::NothingToEmit)?.as_bytes();
                (url != bytes).then(|| url.into())
            }
            Emit::StartUrl => Some(self.start_url(&said, form, bytes)?),
        };
        Ok(Item { identity, url: said.url, emitted, passed, score })
    }

    /// What a request is judged by.
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

    /// The same where there are rules, and by which of them it passes.
    fn pass(&mut self, said: &Said<'_>) -> Result<(Identity, Option<u16>), Unreadable> {
        let Some(request) = said.request().filter(|_| !said.dont_filter) else {
            return Ok((self.identity(said)?, None));
        };
        let url = match (self.fingerprinter.canonical(&request), &said.fingerprint) {
            (Ok(url), _) => url,
            // What brings its fingerprint along may have any URL.
            (Err(_), Some(given)) => return Ok((Identity::Fingerprint(given.clone()), None)),
            (Err(refusal), None) => return Err(refusal.into()),
        };
        let (host, path) = host_and_path(url);
        let rule = self.pass.iter().position(|rule| rule.fits(&host, path));
        if let Some(rule) = rule.and_then(|rule| u16::try_from(rule).ok()) {
            return Ok((Identity::Unfiltered, Some(rule)));
        }
        let fingerprint = match &said.fingerprint {
            Some(given) => given.clone(),
            None => self.fingerprinter.finish(&request),
        };
        Ok((Identity::Fingerprint(fingerprint), None))
    }

    /// What goes on of a request as a start URL.
    fn start_url(
        &self,
        said: &Said<'_>,
        form: ItemForm,
        bytes: &[u8],
    ) -> Result<Box<[u8]>, Unreadable> {
        let url = said.url.as_deref().ok_or(Unreadable::NothingToEmit)?;
        let most = most_made(bytes.len());
        let written = match form {
            ItemForm::Json => start_url::write(url, said, start_url::meta_of_json(bytes)?, most),
            ItemForm::Pickle => {
                start_url::write(url, said, self.pickles.meta(bytes)?.as_deref(), most)
            }
            _ => start_url::write(url, said, None, most),
        };
        written.map_err(|TooLong| Unreadable::Grown { most })
    }
}

/// Tells the forms apart by an item's first bytes.
fn detect(bytes: &[u8]) -> ItemForm {
    /// What pickle protocols 2 and up begin with; no character of UTF-8 does.
    const PICKLE: u8 = 0x80;
    match bytes[0] {
        b'{' => return ItemForm::Json,
        PICKLE => return ItemForm::Pickle,
        b' ' | b'\t' | b'\n' | b'\r' | json::MARK_START if json::is_object(bytes) => {
            return ItemForm::Json;
        }
        _ => {}
    }
    // One more than there can be.
    let begin = &bytes[..bytes.len().min(65)];
    let digits = lanes::position(begin, |lanes| !lanes::hex_digits(lanes)).unwrap_or(begin.len());
    match (digits, bytes.get(digits)) {
        (32 | 40 | 64, None) => ItemForm::Fingerprint,
        (32 | 40 | 64, Some(b'\t')) => ItemForm::Tab,
        _ => ItemForm::Url,
    }
}

#[cfg(test)]
mod tests;
