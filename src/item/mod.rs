//! An item: one element of the source, and the forms it can have.
//!
//! A new form is one new file with a `read` function, a variant of [`ItemForm`], and one line in
//! [`Reader::read`].

mod digest;
mod fingerprint;
mod items;
pub mod json;
mod pickle;
mod said;
mod tab;
mod url;

use std::borrow::Cow;

pub use items::Items;
use json::JsonError;
pub use pickle::PickleError;
use pickle::Pickles;
use said::Said;

use crate::canonical::Refusal;
use crate::config::{Emit, ItemForm};
use crate::filter::Unplaced;
use crate::fingerprint::{Algorithm, Fingerprint, Fingerprinter};
use crate::lanes;

/// What an item says.
#[derive(Debug, PartialEq, Eq)]
pub struct Item<'a> {
    /// What it is judged by.
    pub identity: Identity,
    /// Its URL as received, for the forms that have one.
    pub url: Option<Cow<'a, str>>,
}

/// What an item is judged by.
#[derive(Debug, PartialEq, Eq)]
pub enum Identity {
    /// Unseen unless this was seen before.
    Fingerprint(Fingerprint),
    /// `dont_filter`: passed on unchecked and unrecorded.
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
    Url(#[from] Refusal),
    #[error("{0}")]
    Json(#[from] JsonError),
    #[error("there is no tab between a fingerprint and a payload")]
    NoTab,
    #[error("a fingerprint has no tab in it; with a payload behind it the item form is `tab`")]
    TabInFingerprint,
    #[error("{0}")]
    Pickle(#[from] PickleError),
    #[error("the item has no URL to emit (sink.emit is `url`)")]
    NothingToEmit,
    #[error("{length} bytes are no digest, which has 16, 20 or 32")]
    NoDigest { length: usize },
    #[error("the filter's layout has no place for it: {0}")]
    NoPlace(Unplaced),
}

/// Reads items: their form, and from it what they are judged by. One a thread; it keeps the
/// buffers that fingerprints are computed in.
#[derive(Debug)]
pub struct Reader {
    options: Options,
    fingerprinter: Fingerprinter,
    pickles: Pickles,
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
}

/// What items look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// As a source holds them.
    Item(ItemForm),
    /// The raw bytes of digests, which others have made sure of: no source holds such.
    Digest,
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
        Self { options, fingerprinter, pickles: Pickles::default() }
    }

    /// Reads one item.
    pub fn read<'a>(&mut self, bytes: &'a [u8]) -> Result<Item<'a>, Unreadable> {
        if bytes.is_empty() {
            return Err(Unreadable::Empty);
        }
        let form = match self.options.form {
            Form::Digest => return digest::read(bytes),
            Form::Item(ItemForm::Auto) => detect(bytes),
            Form::Item(form) => form,
        };
        let item = match form {
            ItemForm::Auto | ItemForm::Url => self.judged_by(url::read(bytes)?),
            ItemForm::Json => self.judged_by(json::read(bytes)?),
            ItemForm::Pickle => {
                let said = self.pickles.read(bytes)?;
                self.judged_by(said)
            }
            ItemForm::Fingerprint => fingerprint::read(bytes),
            ItemForm::Tab => tab::read(bytes),
        };
        let wants_url = self.options.emit == Emit::Url;
        if wants_url && item.as_ref().is_ok_and(|item| item.url.is_none()) {
            return Err(Unreadable::NothingToEmit);
        }
        item
    }

    /// A request, and what it is judged by.
    #[inline]
    fn judged_by<'a>(&mut self, said: Said<'a>) -> Result<Item<'a>, Unreadable> {
        let identity = match (said.dont_filter, &said.fingerprint, said.request()) {
            (true, ..) => Identity::Unfiltered,
            (false, Some(given), _) => Identity::Fingerprint(given.clone()),
            (false, None, Some(request)) => {
                Identity::Fingerprint(self.fingerprinter.fingerprint(&request)?)
            }
            (false, None, None) => return Err(JsonError::NoIdentity.into()),
        };
        Ok(Item { identity, url: said.url })
    }
}

/// Tells the forms apart by an item's first bytes.
fn detect(bytes: &[u8]) -> ItemForm {
    /// What pickle protocols 2 and up begin with; no character of UTF-8 does.
    const PICKLE: u8 = 0x80;
    match bytes[0] {
        b'{' => return ItemForm::Json,
        PICKLE => return ItemForm::Pickle,
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

/// The item as text, as a URL must be.
fn utf8(bytes: &[u8]) -> Result<&str, Unreadable> {
    std::str::from_utf8(bytes).map_err(|error| Unreadable::NotUtf8 { offset: error.valid_up_to() })
}

#[cfg(test)]
mod tests {
    use super::*;
    const SHA1: &str = "0123456789abcdef0123456789abcdef01234567";

    fn read(form: ItemForm, emit: Emit, item: &[u8]) -> Result<Item<'_>, Unreadable> {
        let algorithm = Algorithm::Scrapy;
        let form = form.into();
        Reader::new(Options { form, emit, algorithm, keep_fragments: false }).read(item)
    }

    fn computed(url: &str) -> Identity {
        let mut fingerprinter = Fingerprinter::new(Algorithm::Scrapy, false);
        Identity::Fingerprint(
            fingerprinter.fingerprint(&crate::request::Request::get(url)).unwrap(),
        )
    }

    fn given(text: &str) -> Identity {
        Identity::Fingerprint(Fingerprint::from_text(text.as_bytes()))
    }

    #[test]
    fn auto_tells_the_forms_apart_by_their_first_bytes() {
        let url = "http://example.com/?b&a";
        for (item, identity) in [
            (url.to_owned(), computed(url)),
            (format!(r#"{{"url": "{url}"}}"#), computed(url)),
            (SHA1.to_owned(), given(SHA1)),
            (SHA1[..32].to_uppercase(), given(&SHA1[..32])),
            (format!("{SHA1}\tany payload\t"), given(SHA1)),
            (format!("{SHA1}{}\t", &SHA1[..24]), given(&format!("{SHA1}{}", &SHA1[..24]))),
        ] {
            let read = read(ItemForm::Auto, Emit::Item, item.as_bytes()).unwrap();
            assert_eq!(read.identity, identity, "{item}");
        }
    }

    #[test]
    fn auto_rejects_what_no_form_reads() {
        let read = |item| read(ItemForm::Auto, Emit::Item, item).unwrap_err().to_string();
        assert_eq!(read(b""), "the item is empty");
        assert_eq!(read(b"http://a/\xff"), "the URL is not UTF-8: byte 9 begins no character");
        assert_eq!(read(b"\x80\x04\x95"), "the pickle is cut short");
        // One digit short of a SHA-1: not a fingerprint, so it is read as a URL.
        assert!(read(&SHA1.as_bytes()[1..]).contains("scheme"));
        assert!(read(b"{\"url\": 1}").contains("url"));
    }

    #[test]
    fn a_tab_item_is_judged_by_what_stands_before_its_first_tab() {
        for (item, key) in [("a key\tpayload\tmore", "a key"), ("\tpayload", "")] {
            let read = read(ItemForm::Tab, Emit::Item, item.as_bytes()).unwrap();
            assert_eq!(read.identity, given(key));
        }
        let no_tab = read(ItemForm::Tab, Emit::Item, SHA1.as_bytes());
        assert!(matches!(no_tab, Err(Unreadable::NoTab)));
    }

    #[test]
    fn a_fingerprint_item_is_any_bytes_without_a_tab() {
        let key = b"caf\xc3\xa9 \xff";
        let item = read(ItemForm::Fingerprint, Emit::Item, key).unwrap();
        assert_eq!(item.identity, Identity::Fingerprint(Fingerprint::Text(key[..].into())));
        let tab = read(ItemForm::Fingerprint, Emit::Item, b"a\tb");
        assert!(matches!(tab, Err(Unreadable::TabInFingerprint)));
    }

    #[test]
    fn a_json_item_brings_its_own_fingerprint_or_asks_not_to_be_filtered() {
        let read = |item: &'static str| read(ItemForm::Auto, Emit::Item, item.as_bytes()).unwrap();
        assert_eq!(read(r#"{"fingerprint": "k", "url": "nothing"}"#).identity, given("k"));
        let unfiltered = read(r#"{"url": "http://a/", "dont_filter": true}"#);
        assert_eq!(unfiltered.identity, Identity::Unfiltered);
        let posted = read(r#"{"url": "http://a/", "method": "POST", "body": "b"}"#);
        assert_ne!(posted.identity, computed("http://a/"));
    }

    #[test]
    fn a_digest_is_read_as_what_its_hex_digits_stand_for() {
        let options = Options {
            form: Form::Digest,
            emit: Emit::Item,
            algorithm: Algorithm::Scrapy,
            keep_fragments: false,
        };
        let mut reader = Reader::new(options);
        // Begins like JSON, and has a tab in it.
        let raw = *b"{\t\n1234567890123456\xff";
        let hex = "7b090a31323334353637383930313233343536ff";
        assert_eq!(reader.read(&raw).unwrap().identity, given(hex));
        let short = reader.read(&raw[1..]);
        assert!(matches!(short, Err(Unreadable::NoDigest { length: 19 })));
    }

    #[test]
    fn what_has_no_url_cannot_be_emitted_as_one() {
        let read = |item| read(ItemForm::Auto, Emit::Url, item);
        let json = read(br#"{"url": "http://a/\u00e9"}"#).unwrap();
        assert_eq!(json.url.as_deref(), Some("http://a/\u{e9}"));
        assert_eq!(read(b"http://a/").unwrap().url.as_deref(), Some("http://a/"));
        for item in [SHA1.as_bytes(), br#"{"fingerprint": "k"}"#] {
            assert!(matches!(read(item), Err(Unreadable::NothingToEmit)));
        }
    }
}
